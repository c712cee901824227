// SPDX-License-Identifier: Apache-2.0
// Small text tools. ASCII only and independent of the locale: what berth reads is tool output and
// file formats, never prose.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace berth::text {

// Without blanks (space, tab, CR, LF) at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

// What stands between blanks.
[[nodiscard]] std::vector<std::string_view> words(std::string_view text);

// The whole text as a number, without prefix; nothing for any other text.
template <std::integral Number>
[[nodiscard]] std::optional<Number> whole_number(std::string_view text, int base = 10) noexcept {
  Number number{};
  const auto* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, base);
  return failure == std::errc{} && rest == end ? std::optional(number) : std::nullopt;
}

// "0-3,8,10-11", as the kernel writes lists of CPUs and nodes: ascending, without doubles, and
// empty for a text of blanks. Nothing for a text that is no such list, or for a number of 65536 or
// more.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_number_list(std::string_view text);

// Numbers as they come, those in a row as one: "0-3", "8".
[[nodiscard]] std::vector<std::string> number_ranges(std::span<const std::uint32_t> numbers);
// The same as one text: "0-3,8".
[[nodiscard]] std::string number_list(std::span<const std::uint32_t> numbers);

[[nodiscard]] std::string to_lower(std::string_view text);

[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part);

// At most `width` columns: cut in the middle with "..." where longer. UTF-8 sequences stay whole
// and count as one column each. width >= 8.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t width);

// Columns that UTF-8 text takes on a terminal, one for each code point.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

// Control characters (terminal escapes in foreign names, for one) as "\x1b".
[[nodiscard]] std::string printable(std::string_view text);

// A word for a shell: as it is where it can be, else in quotes.
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace berth::text
