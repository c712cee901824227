// SPDX-License-Identifier: Apache-2.0
// What the simulator must know of pageable memory: whether it is there at all, whether its pages
// are fresh or of a file, and on which NUMA node. Declared facts come first; the rest is looked up
// in this process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "runtime/sim/sim_driver.hpp"

namespace berth::runtime::sim {

class host_pages {
public:
  explicit host_pages(page_state how);
  host_pages(const host_pages&) = delete;
  host_pages& operator=(const host_pages&) = delete;
  host_pages(host_pages&&) = delete;
  host_pages& operator=(host_pages&&) = delete;
  ~host_pages();

  void declare(std::uintptr_t first, bytes_t bytes, page_facts facts);
  // Pages that were written are fresh no more.
  void touched(std::uintptr_t first, bytes_t bytes);

  [[nodiscard]] page_facts facts_of(const std::byte* first, bytes_t bytes) const;

  // False where the first or the last page is surely not mapped.
  [[nodiscard]] static bool is_mapped(const std::byte* first, bytes_t bytes) noexcept;

private:
  struct declared {
    bytes_t bytes;
    page_facts facts;
  };

  [[nodiscard]] machine::trait_set observe(std::uintptr_t first, bytes_t bytes) const noexcept;

  std::map<std::uintptr_t, declared> declared_;
  int pagemap_ = -1;  // of this process; -1: not to be asked
};

}  // namespace berth::runtime::sim
