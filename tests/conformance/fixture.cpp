// SPDX-License-Identifier: Apache-2.0
#include "conformance/fixture.hpp"

#include <sys/mman.h>

#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

namespace berth::conformance {
namespace {

// Longer than any host is kept from running, shorter than the watchdog's patience.
constexpr auto longest_hold = 5s;

// The same words for all drivers of a runtime, so that reasons of skips add up.
std::string runtime_name(const runtime::driver& gpu) {
  return std::string(runtime::to_string(gpu.info().kind));
}

}  // namespace

void give_up(const error& why, const std::source_location& where) {
  throw std::runtime_error(
      fmt::format("{}:{}: {}", where.file_name(), where.line(), why.to_string()));
}

void gate::close(stream_handle stream) const {
  must(on_->launch(runtime::kernel_spin{word_, longest_hold}, stream));
}

void suite::SetUp() {
  gpu_ = must(driver_of(GetParam()));
  must(gpu_->set_current_device(0));
  for (int index = 0; index < device_count(); ++index) {
    if (has(capability::kernels)) {
      // Now: a runtime may wait for the device to load code, and a gate would be in its way.
      must(gpu_->prepare_kernels(index));
    }
    before_.push_back(must(gpu_->memory_info(index)));
  }
}

void suite::TearDown() {
  if (gpu_ == nullptr) {
    return;
  }
  for (const auto& held : gates_) {
    held.open();
  }
  EXPECT_THAT(gpu().set_current_device(0), succeeds());
  for (int index = 0; index < device_count(); ++index) {
    EXPECT_THAT(gpu().synchronize_device(index), succeeds());
  }
  while (!endings_.empty()) {
    const auto action = std::move(endings_.back());
    endings_.pop_back();
    action();
  }
  // Only the simulator's memory is the case's alone.
  for (std::size_t index = 0; is(runtime::runtime_kind::sim) && index < before_.size(); ++index) {
    EXPECT_EQ(must(gpu().memory_info(static_cast<int>(index))).free, before_[index].free)
        << "device " << index << " has not got back all of its memory";
  }
}

suite::reason suite::lacks(capability what) const {
  return has(what) ? reason()
                   : fmt::format("{} lacks {}", runtime_name(gpu()), runtime::to_string(what));
}

suite::reason suite::has_after_all(capability what) const {
  return has(what) ? reason("for drivers that lack what this one has") : reason();
}

suite::reason suite::fewer_devices_than(int count) const {
  return device_count() >= count ? reason() : fmt::format("needs {} devices", count);
}

suite::reason suite::undefined_outside_sim() const {
  return is(runtime::runtime_kind::sim)
             ? reason()
             : reason("undefined on a real runtime; the simulator checks");
}

suite::reason suite::tolerated_by_hip() const {
  return is(runtime::runtime_kind::hip) ? reason("HIP tolerates it") : reason();
}

suite::reason suite::treats_pageable_as_pinned() const {
  return device().pageable_uses_host_page_tables.value_or(false)
             ? reason("the device uses the host's page tables: nothing is promised for pageable")
             : reason();
}

suite::reason suite::reaches_pageable() const {
  return device().pageable_access.value_or(false) ? reason("the device reaches pageable memory")
                                                  : reason();
}

suite::reason suite::cannot_register() const {
  return device().host_register_supported.value_or(true)
             ? reason()
             : reason("the device does not support registration");
}

// AMD's: only devices of an xGMI hive give it.
suite::reason suite::lacks_fine_grained_memory() const {
  return device().fine_grained_memory.value_or(true)
             ? reason()
             : reason("the device has no fine-grained memory of its own");
}

template <typename T>
void suite::free_at_end(T* memory, result<void> (runtime::driver::*how)(void*)) {
  at_end([this, memory, how] { EXPECT_THAT((gpu().*how)(memory), succeeds()); });
}

std::byte* suite::device_memory(bytes_t size, int on) {
  auto* memory = as_bytes(must(gpu().allocate_device(on, size)));
  free_at_end(memory, &runtime::driver::free_device);
  return memory;
}

std::byte* suite::pinned_memory(bytes_t size, const runtime::pinned_options& options) {
  auto* memory = as_bytes(must(gpu().allocate_pinned(size, options)));
  free_at_end(memory, &runtime::driver::free_pinned);
  return memory;
}

std::byte* suite::managed_memory(bytes_t size, int on) {
  auto* memory = as_bytes(must(gpu().allocate_managed(on, size)));
  free_at_end(memory, &runtime::driver::free_managed);
  return memory;
}

// Pages of its own, so that registering them touches nothing of the heap.
std::byte* suite::pageable_memory(bytes_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  at_end([memory, size] { munmap(memory, size); });
  return as_bytes(memory);
}

std::byte* suite::registered_memory(bytes_t size) {
  auto* memory = pageable_memory(size);
  must(gpu().register_host(memory, size));
  free_at_end(memory, &runtime::driver::unregister_host);
  return memory;
}

std::byte* suite::memory_of(memory_kind kind, bytes_t size) {
  switch (kind) {
    case memory_kind::pageable:
      return pageable_memory(size);
    case memory_kind::registered:
      return registered_memory(size);
    case memory_kind::pinned:
      return pinned_memory(size);
    case memory_kind::managed:
      return managed_memory(size);
    case memory_kind::device:
      return device_memory(size);
    case memory_kind::unknown:
      break;
  }
  throw std::logic_error("no memory is of an unknown kind");
}

std::vector<memory_kind> suite::kinds() const {
  std::vector<memory_kind> all{memory_kind::pageable, memory_kind::pinned, memory_kind::device};
  if (!cannot_register()) {
    all.push_back(memory_kind::registered);
  }
  if (has(capability::managed)) {
    all.push_back(memory_kind::managed);
  }
  return all;
}

std::uint64_t* suite::counter(int on) {
  auto* made = reinterpret_cast<std::uint64_t*>(device_memory(sizeof(std::uint64_t), on));
  set_count(made, 0);
  must(gpu().synchronize_device(on));
  return made;
}

void suite::set_count(std::uint64_t* counter, std::uint64_t value) {
  must(gpu().copy(counter, &value, sizeof value));
}

std::uint64_t suite::count_in(const std::uint64_t* counter) {
  std::uint64_t value = 0;
  must(gpu().copy(&value, counter, sizeof value));
  return value;
}

stream_handle suite::stream(const runtime::stream_options& options, int on) {
  const auto made = must(gpu().create_stream(on, options));
  at_end([this, made] { EXPECT_THAT(gpu().destroy_stream(made), succeeds()); });
  return made;
}

stream_handle suite::blocking_stream(int on) {
  return stream({.ordering = runtime::stream_ordering::blocking}, on);
}

event_handle suite::event(const runtime::event_options& options, int on) {
  const auto made = must(gpu().create_event(on, options));
  at_end([this, made] { EXPECT_THAT(gpu().destroy_event(made), succeeds()); });
  return made;
}

gate suite::new_gate() {
  auto* word = reinterpret_cast<std::uint32_t*>(pinned_memory(sizeof(std::uint32_t)));
  *word = 0;
  gates_.emplace_back(gpu(), word);
  return gates_.back();
}

void suite::delay(stream_handle stream, std::chrono::nanoseconds time) {
  must(gpu().launch(runtime::kernel_spin{nullptr, time}, stream));
}

void suite::put(void* to, const bytes& data) {
  must(gpu().copy(to, data.data(), data.size()));
  must(gpu().synchronize_stream(default_stream));
}

void suite::put_pattern(void* to, bytes_t size, std::uint64_t seed) {
  put(to, pattern(size, seed));
}

bytes suite::take(const void* from, bytes_t size) {
  bytes data(size);
  must(gpu().copy(data.data(), from, size));
  return data;
}

std::uint64_t suite::mismatches_in(const void* memory, bytes_t size, std::uint64_t seed) {
  return runtime::count_mismatches(take(memory, size).data(), size, seed);
}

void suite::expect_usable() {
  constexpr bytes_t size = 4096;
  auto* memory = device_memory(size);
  put_pattern(memory, size, 77);
  EXPECT_EQ(mismatches_in(memory, size, 77), 0U);
  const auto one = stream();
  EXPECT_THAT(gpu().fill_async(memory, std::byte{9}, size, one), succeeds());
  EXPECT_THAT(gpu().synchronize_stream(one), succeeds());
  EXPECT_EQ(take(memory, size), repeated(size, 9));
}

bytes pattern(bytes_t size, std::uint64_t seed, bytes_t offset) {
  bytes data(size);
  runtime::write_pattern(data.data(), size, seed, offset);
  return data;
}

bytes repeated(bytes_t size, int value) {
  return bytes(size, static_cast<std::byte>(value));
}

}  // namespace berth::conformance
