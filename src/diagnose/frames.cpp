// SPDX-License-Identifier: Apache-2.0
#include "diagnose/frames.hpp"

#include <algorithm>
#include <array>

namespace berth::diagnose {
namespace {

// What a frame says. Python's frames have neither a symbol nor a file.
struct frame_parts {
  std::string_view symbol;  // empty: the file has no name for the place
  std::string_view file;    // empty where the frame names a line of source instead
};

struct named_owner {
  std::string_view begin;  // of a file's name, or of a frame
  frame_owner owner;
};

constexpr std::array file_owners{
    named_owner{"libcuda", frame_owner::runtime},  // also libcudart
    named_owner{"libcupti", frame_owner::runtime},
    named_owner{"libnvidia-", frame_owner::runtime},
    named_owner{"libamdhip64", frame_owner::runtime},
    named_owner{"libhsa-", frame_owner::runtime},
    named_owner{"libhsakmt", frame_owner::runtime},
    named_owner{"libroctracer", frame_owner::runtime},
    named_owner{"librocprofiler", frame_owner::runtime},
    named_owner{"libroctx", frame_owner::runtime},
    named_owner{"libberth", frame_owner::runtime},
    named_owner{"libtorch", frame_owner::framework},
    named_owner{"libc10", frame_owner::framework},
    named_owner{"libcaffe2", frame_owner::framework},
    named_owner{"libjax", frame_owner::framework},
    named_owner{"xla_", frame_owner::framework},
    named_owner{"libtensorflow", frame_owner::framework},
    named_owner{"libonnxruntime", frame_owner::framework},
    named_owner{"libcublas", frame_owner::framework},
    named_owner{"libcudnn", frame_owner::framework},
    named_owner{"libcufft", frame_owner::framework},
    named_owner{"libcurand", frame_owner::framework},
    named_owner{"libcusolver", frame_owner::framework},
    named_owner{"libcusparse", frame_owner::framework},
    named_owner{"libhipblas", frame_owner::framework},
    named_owner{"librocblas", frame_owner::framework},
    named_owner{"librocfft", frame_owner::framework},
    named_owner{"librocsolver", frame_owner::framework},
    named_owner{"librocsparse", frame_owner::framework},
    named_owner{"libMIOpen", frame_owner::framework},
    named_owner{"libnccl", frame_owner::framework},
    named_owner{"librccl", frame_owner::framework},
    named_owner{"libpython", frame_owner::interpreter},
    named_owner{"libpypy", frame_owner::interpreter},
    named_owner{"libjvm", frame_owner::interpreter},
    named_owner{"libjli", frame_owner::interpreter},
    named_owner{"libjulia", frame_owner::interpreter},
    named_owner{"libnode", frame_owner::interpreter},
    named_owner{"libperl", frame_owner::interpreter},
    named_owner{"libruby", frame_owner::interpreter},
    named_owner{"libffi", frame_owner::interpreter},
    named_owner{"_ctypes.", frame_owner::interpreter},
    named_owner{"libstdc++", frame_owner::start_up},
    named_owner{"libc++", frame_owner::start_up},
    named_owner{"libgcc_s", frame_owner::start_up},
    named_owner{"libgomp", frame_owner::start_up},
    named_owner{"libpthread", frame_owner::start_up},
    named_owner{"libc.so", frame_owner::start_up},
    named_owner{"libc-", frame_owner::start_up},
    named_owner{"ld-linux", frame_owner::start_up},
};

constexpr std::array symbol_owners{
    // The CUDA runtime may be linked into the program; its own functions have no other name.
    named_owner{"libcudart_static_", frame_owner::runtime},
    named_owner{"cudart::", frame_owner::runtime},
    named_owner{"__cudart", frame_owner::runtime},
    named_owner{"_PyEval_", frame_owner::interpreter},
    named_owner{"_PyObject_", frame_owner::interpreter},
    named_owner{"_PyFunction_", frame_owner::interpreter},
    named_owner{"PyEval_", frame_owner::interpreter},
    named_owner{"PyObject_", frame_owner::interpreter},
    named_owner{"PyRun_", frame_owner::interpreter},
    named_owner{"PyVectorcall_", frame_owner::interpreter},
    named_owner{"Py_BytesMain", frame_owner::interpreter},
    named_owner{"Py_RunMain", frame_owner::interpreter},
    named_owner{"_start in ", frame_owner::start_up},
    named_owner{"__libc_", frame_owner::start_up},
};

// Programs that run other programs: the name, and maybe a version (python3.12).
constexpr std::array<std::string_view, 7> interpreters{"python", "pypy", "java", "node",
                                                       "julia",  "perl", "ruby"};

// Of Python frames: the frameworks themselves, and what calls them.
constexpr std::array<std::string_view, 6> python_prefixes{
    "torch/", "<built-in", "nn.Module:", "<frozen", "threading.py", "contextlib.py"};
constexpr std::array<std::string_view, 3> python_parts{"/torch/", "/site-packages/",
                                                       "/dist-packages/"};

constexpr std::string_view before_file = " in ";
constexpr std::string_view before_offset = "+0x";

bool is_upper(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z';
}

bool is_hexadecimal(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char digit) {
    return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
  });
}

frame_parts parts_of(std::string_view frame) noexcept {
  if (const auto place = frame.rfind(before_file); place != std::string_view::npos) {
    return {frame.substr(0, place), frame.substr(place + before_file.size())};
  }
  const auto place = frame.rfind(before_offset);
  if (place != std::string_view::npos &&
      is_hexadecimal(frame.substr(place + before_offset.size()))) {
    return {{}, frame.substr(0, place)};
  }
  return {frame, {}};
}

