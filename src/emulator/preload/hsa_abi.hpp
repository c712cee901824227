// SPDX-License-Identifier: Apache-2.0
// What queues hold: AQL packets and signals as the HSA runtime specification and AMD's
// amd_hsa_signal.h lay them out, SDMA packets as AMD's runtime writes them for GFX9 and GFX10.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace berth::emulator::hsa {

inline constexpr std::uint64_t aql_packet_bytes = 64;

enum class packet_type : std::uint8_t {
  vendor = 0,
  invalid = 1,
  dispatch = 2,
  barrier_and = 3,
  agent_dispatch = 4,
  barrier_or = 5,
};

struct dispatch_packet {
  std::uint16_t header;
  std::uint16_t setup;
  std::array<std::uint16_t, 3> workgroup;
  std::uint16_t reserved0;
  std::array<std::uint32_t, 3> grid;
  std::uint32_t private_segment;
  std::uint32_t group_segment;
  std::uint64_t kernel_object;
  std::uint64_t kernarg_address;
  std::uint64_t reserved1;
  std::uint64_t completion_signal;
};
static_assert(sizeof(dispatch_packet) == aql_packet_bytes);

struct barrier_packet {
  std::uint16_t header;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::array<std::uint64_t, 5> dependencies;
  std::uint64_t reserved2;
  std::uint64_t completion_signal;
};
static_assert(sizeof(barrier_packet) == aql_packet_bytes);

enum class vendor_format : std::uint8_t { pm4 = 1, barrier_value = 2 };

struct vendor_packet {
  std::uint16_t header;
  std::uint8_t format;
  std::uint8_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t signal;
  std::int64_t value;
  std::int64_t mask;
  std::uint32_t condition;
  std::uint32_t reserved2;
  std::array<std::uint64_t, 2> reserved3;
  std::uint64_t completion_signal;
};
static_assert(sizeof(vendor_packet) == aql_packet_bytes);

struct signal {
  std::int64_t kind;
  std::int64_t value;
  std::uint64_t event_mailbox;
  std::uint32_t event_id;
  std::uint32_t reserved;
  std::uint64_t start_ticks;
  std::uint64_t end_ticks;
  std::uint64_t queue;
};
inline constexpr std::uint64_t signal_value_offset = offsetof(signal, value);
static_assert(signal_value_offset == 8);

enum class sdma_operation : std::uint8_t {
  nop = 0,
  copy = 1,
  fence = 5,
  trap = 6,
  poll = 8,
  atomic = 10,
  fill = 11,
  timestamp = 13,
  cache = 17,
};
inline constexpr std::uint8_t sdma_copy_linear = 0;
inline constexpr std::uint8_t sdma_copy_rect = 4;
inline constexpr std::uint32_t sdma_atomic_add64 = 47;

}  // namespace berth::emulator::hsa
