// SPDX-License-Identifier: Apache-2.0
// Beginning and end of the preloaded library's life: with the process, and with exits that run no
// destructors.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "interpose/capture/process.hpp"
#include "interpose/capture/real_calls.hpp"

namespace {

using exit_function = void (*)(int);

// The next ones in the order of loading, looked up early: whoever exits may do so from a signal
// handler, or in the child of a fork, where the loader's locks can't be relied on.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): nobody can hand them over
std::atomic<exit_function> next_exit{nullptr};    // _exit
std::atomic<exit_function> next_c_exit{nullptr};  // _Exit
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

exit_function find_next(const char* name) noexcept {
  return reinterpret_cast<exit_function>(berth::interpose::real_dlsym()(RTLD_NEXT, name));
}

[[noreturn]] void exit_for_real(const std::atomic<exit_function>& next, int status) noexcept {
  berth::interpose::end_process("_exit");
  if (const auto real = next.load()) {
    real(status);
  }
  for (;;) {
    ::syscall(SYS_exit_group, status);
  }
}

__attribute__((constructor)) void start_library() noexcept {
  next_exit.store(find_next("_exit"));
  next_c_exit.store(find_next("_Exit"));
  berth::interpose::start_process();
  // Runs no destructors either, but its own list, of which this is the first and so the last.
  static_cast<void>(::at_quick_exit([] { berth::interpose::end_process("quick_exit"); }));
}
__attribute__((destructor)) void end_library() noexcept {
  berth::interpose::end_process("exit");
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void _exit(int status) {
  exit_for_real(next_exit, status);
}
__attribute__((visibility("default"))) void _Exit(int status) noexcept {
  exit_for_real(next_c_exit, status);
}
}
