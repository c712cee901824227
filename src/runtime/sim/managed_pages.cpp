// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/managed_pages.hpp"

#include <algorithm>
#include <map>

namespace berth::runtime::sim {
namespace {

constexpr std::uint64_t bit_of(int device) noexcept {
  return device >= 0 ? std::uint64_t{1} << static_cast<unsigned>(device) : 0;
}

}  // namespace

managed_pages::managed_pages(bytes_t bytes, migration on_touch)
    : blocks_((bytes + block_bytes - 1) / block_bytes), on_touch_(on_touch) {}

template <typename Blocks, typename Visit>
void managed_pages::for_blocks(Blocks& blocks, bytes_t offset, bytes_t bytes, const Visit& visit) {
  const bytes_t end = offset + bytes;
  for (bytes_t at = offset; at < end;) {
    const bytes_t next = std::min(end, (at / block_bytes + 1) * block_bytes);
    visit(blocks[at / block_bytes], next - at);
    at = next;
  }
}

managed_pages::effect managed_pages::effect_on(const block& one, int who,
                                               access_kind how) const noexcept {
  const bool has_copy = who == on_host ? one.host_copy : (one.copies & bit_of(who)) != 0;
  if (one.place == who || (has_copy && how == access_kind::read)) {
    return effect::local;
  }
  if (one.place == nowhere) {
    const bool populates_here = who == on_host || on_touch_ == migration::on;
    return populates_here ? effect::local : effect::remote;
  }
  if (who == on_host) {
    return effect::moves;  // the host's own page fault, also where devices cannot fault
  }
  const bool stays = on_touch_ != migration::on || one.preferred == one.place ||
                     (one.accessed_by & bit_of(who)) != 0;
  return stays ? effect::remote : effect::moves;
}

void managed_pages::apply(block& one, int who, access_kind how, effect what) noexcept {
  if (what == effect::remote) {
    if (one.place == nowhere) {
      one.place = on_host;
    }
  } else if (one.place == nowhere) {
    one.place = static_cast<std::int16_t>(who);
  } else if (what == effect::moves && one.read_mostly && how == access_kind::read) {
    one.host_copy = one.host_copy || who == on_host;
    one.copies |= bit_of(who);
  } else if (what == effect::moves) {
    one.place = static_cast<std::int16_t>(who);
  }
  if (how == access_kind::write) {
    one.copies = 0;
    one.host_copy = false;
  }
}

touch_result managed_pages::preview(bytes_t offset, bytes_t bytes, int who, access_kind how) const {
  touch_result sum;
  for_blocks(blocks_, offset, bytes, [&](const block& one, bytes_t part) {
    switch (effect_on(one, who, how)) {
      case effect::local:
        sum.local += part;
        break;
      case effect::remote:
        sum.remote += part;
        break;
      case effect::moves:
        (one.place == on_host ? sum.from_host : sum.from_device) += part;
        break;
    }
  });
  return sum;
}

touch_result managed_pages::touch(bytes_t offset, bytes_t bytes, int who, access_kind how) {
  const auto sum = preview(offset, bytes, who, how);
  for_blocks(blocks_, offset, bytes,
             [&](block& one, bytes_t) { apply(one, who, how, effect_on(one, who, how)); });
  return sum;
}

touch_result managed_pages::preview_prefetch(bytes_t offset, bytes_t bytes, int where) const {
  touch_result sum;
  for_blocks(blocks_, offset, bytes, [&](const block& one, bytes_t part) {
    if (one.place == where || one.place == nowhere) {
      sum.local += part;
    } else {
      (one.place == on_host ? sum.from_host : sum.from_device) += part;
    }
  });
  return sum;
}

void managed_pages::prefetch(bytes_t offset, bytes_t bytes, int where) {
  for_blocks(blocks_, offset, bytes,
             [&](block& one, bytes_t) { one.place = static_cast<std::int16_t>(where); });
}

void managed_pages::advise(bytes_t offset, bytes_t bytes, advice what, int where) {
  for_blocks(blocks_, offset, bytes, [&](block& one, bytes_t) {
    switch (what) {
      case advice::set_read_mostly:
        one.read_mostly = true;
        break;
      case advice::unset_read_mostly:
        one.read_mostly = false;
        one.host_copy = false;
        one.copies = 0;
        break;
      case advice::set_preferred_location:
        one.preferred = static_cast<std::int16_t>(where);
        break;
      case advice::unset_preferred_location:
        one.preferred = nowhere;
        break;
      case advice::set_accessed_by:
        one.accessed_by |= bit_of(where);
        break;
      case advice::unset_accessed_by:
        one.accessed_by &= ~bit_of(where);
        break;
      case advice::set_coarse_grain:
      case advice::unset_coarse_grain:
        break;  // changes no place
    }
  });
}

int managed_pages::mostly(bytes_t offset, bytes_t bytes) const {
  std::map<int, bytes_t> by_place;
  for_blocks(blocks_, offset, bytes,
             [&](const block& one, bytes_t part) { by_place[one.place] += part; });
  const auto most = std::max_element(by_place.begin(), by_place.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == by_place.end() ? nowhere : most->first;
}

}  // namespace berth::runtime::sim
