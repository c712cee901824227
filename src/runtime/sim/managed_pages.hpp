// SPDX-License-Identifier: Apache-2.0
// Where the pages of a managed allocation are, and what touching them does. Pages are counted in
// blocks, as the drivers migrate them; a block that is touched in part moves as a whole.
//
//   place    a device by index, or one of the two below.
//   remote   the toucher reaches the page over a link, where it is.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/runtime/values.hpp"
#include "berth/units.hpp"
#include "runtime/sim/options.hpp"

namespace berth::runtime::sim {

inline constexpr int on_host = -1;
inline constexpr int nowhere = -2;  // never touched

enum class access_kind : std::uint8_t { read, write };

// What a touch meets, in bytes of the range touched.
struct touch_result {
  bytes_t local = 0;        // already there, or populated there for the first time
  bytes_t from_host = 0;    // migrates from the host to a device
  bytes_t from_device = 0;  // migrates from a device, to the host or to another device
  bytes_t remote = 0;       // stays where it is
};

class managed_pages {
public:
  managed_pages(bytes_t bytes, migration on_touch);

  // What a touch of the range by `who` (a device or on_host) would meet.
  [[nodiscard]] touch_result preview(bytes_t offset, bytes_t bytes, int who, access_kind how) const;
  // The same, and it happens.
  touch_result touch(bytes_t offset, bytes_t bytes, int who, access_kind how);

  // What a prefetch to `where` would move, and doing it.
  [[nodiscard]] touch_result preview_prefetch(bytes_t offset, bytes_t bytes, int where) const;
  void prefetch(bytes_t offset, bytes_t bytes, int where);

  void advise(bytes_t offset, bytes_t bytes, advice what, int where);

  // The place of most of the range: a device, on_host or nowhere.
  [[nodiscard]] int mostly(bytes_t offset, bytes_t bytes) const;

private:
  struct block {
    std::int16_t place = nowhere;
    std::int16_t preferred = nowhere;
    std::uint64_t copies = 0;       // devices that hold a read-only copy
    std::uint64_t accessed_by = 0;  // devices that map it instead of moving it
    bool read_mostly = false;
    bool host_copy = false;
  };
  enum class effect : std::uint8_t { local, moves, remote };

  [[nodiscard]] effect effect_on(const block& one, int who, access_kind how) const noexcept;
  static void apply(block& one, int who, access_kind how, effect what) noexcept;
  template <typename Blocks, typename Visit>
  static void for_blocks(Blocks& blocks, bytes_t offset, bytes_t bytes, const Visit& visit);

  static constexpr bytes_t block_bytes = 64 * kib;
  std::vector<block> blocks_;
  migration on_touch_;
};

}  // namespace berth::runtime::sim
