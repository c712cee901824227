// SPDX-License-Identifier: Apache-2.0
// What AMD's tools say of two GPUs in one cell of a table: rocm-smi by their numbers, amd-smi by
// their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "machine/machine.hpp"
#include "topology/paste/writer.hpp"

namespace berth::topology::paste {

enum class peer_fact : std::uint8_t { none, weight, hops, kind, ignored };

[[nodiscard]] machine::link_kind link_kind_in(std::string_view word) noexcept;

// Writes weight, hops or kind of the link between two GPUs of the survey, which are called `one`
// and `other` where something is wrong with the value.
void tell_peer_fact(writer& to, std::size_t link, peer_fact what, std::string_view value,
                    std::string_view one, std::string_view other);

// The link between two GPUs of the survey, by their places in it.
[[nodiscard]] std::size_t peer_link(writer& to, std::size_t one, std::size_t other);

}  // namespace berth::topology::paste
