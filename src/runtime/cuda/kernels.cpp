// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/kernels.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/cuda/devices.hpp"

namespace berth::runtime::cuda {
namespace {

error unavailable(const api& calls, std::string what, status answer) {
  return error(
      errc::gpu_kernel_unavailable,
      fmt::format("{}; the runtime answered {} ({})", what, name_of(calls, answer), answer),
      "cuModuleLoadDataEx", "copies by the copy engines do not need it");
}

}  // namespace

result<kernel_functions> load_kernels(const api& calls) {
  std::array<char, 2048> log{};
  std::array<int, 2> options{jit_option::error_log, jit_option::error_log_bytes};
  // The size travels in the pointer's own bits, as the driver wants it.
  std::array<void*, 2> values{
      log.data(), reinterpret_cast<void*>(log.size() - 1)};  // NOLINT(performance-no-int-to-ptr)
  module_t module = nullptr;
  if (const status failed = calls.cuModuleLoadDataEx(&module, kernel_ptx().data(),
                                                     static_cast<unsigned>(options.size()),
                                                     options.data(), values.data());
      failed != code::success) {
    return unavailable(calls,
                       fmt::format("the kernels do not load: {}",
                                   text::printable(text::trim(std::string_view(log.data())))),
                       failed);
  }
  kernel_functions functions{};
  for (std::size_t index = 0; index < kernel_names.size(); ++index) {
    const status failed = calls.cuModuleGetFunction(&functions[index], module, kernel_names[index]);
    if (failed != code::success) {
      calls.cuModuleUnload(module);
      return unavailable(calls, fmt::format("{} is not in the PTX", kernel_names[index]), failed);
    }
  }
  return functions;
}

}  // namespace berth::runtime::cuda
