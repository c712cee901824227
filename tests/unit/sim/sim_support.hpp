// SPDX-License-Identifier: Apache-2.0
// What the tests of the simulator share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/sim/sim_driver.hpp"

namespace berth::test {

using namespace std::chrono_literals;
using runtime::default_stream;
using runtime::sim_driver;
using runtime::stream_handle;

inline constexpr std::byte poison{0xDB};

inline std::shared_ptr<sim_driver> open_sim(const runtime::sim::options& how) {
  auto made = runtime::make_sim_driver(how);
  return std::move(made).value();
}

inline std::shared_ptr<sim_driver> open_sim(std::string_view text) {
  return open_sim(runtime::sim::options::parse(text).value());
}

// For a call whose value does not matter; throws its error.
template <typename T>
void must(result<T> what) {
  static_cast<void>(std::move(what).value());
}

// Host time that passes over `what`.
template <typename What>
std::chrono::nanoseconds host_time(runtime::driver& on, const What& what) {
  const auto before = on.now();
  what();
  return on.now() - before;
}

// Host memory with a pattern, or filled with one byte.
class bytes {
public:
  explicit bytes(std::size_t size, std::byte value = std::byte{0}) : data_(size, value) {}
  static bytes pattern(std::size_t size, std::uint64_t seed) {
    bytes made(size);
    runtime::write_pattern(made.data(), size, seed);
    return made;
  }
  [[nodiscard]] std::byte* data() noexcept { return data_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return data_.size(); }
  [[nodiscard]] std::uint64_t mismatches(std::uint64_t seed) const {
    return runtime::count_mismatches(data_.data(), data_.size(), seed);
  }

private:
  std::vector<std::byte> data_;
};

inline bool all_are(const void* memory, std::size_t size, std::byte value) {
  const auto* const first = static_cast<const std::byte*>(memory);
  return std::all_of(first, first + size, [value](std::byte one) { return one == value; });
}

inline void expect_error(const berth::error& got, errc wanted) {
  EXPECT_EQ(got.code(), wanted) << got.to_string();
}

}  // namespace berth::test
