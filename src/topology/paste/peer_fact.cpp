// SPDX-License-Identifier: Apache-2.0
#include "topology/paste/peer_fact.hpp"

#include <string>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::link_kind;
using machine::place_kind;

constexpr std::uint64_t most_number = 1 << 16;

void tell_problem(writer& to, std::string_view value, std::string_view what, std::string_view one,
                  std::string_view other) {
  to.problem(fmt::format("\"{}\" is no {} between {} and {}; left out", text::shorten(value, 20),
                         what, one, other));
}

}  // namespace

link_kind link_kind_in(std::string_view word) noexcept {
  if (is_nearly(word, "XGMI")) {
    return link_kind::xgmi;
  }
  return is_nearly(word, "PCIE") ? link_kind::pcie : link_kind::unknown;
}

void tell_peer_fact(writer& to, std::size_t link, peer_fact what, std::string_view value,
                    std::string_view one, std::string_view other) {
  if (value == "N/A") {
    return;
  }
  if (what == peer_fact::kind) {
    const auto kind = link_kind_in(value);
    if (kind == link_kind::unknown) {
      tell_problem(to, value, "type of link", one, other);
    } else {
      to.of_link(link, "kind", &machine::link::kind, kind, std::string(to_string(kind)));
    }
    return;
  }
  const bool is_weight = what == peer_fact::weight;
  const auto* const field = is_weight ? "weight" : "hops";
  const auto number = number_in(value);
  if (!number || *number >= most_number) {
    tell_problem(to, value, field, one, other);
  } else if (*number != 0) {  // 0 is what the driver gives where it does not know
    to.of_link(link, field, is_weight ? &machine::link::weight : &machine::link::hops, *number,
               fmt::format("{}", *number));
  }
}

std::size_t peer_link(writer& to, std::size_t one, std::size_t other) {
  return to.link({.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(one)},
                 {.kind = place_kind::gpu, .id = static_cast<std::uint32_t>(other)});
}

}  // namespace berth::topology::paste
