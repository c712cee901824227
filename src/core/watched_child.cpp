// SPDX-License-Identifier: Apache-2.0
#include "core/watched_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "core/descriptor.hpp"

namespace berth {
namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

milliseconds until(clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - clock::now()));
}

void listen(int from, const child_limits& limits, watched_child& seen) {
  std::array<char, 65536> part{};
  while (seen.sent.size() < limits.most_bytes) {
    // Also where more would be there at once: a deadline that has passed is one.
    if (clock::now() >= limits.end) {
      seen.how = child_ending::late;
      return;
    }
    const auto wait = std::min(limits.patience, until(limits.end));
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, static_cast<int>(wait.count()));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      seen.how = until(limits.end).count() == 0 ? child_ending::late : child_ending::silent;
      return;
    }
    const auto got = ::read(from, part.data(), part.size());
    if (got <= 0) {
      return;
    }
    seen.sent.append(part.data(), static_cast<std::size_t>(got));
  }
  seen.how = child_ending::noisy;
}

void end_child(pid_t child, watched_child& seen) {
  const bool is_done = seen.how == child_ending::done;
  if (!is_done) {
    ::kill(child, SIGKILL);
  }
  // Who has closed its end is about to end.
  const int most_turns = is_done ? 1000 : 20;
  for (int turn = 0; turn < most_turns; ++turn) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != 0) {
      seen.status = status;
      return;
    }
    ::usleep(1000);
  }
}

}  // namespace

watched_child watch_child(const std::function<void(int to)>& work, const child_limits& limits) {
  watched_child seen;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return seen;
  }
  const descriptor from(ends[0]);
  descriptor to(ends[1]);
  const auto child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    work(to.get());
    ::_exit(0);
  }
  to.close();
  if (child > 0) {
    listen(from.get(), limits, seen);
    end_child(child, seen);
  }
  return seen;
}

}  // namespace berth
