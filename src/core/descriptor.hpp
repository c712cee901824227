// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed with its object.
#pragma once

#include <unistd.h>

#include <utility>

namespace berth {

class descriptor {
public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&&) = delete;
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return number_; }  // negative: none
  void close() noexcept {
    if (number_ >= 0) {
      ::close(std::exchange(number_, -1));
    }
  }

private:
  int number_;
};

}  // namespace berth
