// SPDX-License-Identifier: Apache-2.0
// Pasted text as lines, without what terminals, mail and Markdown add.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::topology::paste {

struct line {
  std::string text;          // without blanks at its ends
  std::size_t indent = 0;    // blanks before it, after quotes
  std::uint32_t number = 0;  // from 1
};

// No text: an archive, a program, a picture.
[[nodiscard]] bool is_binary(std::string_view text) noexcept;

[[nodiscard]] std::vector<line> lines_of(std::string_view text);

// Holds nothing that any tool says: empty, a rule, a fence of Markdown.
[[nodiscard]] bool is_decoration(std::string_view text) noexcept;

// A command after a prompt, or what people write to part one piece from the next.
[[nodiscard]] bool is_border(std::string_view text) noexcept;

}  // namespace berth::topology::paste
