// SPDX-License-Identifier: Apache-2.0
#include "runtime/hip/kernels.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/hip/driver.hpp"

namespace berth::runtime::hip {
namespace {

error unavailable(std::string what) {
  return error(errc::gpu_kernel_unavailable, std::move(what), "hiprtc",
               "copies by the copy engines do not need it");
}

// A program of the compiler, given back at the end of the scope.
class program {
public:
  explicit program(const compiler_api& compiler) : compiler_(compiler) {}
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  program(program&&) = delete;
  program& operator=(program&&) = delete;
  ~program() {
    if (handle_ != nullptr) {
      compiler_.hiprtcDestroyProgram(&handle_);
    }
  }

  [[nodiscard]] status create(const std::string& source) {
    return compiler_.hiprtcCreateProgram(&handle_, source.c_str(), "berth_kernels", 0, nullptr,
                                         nullptr);
  }
  // Without options the compiler takes the architecture from the current device.
  [[nodiscard]] status compile(const std::string& architecture) {
    const std::string option = "--offload-arch=" + architecture;
    const char* options = option.c_str();
    return compiler_.hiprtcCompileProgram(handle_, architecture.empty() ? 0 : 1,
                                          architecture.empty() ? nullptr : &options);
  }
  [[nodiscard]] std::string log() const {
    std::size_t bytes = 0;
    std::string text;
    if (compiler_.hiprtcGetProgramLogSize(handle_, &bytes) == code::success && bytes > 1) {
      text.resize(bytes);
      if (compiler_.hiprtcGetProgramLog(handle_, text.data()) != code::success) {
        text.clear();
      }
      text.resize(text.find_last_not_of('\0') + 1);
    }
    return text.empty() ? "no log" : text::shorten(text::printable(text), 2000);
  }
  [[nodiscard]] std::string image() const {
    std::size_t bytes = 0;
    std::string code_text;
    if (compiler_.hiprtcGetCodeSize(handle_, &bytes) != code::success || bytes == 0) {
      return {};
    }
    code_text.resize(bytes);
    if (compiler_.hiprtcGetCode(handle_, code_text.data()) != code::success) {
      return {};
    }
    return code_text;
  }

private:
  const compiler_api& compiler_;
  program_t handle_ = nullptr;
};

}  // namespace

result<compiler_api> load_compiler(void* runtime_library, int major, const linker& with) {
  compiler_api compiler;
  bool complete = true;
  const auto symbols = compiler_api::symbols();
  for (std::size_t index = 0; index < symbols.size(); ++index) {
    void* found = with.find_symbol(runtime_library, symbols[index].name);
    compiler.store(index, found);
    complete = complete && found != nullptr;
  }
  if (complete && with.environment("BERTH_HIPRTC_LIBRARY").empty()) {
    return compiler;
  }
  // Of another major than the runtime, its code might not load: only that number is tried.
  const library_request request{.what = "HIP run-time compiler",
                                .override_variable = "BERTH_HIPRTC_LIBRARY",
                                .stem = "libhiprtc.so",
                                .newest = major,
                                .oldest = major,
                                .directories = rocm_directories(with)};
  if (auto loaded = load_table(request, compiler, with); !loaded) {
    return unavailable(loaded.error().message());
  }
  return compiler;
}

result<std::string> compile_kernels(const compiler_api& compiler, const std::string& architecture) {
  program work(compiler);
  if (const status failed = work.create(std::string(kernel_source())); failed != code::success) {
    return unavailable(fmt::format("hiprtcCreateProgram answered {}", failed));
  }
  if (const status failed = work.compile(architecture); failed != code::success) {
    return unavailable(
        fmt::format("the kernels do not compile (hiprtc answered {}): {}", failed, work.log()));
  }
  std::string image = work.image();
  if (image.empty()) {
    return unavailable("the compiler gave no code");
  }
  return image;
}

result<kernel_functions> load_kernels(const api& calls, const std::string& image) {
  module_t module = nullptr;
  if (const status failed = calls.hipModuleLoadData(&module, image.data());
      failed != code::success) {
    return unavailable(
        fmt::format("the kernels do not load: {} ({})", calls.hipGetErrorName(failed), failed));
  }
  kernel_functions functions{};
  for (std::size_t index = 0; index < kernel_names.size(); ++index) {
    const status failed =
        calls.hipModuleGetFunction(&functions[index], module, kernel_names[index]);
    if (failed != code::success) {
      calls.hipModuleUnload(module);
      return unavailable(fmt::format("{} is not in the compiled code: {} ({})", kernel_names[index],
                                     calls.hipGetErrorName(failed), failed));
    }
  }
  return functions;
}

}  // namespace berth::runtime::hip
