// SPDX-License-Identifier: Apache-2.0
// What all conformance cases stand on: the driver under test, memory, streams and events that are
// given back at the end of the case, and checks of results.
//
// Words
//   case    one TEST_P; it runs once for each driver that is here
//   gate    holds a stream at one point until it is opened: a spin kernel that waits for a word of
//           pinned memory. It opens by itself after some seconds, so that no case hangs a device.
//   delay   keeps a stream busy for a while, whatever the host does
//
// Cases never measure real time. A case that does not end is ended by the watchdog.
// Allocate before a gate closes: a runtime may wait for the device to allocate or free.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/result.hpp"
#include "conformance/drivers.hpp"
#include "runtime/driver.hpp"

namespace berth {

// For GoogleTest's messages.
template <typename T>
void PrintTo(const result<T>& answer, std::ostream* out) {
  *out << (answer ? std::string("success") : answer.error().to_string());
}

}  // namespace berth

namespace berth::conformance {

using namespace std::chrono_literals;
using runtime::capability;
using runtime::default_stream;
using runtime::event_handle;
using runtime::per_thread_stream;
using runtime::progress;
using runtime::stream_handle;

using bytes = std::vector<std::byte>;

// The value of a result, or the end of the case with the place and the error.
[[noreturn]] void give_up(const error& why, const std::source_location& where);

template <typename T>
T must(result<T> answer, const std::source_location& where = std::source_location::current()) {
  if (!answer) {
    give_up(answer.error(), where);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*answer);
  }
}

// EXPECT_THAT(gpu().copy(...), succeeds())
MATCHER(succeeds, "succeeds") {
  static_cast<void>(result_listener);
  return arg.has_value();
}

// EXPECT_THAT(gpu().copy(...), fails_with(errc::gpu_invalid_value))
MATCHER_P(fails_with, code, "fails with " + error_id(code)) {
  static_cast<void>(result_listener);
  return !arg.has_value() && arg.error().code() == code;
}

// Fails, and with one of these.
MATCHER_P2(fails_with_any_of, first, second,
           "fails with " + error_id(first) + " or " + error_id(second)) {
  static_cast<void>(result_listener);
  return !arg.has_value() && (arg.error().code() == first || arg.error().code() == second);
}

// EXPECT_THAT(gpu().query_stream(s), gives(progress::pending))
MATCHER_P(gives, value, "gives the value") {
  static_cast<void>(result_listener);
  return arg.has_value() && *arg == value;
}

// A point that a stream does not pass before it is opened. A view: the fixture owns the word.
class gate {
public:
  gate(runtime::driver& on, std::uint32_t* word) noexcept : on_(&on), word_(word) {}

  // Queues the wait. The stream's device is current.
  void close(stream_handle stream) const;
  void open() const noexcept { std::atomic_ref(*word_).store(1, std::memory_order_release); }

private:
  runtime::driver* on_;
  std::uint32_t* word_;
};

class suite : public testing::TestWithParam<driver_row> {
protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] runtime::driver& gpu() const noexcept { return *gpu_; }
  [[nodiscard]] bool has(capability what) const noexcept {
    return gpu_->info().capabilities.has(what);
  }
  [[nodiscard]] bool is(runtime::runtime_kind kind) const noexcept {
    return gpu_->info().kind == kind;
  }
  [[nodiscard]] int device_count() const noexcept {
    return static_cast<int>(gpu_->devices().size());
  }
  [[nodiscard]] const runtime::device_info& device(int index = 0) const {
    return gpu_->devices()[static_cast<std::size_t>(index)];
  }

  // Why a case cannot run here; nothing if it can. For BERTH_NEEDS.
  using reason = std::optional<std::string>;
  [[nodiscard]] reason lacks(capability what) const;
  [[nodiscard]] reason has_after_all(capability what) const;
  [[nodiscard]] reason fewer_devices_than(int count) const;
  [[nodiscard]] reason undefined_outside_sim() const;
  [[nodiscard]] reason tolerated_by_hip() const;
  [[nodiscard]] reason treats_pageable_as_pinned() const;
  [[nodiscard]] reason reaches_pageable() const;
  [[nodiscard]] reason cannot_register() const;
  [[nodiscard]] reason lacks_fine_grained_memory() const;

  // Memory that lives to the end of the case.
  std::byte* device_memory(bytes_t size, int on = 0);
  std::byte* pinned_memory(bytes_t size, const runtime::pinned_options& options = {});
  std::byte* managed_memory(bytes_t size, int on = 0);
  std::byte* pageable_memory(bytes_t size);  // page-aligned, zeros
  std::byte* registered_memory(bytes_t size);
  std::byte* memory_of(memory_kind kind, bytes_t size);
  // The kinds that this driver has.
  [[nodiscard]] std::vector<memory_kind> kinds() const;
  // A counter for kernel_verify, 0 at first, in memory of the device; read it after synchronising.
  std::uint64_t* counter(int on = 0);
  void set_count(std::uint64_t* counter, std::uint64_t value);
  std::uint64_t count_in(const std::uint64_t* counter);

  stream_handle stream(const runtime::stream_options& options = {}, int on = 0);
  stream_handle blocking_stream(int on = 0);
  event_handle event(const runtime::event_options& options = {}, int on = 0);
  gate new_gate();

  // Keeps the stream busy for about that long. Needs capability::kernels.
  void delay(stream_handle stream, std::chrono::nanoseconds time = 20ms);

  // Something to do at the end of the case, in reverse order, before the driver goes.
  void at_end(std::function<void()> action) { endings_.push_back(std::move(action)); }

  // Writes and reads any kind of memory from here; ordered as default_stream.
  void put(void* to, const bytes& data);
  void put_pattern(void* to, bytes_t size, std::uint64_t seed);
  bytes take(const void* from, bytes_t size);
  // How many bytes of any kind of memory differ from the pattern.
  std::uint64_t mismatches_in(const void* memory, bytes_t size, std::uint64_t seed);

  // After an error: copies and streams work as before.
  void expect_usable();

private:
  template <typename T>
  void free_at_end(T* memory, result<void> (runtime::driver::*how)(void*));

  std::shared_ptr<runtime::driver> gpu_;
  std::vector<std::function<void()>> endings_;
  std::vector<gate> gates_;
  std::vector<runtime::memory_amounts> before_;  // by device
};

bytes pattern(bytes_t size, std::uint64_t seed, bytes_t offset = 0);
bytes repeated(bytes_t size, int value);
inline std::byte* as_bytes(void* memory) noexcept {
  return static_cast<std::byte*>(memory);
}

}  // namespace berth::conformance

// Skips the case if the expression gives a reason.
#define BERTH_NEEDS(obstacle)                     \
  if (const auto why_not = (obstacle); why_not) { \
    GTEST_SKIP() << *why_not;                     \
  }                                               \
  static_assert(true, "so that a semicolon follows")

// Runs the cases of a suite over all drivers that are here.
#define BERTH_CONFORMANCE_SUITE(name)                                         \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(name);                        \
  INSTANTIATE_TEST_SUITE_P(, name, testing::ValuesIn(instantiated_drivers()), \
                           [](const auto& which) { return test_name_of(which.param); })
