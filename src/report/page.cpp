// SPDX-License-Identifier: Apache-2.0
#include "report/page.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth::report {
namespace {

constexpr std::string_view escape_of(style how) noexcept {
  constexpr std::array<std::string_view, 6> codes{"",           "\x1b[1m",    "\x1b[1;31m",
                                                  "\x1b[1;33m", "\x1b[1;32m", "\x1b[2m"};
  return codes[static_cast<std::size_t>(how)];
}

std::string padded(std::string_view text, std::size_t width, align to) {
  const auto used = text::display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return to == align::left ? std::string(text) + space : space + std::string(text);
}

std::string without_trailing_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string current;
  while (!text.empty()) {
    const auto length = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (!current.empty() && text::display_width(current) + 1 + text::display_width(word) > width) {
      lines.push_back(std::exchange(current, {}));
    }
    current += current.empty() ? "" : " ";
    current += text::shorten(word, width);
  }
  if (!current.empty() || lines.empty()) {
    lines.push_back(std::move(current));
  }
  return lines;
}

std::string page::styled(std::string_view text, style how) const {
  if (colours_ == colour::off || how == style::plain || text.empty()) {
    return std::string(text);
  }
  return fmt::format("{}{}\x1b[0m", escape_of(how), text);
}

void page::line(std::string_view text, style how) {
  text_ += styled(text::shorten(text, page_width), how);
  text_ += '\n';
}

void page::block(std::string_view label, std::string_view text, style label_style,
                 std::size_t label_width, std::size_t indent) {
  const std::string margin(indent, ' ');
  const auto lines = wrapped(text, page_width - label_width - indent);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const auto shown = index == 0 ? label : std::string_view{};
    const std::string space(label_width > shown.size() ? label_width - shown.size() : 1, ' ');
    text_ += without_trailing_blanks(
        fmt::format("{}{}{}{}", margin, styled(shown, label_style), space, lines[index]));
    text_ += '\n';
  }
}

void page::table(const std::vector<column>& columns,
                 const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t gap = 2;
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t index = 0; index < columns.size(); ++index) {
    auto width = text::display_width(columns[index].title);
    for (const auto& row : rows) {
      width = std::max(width, text::display_width(row[index]));
    }
    widths.push_back(width);
    total += width + (index > 0 ? gap : 0);
  }
  if (total > page_width) {
    const auto excess = total - page_width;
    widths.front() -= std::min(excess, widths.front() - std::min<std::size_t>(widths.front(), 8));
  }
  const auto put = [&](const auto& cell_of, style how) {
    std::string text;
    for (std::size_t index = 0; index < columns.size(); ++index) {
      text += index > 0 ? std::string(gap, ' ') : "";
      text += padded(text::shorten(cell_of(index), std::max<std::size_t>(widths[index], 8)),
                     widths[index], columns[index].side);
    }
    line(without_trailing_blanks(std::move(text)), how);
  };
  put([&](std::size_t index) { return columns[index].title; }, style::faint);
  for (const auto& row : rows) {
    put([&](std::size_t index) { return row[index]; }, style::plain);
  }
}

}  // namespace berth::report
