// SPDX-License-Identifier: Apache-2.0
// What others have seen of copies on a machine: rates that a tool has measured or a person tells,
// and copies that a runtime has logged. Unlike a field of the machine, two of them that differ are
// no contradiction: they are what there is to compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth::machine {

enum class traffic : std::uint8_t { one_way, both_ways };

// Where the host's end of a copy was, seen from the GPU, if no node is named.
enum class host_distance : std::uint8_t { unknown, near, far };

struct measured_rate {
  direction way = direction::unknown;
  traffic ways = traffic::one_way;
  memory_kind host = memory_kind::unknown;
  std::optional<std::uint32_t> gpu;   // its index
  std::optional<std::uint32_t> peer;  // the other one's, between two GPUs
  std::optional<std::uint32_t> node;  // NUMA node of the host's memory
  host_distance host_is = host_distance::unknown;
  double gb_per_s = 0;
  std::optional<double> promised_gb_per_s;  // what somebody holds it should be
  std::string source;
};

// Copies of a log that are alike.
struct logged_copies {
  engine by = engine::unknown;
  std::string engine_name;  // as logged: "2", "0x1"; empty where none is named
  direction way = direction::unknown;
  std::optional<std::int64_t> failure;  // the code; nothing for those that did not fail
  std::uint64_t count = 0;
  std::string source;  // of the first
};

}  // namespace berth::machine
