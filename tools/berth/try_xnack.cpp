// SPDX-License-Identifier: Apache-2.0
#include "try_xnack.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

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

// Until the other end closes; false where that takes too long.
bool read_until(int from, steady_clock::time_point end, std::string& text) {
  std::array<char, 65536> part{};
  while (text.size() < enough_output) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count();
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    const int count = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    const auto got = ::read(from, part.data(), part.size());
    if (got <= 0) {
      return got == 0;
    }
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return false;
}

// A process that hangs in the kernel does not even die: it is not waited for.
int end_of(pid_t child, bool is_done) {
  if (!is_done) {
    ::kill(child, SIGKILL);
  }
  int status = -1;
  constexpr int turns = 200;
  for (int turn = 0; turn < turns && ::waitpid(child, &status, WNOHANG) == 0; ++turn) {
    ::usleep(5000);
  }
  return status;
}

}  // namespace

result<std::string> rocminfo_with_xnack(milliseconds patience) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return error(errc::internal, "no pipe could be made", "rocminfo");
  }
  const auto child = ::fork();
  if (child == 0) {
    become_rocminfo(ends[1]);
  }
  ::close(ends[1]);
  std::string text;
  const bool is_done = child > 0 && read_until(ends[0], steady_clock::now() + patience, text);
  ::close(ends[0]);
  const int status = child > 0 ? end_of(child, is_done) : -1;
  if (!is_done) {
    return error(errc::file_unreadable, "it did not end in time, and was ended", "rocminfo",
                 "a driver that hangs shows in dmesg");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_started) {
    return error(errc::file_unreadable, "there is none", "rocminfo",
                 "install rocminfo, or put it into PATH");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return error(errc::file_unreadable, "it failed", "rocminfo", "HSA_XNACK=1 rocminfo tells why");
  }
  return text;
}

}  // namespace berth::cli