bool is_interpreter(std::string_view file) noexcept {
  constexpr std::string_view of_versions = "0123456789.dmt-";
  return std::any_of(interpreters.begin(), interpreters.end(), [&](std::string_view name) {
    return file.starts_with(name) &&
           file.find_first_not_of(of_versions, name.size()) == std::string_view::npos;
  });
}

// cudaMemcpy, hipMalloc: where a runtime is linked into the program, its functions are in the
// program's file. They have no line of source, which the program's own may have.
bool is_runtime_call(std::string_view symbol) noexcept {
  constexpr std::array<std::string_view, 2> prefixes{"cuda", "hip"};
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return symbol.size() > prefix.size() && symbol.starts_with(prefix) &&
           is_upper(symbol[prefix.size()]) &&
           symbol.find_first_of(":(< ") == std::string_view::npos;
  });
}

template <std::size_t Count>
const named_owner* first_that_fits(const std::array<named_owner, Count>& table,
                                   std::string_view text) noexcept {
  const auto found = std::find_if(table.begin(), table.end(), [&](const named_owner& row) {
    return text.starts_with(row.begin);
  });
  return found != table.end() ? &*found : nullptr;
}

bool is_python_library(std::string_view frame) noexcept {
  return std::any_of(python_prefixes.begin(), python_prefixes.end(),
                     [&](std::string_view prefix) { return frame.starts_with(prefix); }) ||
         std::any_of(python_parts.begin(), python_parts.end(), [&](std::string_view part) {
           return frame.find(part) != std::string_view::npos;
         });
}

bool is_address(std::string_view frame) noexcept {
  constexpr std::string_view prefix = "0x";
  return frame.starts_with(prefix) && is_hexadecimal(frame.substr(prefix.size()));
}

bool has_symbol(std::string_view frame) noexcept {
  return !is_address(frame) && !parts_of(frame).symbol.empty();
}

bool is_in_library(std::string_view frame) noexcept {
  return parts_of(frame).file.find(".so") != std::string_view::npos;
}

enum class naming : std::uint8_t { by_symbol, by_file };

trace::name_id innermost_of(const trace::trace& events, const trace::call_site& site,
                            frame_owner owner, naming how) {
  const auto found =
      std::find_if(site.frames.begin(), site.frames.end(), [&](trace::name_id frame) {
        const auto text = events.text(frame);
        return owner_of_frame(text) == owner && has_symbol(text) == (how == naming::by_symbol);
      });
  return found != site.frames.end() ? *found : 0;
}

struct choice {
  frame_owner owner;
  naming how;
};

// The first that a stack has is its place.
constexpr std::array choices{choice{frame_owner::program, naming::by_symbol},
                             choice{frame_owner::framework, naming::by_symbol},
                             choice{frame_owner::program, naming::by_file},
                             choice{frame_owner::framework, naming::by_file}};

trace::name_id best_frame(const trace::trace& events, const trace::call_site& site) {
  for (const auto& [owner, how] : choices) {
    if (const auto found = innermost_of(events, site, owner, how); found != 0) {
      return found;
    }
  }
  return 0;
}

// The outermost that has a symbol and is code that somebody wrote for the task.
trace::name_id outermost_named(const trace::trace& events, const trace::call_site& site) {
  const auto found =
      std::find_if(site.frames.rbegin(), site.frames.rend(), [&](trace::name_id frame) {
        const auto text = events.text(frame);
        const auto owner = owner_of_frame(text);
        return has_symbol(text) && parts_of(text).symbol != "main" &&
               (owner == frame_owner::program || owner == frame_owner::framework);
      });
  return found != site.frames.rend() ? *found : 0;
}

}  // namespace

frame_owner owner_of_frame(std::string_view frame) noexcept {
  if (is_python_library(frame)) {
    return frame_owner::framework;
  }
  if (const auto* const known = first_that_fits(symbol_owners, frame); known != nullptr) {
    return known->owner;
  }
  const auto [symbol, file] = parts_of(frame);
  // Without a symbol and a line the file alone is known; an old source prints only its name.
  const auto name = file.empty() ? symbol : file;
  if (const auto* const known = first_that_fits(file_owners, name); known != nullptr) {
    return known->owner;
  }
  if (is_interpreter(file)) {
    return frame_owner::interpreter;
  }
  return !file.empty() && is_runtime_call(symbol) ? frame_owner::runtime : frame_owner::program;
}

trace::name_id own_frame(const trace::trace& events, const trace::call_site& site) {
  const auto named = innermost_of(events, site, frame_owner::program, naming::by_symbol);
  return named != 0 ? named : innermost_of(events, site, frame_owner::program, naming::by_file);
}

stack_place place_in(const trace::trace& events, const trace::call_site& site) {
  stack_place place{best_frame(events, site)};
  if (place.function != 0 && is_in_library(events.text(place.function))) {
    place.caller = outermost_named(events, site);
  }
  if (place.caller == place.function) {
    place.caller = 0;
  }
  return place;
}

std::string describe(const trace::trace& events, const stack_place& place) {
  std::string text(events.text(place.function));
  if (place.caller != 0) {
    text += " (from ";
    text += events.text(place.caller);
    text += ")";
  }
  return text;
}

}  // namespace berth::diagnose
