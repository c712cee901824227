// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace berth::text {
namespace {

constexpr std::string_view blanks = " \t\r\n";

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_continuation(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (auto at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(blanks, at), text.size());
    found.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return found;
}

std::optional<std::vector<std::uint32_t>> parse_number_list(std::string_view text) {
  constexpr std::uint32_t limit = 1U << 16U;
  std::vector<std::uint32_t> numbers;
  text = trim(text);
  if (text.ends_with(',')) {
    return std::nullopt;  // cut
  }
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto part = trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto dash = std::min(part.find('-'), part.size());
    const auto first = whole_number<std::uint32_t>(part.substr(0, dash));
    const auto last =
        dash == part.size() ? first : whole_number<std::uint32_t>(part.substr(dash + 1));
    // Whoever names the same ranges again and again gets no memory for it.
    if (!first || !last || *last < *first || *last >= limit || numbers.size() > limit) {
      return std::nullopt;
    }
    for (auto number = *first; number <= *last; ++number) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<std::string> number_ranges(std::span<const std::uint32_t> numbers) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < numbers.size();) {
    auto end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    ranges.push_back(end - begin == 1 ? fmt::format("{}", numbers[begin])
                                      : fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
    begin = end;
  }
  return ranges;
}

std::string number_list(std::span<const std::uint32_t> numbers) {
  return fmt::format("{}", fmt::join(number_ranges(numbers), ","));
}

std::string to_lower(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  return lowered;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return part.empty() ||
         std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

std::size_t display_width(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string shorten(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  std::vector<std::size_t> starts;  // byte offset of each code point
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (!is_continuation(text[index])) {
      starts.push_back(index);
    }
  }
  const std::size_t kept = width - 3;
  const std::size_t head = (kept * 2 + 2) / 3;
  const std::size_t tail = kept - head;
  return fmt::format("{}...{}", text.substr(0, starts[head]),
                     text.substr(tail == 0 ? text.size() : starts[starts.size() - tail]));
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t index = 0; index < text.size(); ++index) {
    const auto code = static_cast<unsigned char>(text[index]);
    const auto next = index + 1 < text.size() ? static_cast<unsigned char>(text[index + 1]) : 0U;
    if (code < 0x20 || code == 0x7F) {
      safe += fmt::format("\\x{:02x}", code);
    } else if (code == 0xC2 && next >= 0x80 && next < 0xA0) {
      // U+0080..U+009F in UTF-8: terminals take U+009B as the start of an escape.
      safe += fmt::format("\\x{:02x}", next);
      ++index;
    } else {
      safe += text[index];
    }
  }
  return safe;
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./%=:,@+-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string made = "'";
  for (const char letter : word) {
    made += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return made + "'";
}

}  // namespace berth::text
