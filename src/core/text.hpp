// SPDX-License-Identifier: Apache-2.0
// Small text tools. ASCII only and independent of the locale: what berth reads is tool output and
// file formats, never prose.
#pragma once

#include <string>
#include <string_view>

namespace berth::text {

// Without blanks (space, tab, CR, LF) at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

[[nodiscard]] std::string to_lower(std::string_view text);

[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part);

// At most `width` columns: cut in the middle with "..." where longer. UTF-8 sequences stay whole
// and count as one column each. width >= 8.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t width);

// Columns that UTF-8 text takes on a terminal, one for each code point.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

// Control characters (terminal escapes in foreign names, for one) as "\x1b".
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace berth::text
