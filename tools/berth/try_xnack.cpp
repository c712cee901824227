// SPDX-License-Identifier: Apache-2.0
#include "try_xnack.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "core/watched_child.hpp"

namespace berth::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t enough_output = std::size_t{16} * 1024 * 1024;
constexpr int not_started = 127;

[[noreturn]] void become_rocminfo(int out) {
  // NOLINTBEGIN(concurrency-mt-unsafe): the child of a fork has one thread
  ::setenv("HSA_XNACK", "1", 1);
  // NOLINTEND(concurrency-mt-unsafe)
  ::dup2(out, STDOUT_FILENO);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::execlp("rocminfo", "rocminfo", nullptr);
  ::execl("/opt/rocm/bin/rocminfo", "rocminfo", nullptr);
  ::_exit(not_started);
}

}  // namespace

result<std::string> rocminfo_with_xnack(milliseconds patience) {
  auto seen = watch_child(
      become_rocminfo,
      {.end = steady_clock::now() + patience, .patience = patience, .most_bytes = enough_output});
  if (seen.how != child_ending::done) {
    return error(errc::file_unreadable, "it did not end in time, and was ended", "rocminfo",
                 "a driver that hangs shows in dmesg");
  }
  if (WIFEXITED(seen.status) && WEXITSTATUS(seen.status) == not_started) {
    return error(errc::file_unreadable, "there is none", "rocminfo",
                 "install rocminfo, or put it into PATH");
  }
  if (!WIFEXITED(seen.status) || WEXITSTATUS(seen.status) != 0) {
    return error(errc::file_unreadable, "it failed", "rocminfo", "HSA_XNACK=1 rocminfo tells why");
  }
  return std::move(seen.sent);
}

}  // namespace berth::cli
