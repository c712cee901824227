// SPDX-License-Identifier: Apache-2.0
// What the simulator must know of pageable memory: whether it is there at all, whether its pages
// are fresh or of a file, and on which NUMA node. Declared facts come first; the rest is looked up
// in this process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "runtime/page_probe.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::runtime::sim {

class host_pages {
public:
  explicit host_pages(page_state how) noexcept : how_(how) {}

  void declare(std::uintptr_t first, bytes_t bytes, page_facts facts);
  // Pages that were written are fresh no more.
  void touched(std::uintptr_t first, bytes_t bytes);

  [[nodiscard]] page_facts facts_of(const std::byte* first, bytes_t bytes) const;

private:
  struct declared {
    bytes_t bytes;
    page_facts facts;
  };

  [[nodiscard]] machine::trait_set observe(const std::byte* first, bytes_t bytes) const noexcept;

  std::map<std::uintptr_t, declared> declared_;
  page_state how_;
  page_probe probe_;
};

}  // namespace berth::runtime::sim
