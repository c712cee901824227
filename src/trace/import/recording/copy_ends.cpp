// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/copy_ends.hpp"

#include <array>

namespace berth::trace::recording {
namespace {

// Values of the role `way`.
constexpr std::array ways{direction::unknown,        direction::host_to_device,
                          direction::device_to_host, direction::device_to_device,
                          direction::peer_to_peer,   direction::host_to_host};

struct stated_memory {
  memory_kind kind;
  berth::side side;
};

// Values of the roles `dst_memory` and `src_memory`.
constexpr std::array stated{
    stated_memory{memory_kind::unknown, side::unknown},  // nothing
    stated_memory{memory_kind::pageable, side::host},
    stated_memory{memory_kind::pinned, side::host},
    stated_memory{memory_kind::device, side::device},
    stated_memory{memory_kind::device, side::device},  // an array
    stated_memory{memory_kind::managed, side::unknown},
    stated_memory{memory_kind::unknown, side::host},     // of either kind
    stated_memory{memory_kind::unknown, side::unknown},  // unified: as the address says
};

stated_memory stated_by(const content& recorded, const event& which, role what) noexcept {
  const auto value = recorded.get(which, what).value_or(0);
  return value < stated.size() ? stated[value] : stated.front();
}

side side_of(memory_kind kind) noexcept {
  switch (kind) {
    case memory_kind::pageable:
    case memory_kind::registered:
    case memory_kind::pinned:
      return side::host;
    case memory_kind::device:
      return side::device;
    default:
      return side::unknown;
  }
}

// One end as far as it is known before the direction is.
struct end_facts {
  bool has_address = false;
  std::optional<known_range> range;
  stated_memory said{};

  [[nodiscard]] memory_kind kind() const noexcept {
    return range && range->kind != memory_kind::unknown ? range->kind : said.kind;
  }
  [[nodiscard]] side known_side() const noexcept {
    const auto by_range = range ? side_of(range->kind) : side::unknown;
    return by_range != side::unknown ? by_range : said.side;
  }
};

direction between(side source, side destination) noexcept {
  if (source == side::host) {
    return destination == side::host ? direction::host_to_host : direction::host_to_device;
  }
  return destination == side::host ? direction::device_to_host : direction::device_to_device;
}

side opposite(side of) noexcept {
  return of == side::host ? side::device : side::host;
}

// Of an end that nothing is known of, where the other end is known: managed memory counts as the
// other side, an address in no range as the host's.
side side_beside(const end_facts& end, side other, ranges_known known) noexcept {
  if (end.kind() == memory_kind::managed) {
    return opposite(other);
  }
  return end.has_address && !end.range && known == ranges_known::all ? side::host : side::unknown;
}

direction direction_by_sides(const end_facts& source, const end_facts& destination,
                             ranges_known known) noexcept {
  auto from = source.known_side();
  auto to = destination.known_side();
  if (from == side::unknown && to == side::unknown) {
    return direction::unknown;
  }
  from = from == side::unknown ? side_beside(source, to, known) : from;
  to = to == side::unknown ? side_beside(destination, from, known) : to;
  return from == side::unknown || to == side::unknown ? direction::unknown : between(from, to);
}

// Addresses that lie in known ranges say more than the call, which may pass a wrong direction: the
// runtimes go by the addresses, too.
direction direction_of(const end_facts& source, const end_facts& destination, direction said,
                       ranges_known known) noexcept {
  const bool both_known =
      source.known_side() != side::unknown && destination.known_side() != side::unknown;
  if (said != direction::unknown && !both_known) {
    return said;
  }
  const auto found = direction_by_sides(source, destination, known);
  return found == direction::device_to_device && said == direction::peer_to_peer ? said : found;
}

memory_kind kind_of_end(const end_facts& end, side where, ranges_known known) noexcept {
  if (end.kind() != memory_kind::unknown) {
    return end.kind();
  }
  if (where == side::device) {
    return memory_kind::device;
  }
  const bool is_plain = where == side::host && end.has_address && known == ranges_known::all;
  return is_plain ? memory_kind::pageable : memory_kind::unknown;
}

side source_side(direction way) noexcept {
  switch (way) {
    case direction::unknown:
      return side::unknown;
    case direction::host_to_device:
    case direction::host_to_host:
      return side::host;
    default:
      return side::device;
  }
}

side destination_side(direction way) noexcept {
  switch (way) {
    case direction::unknown:
      return side::unknown;
    case direction::device_to_host:
    case direction::host_to_host:
      return side::host;
    default:
      return side::device;
  }
}

std::optional<std::uint32_t> device_of(const end_facts& end) noexcept {
  return end.range && side_of(end.range->kind) == side::device ? end.range->device : std::nullopt;
}

}  // namespace

copy_ends ends_of(const content& recorded, const event& which, const touched& ranges,
                  direction hint, ranges_known known) {
  const end_facts source{recorded.get(which, role::src).has_value(), ranges.source,
                         stated_by(recorded, which, role::src_memory)};
  const end_facts destination{recorded.get(which, role::dst).has_value(), ranges.destination,
                              stated_by(recorded, which, role::dst_memory)};
  const auto way = recorded.get(which, role::way).value_or(0);
  const auto said = way > 0 && way < ways.size() ? ways[way] : hint;

  copy_ends ends;
  ends.direction = direction_of(source, destination, said, known);
  ends.source = kind_of_end(source, source_side(ends.direction), known);
  ends.destination = kind_of_end(destination, destination_side(ends.direction), known);
  const auto from = device_of(source);
  const auto to = device_of(destination);
  ends.device = to ? to : from;
  if (ends.direction == direction::device_to_device && from && to && *from != *to) {
    ends.direction = direction::peer_to_peer;
  }
  return ends;
}

copy_ends joined(const copy_ends& call, const copy_ends& device_record) noexcept {
  const auto kind = [](memory_kind first, memory_kind second) {
    return first != memory_kind::unknown ? first : second;
  };
  copy_ends ends;
  // What really ran is the device's to say.
  ends.direction =
      device_record.direction != direction::unknown ? device_record.direction : call.direction;
  ends.source = kind(call.source, device_record.source);
  ends.destination = kind(call.destination, device_record.destination);
  ends.device = device_record.device ? device_record.device : call.device;
  return ends;
}

}  // namespace berth::trace::recording
