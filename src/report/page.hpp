// SPDX-License-Identifier: Apache-2.0
// A page of text for a terminal: paragraphs that wrap, labelled blocks and tables, within 100
// columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/render.hpp"

namespace berth::report {

inline constexpr std::size_t page_width = 100;

enum class style : std::uint8_t { plain, bold, red, yellow, green, faint };

enum class align : std::uint8_t { left, right };

struct column {
  std::string title;
  align side;
};

class page {
public:
  explicit page(colour colours) : colours_(colours) {}

  // A line of its own, shortened if it is too long.
  void line(std::string_view text = {}, style how = style::plain);
  // `label` in its own column, `text` wrapped beside it.
  void block(std::string_view label, std::string_view text, style label_style = style::faint,
             std::size_t label_width = 10, std::size_t indent = 0);
  // Rows of as many cells as there are columns. The first column gives way where the table is too
  // wide.
  void table(const std::vector<column>& columns, const std::vector<std::vector<std::string>>& rows);

  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  [[nodiscard]] std::string styled(std::string_view text, style how) const;

  colour colours_;
  std::string text_;
};

// Words of `text` in lines of at most `width` columns; a longer word has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace berth::report
