// SPDX-License-Identifier: Apache-2.0
// All memory that the simulated runtime knows: what an address belongs to, and the bytes behind it.
//
// Device memory has addresses that the host cannot touch (it faults, as on most hardware); its
// bytes lie elsewhere. Coarse-grained host memory has two views: what a device writes is not seen
// by the host, which finds poison, until it is released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "berth/runtime/values.hpp"
#include "berth/types.hpp"
#include "runtime/sim/managed_pages.hpp"
#include "runtime/sim/mapping.hpp"

namespace berth::runtime::sim {

// Writes of devices into coarse-grained host memory that the host cannot see yet.
class unreleased_writes {
public:
  unreleased_writes(std::byte* host, hidden_bytes device)
      : host_(host), device_(std::move(device)) {}

  // Where a device writes [offset, offset + bytes); the host sees poison there from now on.
  [[nodiscard]] std::byte* for_write(bytes_t offset, bytes_t bytes);
  // What a device reads: its own writes over the host's bytes.
  void read(bytes_t offset, bytes_t bytes, std::byte* into);
  // The host sees all of it.
  void release();
  [[nodiscard]] bool empty() const noexcept { return written_.empty(); }

private:
  std::byte* host_;
  hidden_bytes device_;
  std::vector<std::pair<bytes_t, bytes_t>> written_;  // offset, bytes
};

struct allocation {
  std::uint64_t number = 0;  // in the order of creation, of all kinds
  memory_kind kind = memory_kind::device;
  int device = 0;
  std::byte* first = nullptr;
  bytes_t bytes = 0;
  coherence grain = coherence::fine;
  host_caching caching = host_caching::cached;
  host_mapping mapped = host_mapping::mapped;
  host_access access = host_access::read_write;
  std::optional<std::uint32_t> numa_node;
  bool live = true;
  unsigned in_use = 0;  // operations that have not run and name it

  std::optional<mapping> pages_of_system;       // none for registered memory
  std::optional<hidden_bytes> hidden;           // device memory
  std::optional<managed_pages> places;          // managed memory
  std::optional<unreleased_writes> unreleased;  // coarse-grained host memory
};

// A piece of memory that an operation works on.
struct memory_range {
  std::shared_ptr<allocation> of;  // null: pageable
  std::byte* first = nullptr;
  bytes_t bytes = 0;

  [[nodiscard]] memory_kind kind() const noexcept {
    return of == nullptr ? memory_kind::pageable : of->kind;
  }
  [[nodiscard]] bytes_t offset() const noexcept {
    return of == nullptr ? 0 : static_cast<bytes_t>(first - of->first);
  }
  [[nodiscard]] bool on_device() const noexcept { return kind() == memory_kind::device; }
  // Not there any more: freed or unregistered since.
  [[nodiscard]] bool gone() const noexcept { return of != nullptr && !of->live; }

  // The bytes as a device sees them. Scratch space is used where they lie in pieces.
  [[nodiscard]] const std::byte* read(bytes_t at, bytes_t count,
                                      std::vector<std::byte>& scratch) const;
  [[nodiscard]] std::byte* write(bytes_t at, bytes_t count) const;
  // Where the host sees the bytes; null where it does not.
  [[nodiscard]] std::byte* host_view() const noexcept { return on_device() ? nullptr : first; }
};

[[nodiscard]] bool overlap(const memory_range& a, const memory_range& b) noexcept;

// "pinned#3+4096", "pageable".
[[nodiscard]] std::string label_of(const memory_range& range);

class address_space {
public:
  explicit address_space(data_effects data) noexcept : data_(data) {}

  // What is wrong with a range.
  enum class problem : std::uint8_t { none, null, leaves_allocation, unmapped, freed };
  struct resolved {
    memory_range range;
    problem wrong = problem::none;
  };

  // Gives an address, pages and poison. False where the system refuses.
  [[nodiscard]] bool place(allocation& made) const;
  void insert(std::shared_ptr<allocation> made);
  // Takes it out; its memory is poisoned and its address not used again soon.
  void remove(allocation& gone);

  // The allocation that holds the address; null where none does.
  [[nodiscard]] std::shared_ptr<allocation> find(const void* address) const;
  [[nodiscard]] resolved resolve(const void* first, bytes_t bytes) const;
  // Whether any allocation overlaps the range.
  [[nodiscard]] bool any_in(const void* first, bytes_t bytes) const;

  // All writes of devices become visible to the host.
  void release_writes();

  [[nodiscard]] bytes_t used_on(int device) const noexcept;
  [[nodiscard]] bytes_t pinned() const noexcept { return pinned_; }
  // How much a device gives away for an allocation of `bytes`.
  [[nodiscard]] static bytes_t granted(bytes_t bytes) noexcept;
  [[nodiscard]] std::size_t count(memory_kind kind) const noexcept;

private:
  void retire(const allocation& gone, mapping pages);
  [[nodiscard]] bool is_retired(const std::byte* address) const noexcept;

  data_effects data_;
  std::map<std::uintptr_t, std::shared_ptr<allocation>> by_address_;
  std::vector<std::weak_ptr<allocation>> coarse_;
  struct retired {
    mapping pages;
    bytes_t real_bytes;
  };
  std::deque<retired> retired_;  // kept, so that late uses meet poison or fault
  bytes_t retired_bytes_ = 0;
  std::map<int, bytes_t> used_;  // device memory by device
  bytes_t pinned_ = 0;
};

}  // namespace berth::runtime::sim
