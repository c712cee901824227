// SPDX-License-Identifier: Apache-2.0
// Beginning and end of the preloaded library's life: with the process, and with exits that run no
// destructors.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "interpose/capture/process.hpp"
#include "interpose/capture/real_calls.hpp"

namespace {

using exit_function = void (*)(int);

[[noreturn]] void exit_for_real(const char* name, int status) noexcept {
  berth::interpose::end_process("_exit");
  if (const auto real =
          reinterpret_cast<exit_function>(berth::interpose::real_dlsym()(RTLD_NEXT, name))) {
    real(status);
  }
  std::abort();
}

__attribute__((constructor)) void start_library() noexcept {
  berth::interpose::start_process();
}
__attribute__((destructor)) void end_library() noexcept {
  berth::interpose::end_process("exit");
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void _exit(int status) {
  exit_for_real("_exit", status);
}
__attribute__((visibility("default"))) void _Exit(int status) noexcept {
  exit_for_real("_Exit", status);
}
}
