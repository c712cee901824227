// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/sdma_queue.hpp"

#include <atomic>
#include <string>

#include "emulator/preload/emulated_machine.hpp"
#include "emulator/preload/hsa_abi.hpp"

namespace berth::emulator {
namespace {

constexpr std::uint64_t word_bytes = 4;

// Bits [low, low + count) of a word of a packet.
constexpr std::uint32_t bits(std::uint32_t word, unsigned low, unsigned count) noexcept {
  return (word >> low) & ((1U << count) - 1U);
}

std::uint64_t wide(const std::uint32_t* packet, unsigned word) noexcept {
  return packet[word] | (std::uint64_t{packet[word + 1]} << 32U);
}

// Lengths in words of the packets that have a fixed one.
constexpr std::uint32_t linear_words = 7;
constexpr std::uint32_t rect_words = 13;
constexpr std::uint32_t fill_words = 5;
constexpr std::uint32_t fence_words = 4;
constexpr std::uint32_t trap_words = 2;
constexpr std::uint32_t poll_words = 6;
constexpr std::uint32_t atomic_words = 8;
constexpr std::uint32_t timestamp_words = 3;
constexpr std::uint32_t cache_words = 5;

std::uint64_t linear_bytes(const std::uint32_t* packet) noexcept {
  return bits(packet[1], 0, 22) + std::uint64_t{1};
}

bool is_linear_copy(const std::uint32_t* packet) noexcept {
  return bits(packet[0], 0, 8) == static_cast<std::uint32_t>(hsa::sdma_operation::copy) &&
         bits(packet[0], 8, 8) == hsa::sdma_copy_linear;
}

bool poll_satisfied(const std::uint32_t* packet, std::uint32_t found) noexcept {
  const auto value = found & packet[4];
  const auto reference = packet[3];
  switch (bits(packet[0], 28, 3)) {
    case 1:
      return value < reference;
    case 2:
      return value <= reference;
    case 3:
      return value == reference;
    case 4:
      return value != reference;
    case 5:
      return value >= reference;
    case 6:
      return value > reference;
    default:
      return true;
  }
}

}  // namespace

const std::uint32_t* sdma_queue::packet_at(std::uint64_t read) const noexcept {
  return reinterpret_cast<const std::uint32_t*>(ring().base + read % ring().bytes);
}

void sdma_queue::record(std::string_view packet, std::uint64_t address) const {
  if (machine().trace.wanted()) {
    machine().trace.write(trace_line("packet")
                              .field("packet", packet)
                              .field("engine", "dma")
                              .field("gpu", gpu())
                              .field("queue", id())
                              .address("address", address)
                              .field("device_ns", now_ns()));
  }
}

step_outcome sdma_queue::take_packet(std::uint64_t read, std::uint64_t available) {
  const auto* const packet = packet_at(read);
  const auto operation = static_cast<hsa::sdma_operation>(bits(packet[0], 0, 8));
  switch (operation) {
    case hsa::sdma_operation::nop:
      consume((1 + bits(packet[0], 16, 14)) * word_bytes);
      return step_outcome::progressed;
    case hsa::sdma_operation::copy:
      return take_copy(read, available);
    case hsa::sdma_operation::fill:
      return take_fill(packet);
    case hsa::sdma_operation::poll:
      return take_poll(packet);
    case hsa::sdma_operation::atomic:
      return take_atomic(packet);
    case hsa::sdma_operation::trap:
      return take_trap(packet);
    case hsa::sdma_operation::fence:
      return take_write<std::uint32_t>(packet, fence_words, packet[3], "fence");
    case hsa::sdma_operation::timestamp:
      return take_write<std::uint64_t>(packet, timestamp_words, now_ns() / ns_per_tick,
                                       "timestamp");
    case hsa::sdma_operation::cache:
      consume(cache_words * word_bytes);
      return step_outcome::progressed;
  }
  hang("unknown SDMA packet, operation " + std::to_string(bits(packet[0], 0, 8)));
  return step_outcome::idle;
}

step_outcome sdma_queue::take_copy(std::uint64_t read, std::uint64_t available) {
  const auto* const packet = packet_at(read);
  const auto kind = bits(packet[0], 8, 8);
  if (kind == hsa::sdma_copy_linear) {
    return take_linear(read, available);
  }
  if (kind == hsa::sdma_copy_rect) {
    return take_rect(packet);
  }
  hang("unknown SDMA copy packet, kind " + std::to_string(kind));
  return step_outcome::idle;
}

// The runtime splits a copy at the largest size of a packet. The pieces stand side by side in the
// ring, and together they are what the program asked for.
step_outcome sdma_queue::take_linear(std::uint64_t read, std::uint64_t available) {
  const auto* const first = packet_at(read);
  byte_move copy{.destination = wide(first, 5), .source = wide(first, 3)};
  std::uint32_t packets = 0;
  std::uint64_t at = read;
  const auto end = read + available;
  while (end - at >= linear_words * word_bytes) {
    const auto* const packet = packet_at(at);
    const auto done = copy.shape.row_bytes;
    if (!is_linear_copy(packet) || wide(packet, 5) != copy.destination + done ||
        wide(packet, 3) != copy.source + done) {
      break;
    }
    copy.shape.row_bytes += linear_bytes(packet);
    ++packets;
    at += linear_words * word_bytes;
  }
  move_bytes_of_ring_ = at - read;
  start_move(std::move(copy), carrier::dma, packets, {});
  return step_outcome::progressed;
}

// Counted in elements of 1 to 16 bytes: offsets, pitches less one, and sizes less one.
step_outcome sdma_queue::take_rect(const std::uint32_t* packet) {
  const auto unit = bits(packet[0], 29, 3);
  struct side {
    std::uint64_t address, x, y, z, pitch, slice_pitch;
    [[nodiscard]] std::uint64_t start(unsigned shift) const {
      return address + ((x + y * pitch + z * slice_pitch) << shift);
    }
  };
  const auto side_at = [&](unsigned word) {
    return side{.address = wide(packet, word),
                .x = bits(packet[word + 2], 0, 14),
                .y = bits(packet[word + 2], 16, 14),
                .z = bits(packet[word + 3], 0, 11),
                .pitch = std::uint64_t{bits(packet[word + 3], 13, 19)} + 1,
                .slice_pitch = std::uint64_t{bits(packet[word + 4], 0, 28)} + 1};
  };
  const auto from = side_at(1);
  const auto to = side_at(6);
  byte_move copy{.destination = to.start(unit),
                 .source = from.start(unit),
                 .shape = {.row_bytes = (std::uint64_t{bits(packet[11], 0, 14)} + 1) << unit,
                           .rows = std::uint64_t{bits(packet[11], 16, 14)} + 1,
                           .slices = std::uint64_t{bits(packet[12], 0, 11)} + 1,
                           .destination_pitch = to.pitch << unit,
                           .source_pitch = from.pitch << unit,
                           .destination_slice_pitch = to.slice_pitch << unit,
                           .source_slice_pitch = from.slice_pitch << unit}};
  move_bytes_of_ring_ = rect_words * word_bytes;
  start_move(std::move(copy), carrier::dma, 1, {});
  return step_outcome::progressed;
}

step_outcome sdma_queue::take_fill(const std::uint32_t* packet) {
  constexpr std::uint32_t words = 2;
  const bool by_words = bits(packet[0], 30, 2) == words;
  const std::uint64_t unit = by_words ? word_bytes : 1;
  const auto count = bits(packet[4], 0, 22) + unit;
  byte_move fill{.destination = wide(packet, 1), .shape = {.row_bytes = count / unit * unit}};
  fill.pattern.assign(reinterpret_cast<const char*>(&packet[3]), unit);
  move_bytes_of_ring_ = fill_words * word_bytes;
  start_move(std::move(fill), carrier::dma, 1, {});
  return step_outcome::progressed;
}

void sdma_queue::move_ended() {
  consume(move_bytes_of_ring_);
}

step_outcome sdma_queue::take_poll(const std::uint32_t* packet) {
  const bool of_memory = bits(packet[0], 31, 1) != 0;
  const auto address = wide(packet, 1);
  if (of_memory) {
    auto* const word = machine().word<std::uint32_t>(address);
    if (word == nullptr) {
      fault_at(address);
      return step_outcome::idle;
    }
    if (!poll_satisfied(packet, std::atomic_ref(*word).load(std::memory_order_acquire))) {
      polled_ = true;
      return step_outcome::waiting;
    }
    // A signal's value has 8 bytes, polled in two halves.
    follow_signal(address & ~std::uint64_t{7}, polled_);
    record("poll", address);
  }
  polled_ = false;
  consume(poll_words * word_bytes);
  return step_outcome::progressed;
}

step_outcome sdma_queue::take_atomic(const std::uint32_t* packet) {
  const auto operation = bits(packet[0], 25, 7);
  const auto address = wide(packet, 1);
  auto* const word = machine().word<std::uint64_t>(address);
  if (operation != hsa::sdma_atomic_add64) {
    hang("unknown SDMA atomic operation " + std::to_string(operation));
    return step_outcome::idle;
  }
  if (word == nullptr) {
    fault_at(address);
    return step_outcome::idle;
  }
  machine().clock.complete(address, now_ns());
  record("atomic", address);
  std::atomic_ref(*word).fetch_add(wide(packet, 3), std::memory_order_seq_cst);
  consume(atomic_words * word_bytes);
  return step_outcome::progressed;
}

step_outcome sdma_queue::take_trap(const std::uint32_t* packet) {
  const auto event = bits(packet[1], 0, 28);
  record("trap", event);
  consume(trap_words * word_bytes);
  machine().events.set(event);
  return step_outcome::progressed;
}

template <typename Word>
step_outcome sdma_queue::take_write(const std::uint32_t* packet, std::uint32_t words, Word value,
                                    std::string_view name) {
  const auto address = wide(packet, 1);
  auto* const word = machine().word<Word>(address);
  if (word == nullptr) {
    fault_at(address);
    return step_outcome::idle;
  }
  std::atomic_ref(*word).store(value, std::memory_order_release);
  record(name, address);
  consume(words * word_bytes);
  return step_outcome::progressed;
}

}  // namespace berth::emulator
