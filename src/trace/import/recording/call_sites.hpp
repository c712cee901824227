// SPDX-License-Identifier: Apache-2.0
// Call stacks of a recording as call sites of a trace: addresses become names, each once.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "trace/import/recording/content.hpp"
#include "trace/import/symbols.hpp"
#include "trace/trace.hpp"

namespace berth::trace::recording {

class call_sites {
public:
  call_sites(const content& recorded, trace& into) : recorded_(recorded), into_(into) {}

  // The site of a stack; no_row where there is none.
  [[nodiscard]] std::uint32_t of(std::optional<std::uint64_t> stack);

private:
  [[nodiscard]] name_id name_of(std::uint64_t address);

  const content& recorded_;
  trace& into_;
  symbols symbols_;
  std::unordered_map<std::uint64_t, std::uint32_t> sites_;  // by stack
  std::unordered_map<std::uint64_t, name_id> names_;        // by address
};

}  // namespace berth::trace::recording
