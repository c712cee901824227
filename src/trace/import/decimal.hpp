// SPDX-License-Identifier: Apache-2.0
// Times in trace files as exact integers. Microseconds since 1970 with three decimals need more
// bits than a double has, so they are read as decimal text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::trace {

// "5204826544920.552" microseconds -> 5204826544920552 ns, half up at the fourth decimal. Signs and
// exponents as JSON has them. Nothing for text that is no number or does not fit.
[[nodiscard]] std::optional<std::int64_t> nanoseconds_of_microseconds(
    std::string_view text) noexcept;

// "123", "0x7f3a"; nothing for anything else, a sign or a number beyond 64 bits.
[[nodiscard]] std::optional<std::uint64_t> unsigned_of(std::string_view text) noexcept;
[[nodiscard]] std::optional<std::int64_t> signed_of(std::string_view text) noexcept;

}  // namespace berth::trace
