// SPDX-License-Identifier: Apache-2.0
#include "topology/paste/lines.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace berth::topology::paste {
namespace {

constexpr char escape = '\x1b';

bool is_control(char c) noexcept {
  const auto code = static_cast<unsigned char>(c);
  return (code < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != escape) ||
         code == 0x7F;
}

// Past the terminal's sequence that begins at `at`.
std::size_t past_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) {
    return text.size();
  }
  const char kind = text[at + 1];
  if (kind == '[') {
    const auto end = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at) + 2, text.end(),
                                  [](char c) { return c >= 0x40 && c <= 0x7E; });
    return std::min(text.size(), static_cast<std::size_t>(end - text.begin()) + 1);
  }
  if (kind == ']') {  // a window's title, until BEL or ESC backslash
    const auto end = text.find_first_of("\a\x1b", at + 2);
    if (end == std::string_view::npos) {
      return text.size();
    }
    return text[end] == '\a' ? end + 1 : std::min(text.size(), end + 2);
  }
  return at + 2;
}

// Without colours, control characters and the blanks of other alphabets.
std::string plain(std::string_view text) {
  const auto is_special = [](char c) {
    return c == escape || is_control(c) || c == '\xC2' || c == '\xEF';
  };
  if (std::ranges::none_of(text, is_special)) {
    return std::string(text);
  }
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == escape) {
      at = past_escape(text, at);
    } else if (is_control(text[at])) {
      ++at;
    } else if (text.substr(at).starts_with("\xC2\xA0")) {  // a blank that does not break
      kept += ' ';
      at += 2;
    } else if (text.substr(at).starts_with("\xEF\xBB\xBF")) {  // the mark of a byte order
      at += 3;
    } else {
      kept += text[at++];
    }
  }
  return kept;
}

// Without the marks of a quotation: "> > text".
std::string_view unquoted(std::string_view text) {
  for (;;) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos || text[first] != '>') {
      return text;
    }
    text.remove_prefix(first + 1);
    if (!text.empty() && text.front() == ' ') {
      text.remove_prefix(1);
    }
  }
}

line line_from(std::string_view raw, std::uint32_t number) {
  const auto whole = plain(raw);
  auto text = unquoted(whole);
  line one{.text = {}, .indent = 0, .number = number};
  one.indent = std::min(text.find_first_not_of(" \t"), text.size());
  text = text::trim(text);
  while (text.ends_with('\\')) {
    text = text::trim(text.substr(0, text.size() - 1));
  }
  const bool is_string = text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
                         std::ranges::count(text, '"') == 2;
  one.text = is_string ? text::trim(text.substr(1, text.size() - 2)) : text;
  return one;
}

// What Windows tools write: two bytes a letter, of which the second is 0 for ours.
std::string narrowed(std::string_view text) {
  std::string narrow;
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    narrow += text[at + 1] == '\0' ? text[at] : '?';
  }
  return narrow;
}

bool is_wide(std::string_view text) noexcept {
  return text.starts_with("\xFF\xFE");
}

}  // namespace

bool is_binary(std::string_view text) noexcept {
  constexpr std::size_t enough = 1 << 16;
  const auto part = text.substr(0, enough);
  if (part.starts_with("\x1f\x8b") ||
      part.starts_with("\x7f"
                       "ELF") ||
      part.starts_with("PK\x03\x04") || part.starts_with("\x28\xb5\x2f\xfd") ||
      part.starts_with("\x89PNG")) {
    return true;
  }
  if (is_wide(part)) {
    const auto narrow = static_cast<std::size_t>(std::ranges::count(part, '\0'));
    return narrow * 4 < part.size();
  }
  // A terminal's log may hold a few.
  const auto controls = static_cast<std::size_t>(std::ranges::count_if(part, is_control));
  return controls * 50 > part.size();
}

std::vector<line> lines_of(std::string_view text) {
  std::string narrow;
  if (is_wide(text)) {
    narrow = narrowed(text);
    text = narrow;
  }
  std::vector<line> lines;
  std::uint32_t number = 0;
  while (!text.empty()) {
    const auto end = static_cast<std::size_t>(
        std::ranges::find_if(text, [](char c) { return c == '\n' || c == '\r'; }) - text.begin());
    lines.push_back(line_from(text.substr(0, end), ++number));
    const auto is_pair = text.substr(end).starts_with("\r\n");
    text.remove_prefix(std::min(text.size(), end + (is_pair ? 2 : 1)));
  }
  return lines;
}

bool is_decoration(std::string_view text) noexcept {
  return text.starts_with("```") || text.starts_with("~~~") ||
         text.find_first_not_of("=-*_#+|~.: \t") == std::string_view::npos;
}

bool is_border(std::string_view text) noexcept {
  if (text.starts_with("```") || text.starts_with("----") || text.starts_with("$ ") ||
      text.starts_with("# ") || text.starts_with("% ")) {
    return true;
  }
  // "user@host:~$ lspci", "[root@host ~]# lspci"
  const auto prompt =
      std::min({text.find("]$ "), text.find("]# "), text.find("$ "), text.find("# ")});
  return prompt != std::string_view::npos &&
         text.substr(0, prompt).find('@') != std::string_view::npos;
}

}  // namespace berth::topology::paste
