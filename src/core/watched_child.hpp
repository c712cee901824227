// SPDX-License-Identifier: Apache-2.0
// Work that may hang, in a child process that is given up when it does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace berth {

enum class child_ending : std::uint8_t {
  done,    // it has closed its end, or could not be started
  silent,  // it sent nothing for too long
  late,    // the time was over
  noisy,   // it sent more than was wanted
};

struct watched_child {
  child_ending how = child_ending::done;
  std::string sent;
  int status = -1;  // as waitpid tells it; -1 where that is not known
};

struct child_limits {
  std::chrono::steady_clock::time_point end;
  std::chrono::milliseconds patience;  // without a byte
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
};

// Runs `work` with the number of a descriptor to write to; the child ends behind it, if `work` does
// not end it or become another program. One that is not done is killed; and not waited for, since a
// process that hangs in the kernel does not even die.
[[nodiscard]] watched_child watch_child(const std::function<void(int to)>& work,
                                        const child_limits& limits);

}  // namespace berth
