// SPDX-License-Identifier: Apache-2.0
// What is measured: a list, made of what was asked for before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "berth/units.hpp"
#include "machine/cost_model.hpp"

namespace berth::bandwidth {

enum class directions : std::uint8_t { one, both };

// A path that people have a word for. "pinned" stands for four of them.
struct named_path {
  std::string_view name;
  machine::path where;
  directions at_once = directions::one;
  bytes_t least = 1;  // smaller copies are no such thing
};
[[nodiscard]] std::span<const named_path> all_paths() noexcept;

enum class thoroughness : std::uint8_t { quick, usual, full };

struct wish {
  thoroughness how = thoroughness::usual;
  std::vector<std::string> kinds = {};       // names of paths; none: all
  std::vector<bytes_t> sizes = {};           // none: as `how` has them
  std::optional<int> device = std::nullopt;  // nothing: each
};

struct planned {
  int device = 0;
  named_path what;
  bytes_t bytes = 0;
};

// @errors usage: an unknown name, a size of 0, a device that is not there
[[nodiscard]] result<std::vector<planned>> make_plan(const wish& wanted, int device_count);

}  // namespace berth::bandwidth
