// SPDX-License-Identifier: Apache-2.0
// What the recorder does must not change the errno that the program sees.
#pragma once

#include <cerrno>

namespace berth::interpose {

class kept_errno {
public:
  kept_errno() noexcept : value_(errno) {}
  ~kept_errno() { errno = value_; }
  kept_errno(const kept_errno&) = delete;
  kept_errno& operator=(const kept_errno&) = delete;
  kept_errno(kept_errno&&) = delete;
  kept_errno& operator=(kept_errno&&) = delete;

private:
  int value_;
};

}  // namespace berth::interpose
