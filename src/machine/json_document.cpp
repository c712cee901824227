// SPDX-License-Identifier: Apache-2.0
// The parser's own DOM forgets positions, so the text is read twice: once as events, through an
// iterator that counts lines, for the line of each value, and once as values.
#include "machine/json_document.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text.hpp"

namespace berth::machine {
namespace {

using json = nlohmann::json;

struct line_counter {
  std::size_t line = 1;
  bool at_line_start = true;  // the last character read was a line break
};

// Characters of the text; shares its counter with its copies.
class counting_iterator {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  counting_iterator(const char* at, line_counter* counter) : at_(at), counter_(counter) {}

  reference operator*() const { return *at_; }
  counting_iterator& operator++() {
    counter_->at_line_start = *at_ == '\n';
    counter_->line += counter_->at_line_start ? 1U : 0U;
    ++at_;
    return *this;
  }
  counting_iterator operator++(int) {
    auto before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const counting_iterator& a, const counting_iterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const counting_iterator& a, const counting_iterator& b) {
    return !(a == b);
  }

private:
  const char* at_;
  line_counter* counter_;
};

std::string escaped(std::string_view key) {
  std::string pointer;
  for (const char c : key) {
    pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

std::size_t line_at(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

// "syntax error while parsing value - ..." out of the parser's message with its own coordinates.
std::string without_prefix(std::string_view message) {
  const auto column = message.find("column ");
  const auto colon = column == std::string_view::npos ? column : message.find(": ", column);
  if (colon != std::string_view::npos) {
    return std::string(message.substr(colon + 2));
  }
  const auto bracket = message.find("] ");
  return std::string(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

// Collects the line of each value; false from a callback stops the parser.
class line_collector final : public nlohmann::json_sax<json> {
public:
  line_collector(std::string_view text, const line_counter& counter)
      : text_(text), counter_(&counter) {}

  bool null() override { return value(here()); }
  bool boolean(bool) override { return value(here()); }
  bool number_integer(number_integer_t) override { return value(before_break()); }
  bool number_unsigned(number_unsigned_t) override { return value(before_break()); }
  bool number_float(number_float_t, const string_t&) override { return value(before_break()); }
  bool string(string_t&) override { return value(here()); }
  bool binary(binary_t&) override { return value(here()); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& parent = open_.back();
    parent.next = fmt::format("{}/{}", parent.pointer, escaped(name));
    if (lines.contains(parent.next)) {
      return stop(here(), fmt::format("'{}' stands here a second time", text::printable(name)));
    }
    lines[parent.next] = here();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& why) override {
    return stop(line_at(text_, position), without_prefix(why.what()));
  }

  std::map<std::string, std::size_t> lines;
  std::string failure;
  std::size_t failure_line = 0;

private:
  struct container {
    std::string pointer;
    std::string next;  // pointer of the value that follows; of an object only
    std::size_t index = 0;
  };

  [[nodiscard]] std::size_t here() const noexcept { return counter_->line; }
  // A number ends where the next character is read, which may be a line break.
  [[nodiscard]] std::size_t before_break() const noexcept {
    return counter_->line - (counter_->at_line_start && counter_->line > 1 ? 1U : 0U);
  }

  std::string pointer_of_value() {
    if (open_.empty()) {
      return {};
    }
    auto& parent = open_.back();
    return parent.next.empty() ? fmt::format("{}/{}", parent.pointer, parent.index++)
                               : std::exchange(parent.next, {});
  }

  bool value(std::size_t line) {
    lines.emplace(pointer_of_value(), line);
    return true;
  }
  bool open() {
    // The pointers of values grow with their depth, so depth without end takes time without end.
    constexpr std::size_t deepest = 16;
    if (open_.size() >= deepest) {
      return stop(here(), "nested too deep");
    }
    auto pointer = pointer_of_value();
    lines.emplace(pointer, here());
    open_.push_back({.pointer = std::move(pointer), .next = {}, .index = 0});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool stop(std::size_t line, std::string why) {
    failure = std::move(why);
    failure_line = line;
    return false;
  }

  std::string_view text_;
  const line_counter* counter_;
  std::vector<container> open_;
};

[[noreturn]] void throw_at(std::string_view file, std::size_t line, errc code, std::string what,
                           std::string hint = {}) {
  throw_error(error(code, std::move(what), fmt::format("{}:{}", file, line), std::move(hint)));
}

}  // namespace

json_document::json_document(std::string_view text, std::string_view file) : file_(file) {
  if (text::trim(text).empty()) {
    throw_error(error(errc::input_empty, "the machine file is empty", file_));
  }
  line_counter counter;
  line_collector collector(text, counter);
  const char* const end = text.data() + text.size();
  const bool whole = json::sax_parse(counting_iterator(text.data(), &counter),
                                     counting_iterator(end, &counter), &collector);
  if (!whole) {
    throw_at(file_, collector.failure_line, errc::input_malformed, collector.failure);
  }
  lines_ = std::move(collector.lines);
  value_ = json::parse(text);
}

json_cursor json_document::root() const {
  return {*this, value_, {}};
}

std::size_t json_document::line_of(const std::string& pointer) const {
  const auto found = lines_.find(pointer);
  return found == lines_.end() ? 1 : found->second;
}

void json_cursor::fail(std::string what, errc code, std::string hint) const {
  throw_at(document_->file(), document_->line_of(pointer_), code,
           pointer_.empty() ? std::move(what) : fmt::format("{}: {}", pointer_.substr(1), what),
           std::move(hint));
}

std::optional<json_cursor> json_cursor::find(std::string_view field) const {
  if (!value_->is_object()) {
    fail(fmt::format("expected an object, found {}", value_->type_name()));
  }
  const auto found = value_->find(field);
  if (found == value_->end()) {
    return std::nullopt;
  }
  return json_cursor(*document_, *found, fmt::format("{}/{}", pointer_, escaped(field)));
}

json_cursor json_cursor::at(std::string_view field) const {
  auto found = find(field);
  if (!found) {
    fail(fmt::format("'{}' is missing", field));
  }
  return *found;
}

void json_cursor::allow_only(std::initializer_list<std::string_view> fields) const {
  if (!value_->is_object()) {
    fail(fmt::format("expected an object, found {}", value_->type_name()));
  }
  for (const auto& [name, value] : value_->items()) {
    if (std::find(fields.begin(), fields.end(), name) == fields.end()) {
      json_cursor(*document_, value, fmt::format("{}/{}", pointer_, escaped(name)))
          .fail("no such field", errc::input_malformed,
                fmt::format("known here: {}", fmt::join(fields, ", ")));
    }
  }
}

std::vector<std::string> json_cursor::field_names() const {
  if (!value_->is_object()) {
    fail(fmt::format("expected an object, found {}", value_->type_name()));
  }
  std::vector<std::string> names;
  names.reserve(value_->size());
  for (const auto& [name, value] : value_->items()) {
    names.push_back(name);
  }
  return names;
}

std::vector<json_cursor> json_cursor::items() const {
  if (!value_->is_array()) {
    fail(fmt::format("expected an array, found {}", value_->type_name()));
  }
  std::vector<json_cursor> all;
  all.reserve(value_->size());
  for (std::size_t index = 0; index < value_->size(); ++index) {
    all.emplace_back(*document_, (*value_)[index], fmt::format("{}/{}", pointer_, index));
  }
  return all;
}

std::string json_cursor::text() const {
  if (!value_->is_string()) {
    fail(fmt::format("expected text, found {}", value_->type_name()));
  }
  auto content = value_->get<std::string>();
  if (content.empty() || text::printable(content) != content) {
    fail("expected text that is not empty and has no control characters");
  }
  return content;
}

bool json_cursor::truth() const {
  if (!value_->is_boolean()) {
    fail(fmt::format("expected true or false, found {}", value_->type_name()));
  }
  return value_->get<bool>();
}

double json_cursor::number(double lowest, double highest) const {
  if (!value_->is_number()) {
    fail(fmt::format("expected a number, found {}", value_->type_name()));
  }
  const auto content = value_->get<double>();
  if (!std::isfinite(content) || content < lowest || content > highest) {
    fail(fmt::format("{} is not between {} and {}", content, lowest, highest),
         errc::input_out_of_range);
  }
  return content;
}

std::uint64_t json_cursor::integer(std::uint64_t lowest, std::uint64_t highest) const {
  if (!value_->is_number_unsigned()) {
    fail(fmt::format("expected a whole number from {} to {}", lowest, highest),
         value_->is_number() ? errc::input_out_of_range : errc::input_malformed);
  }
  const auto content = value_->get<std::uint64_t>();
  if (content < lowest || content > highest) {
    fail(fmt::format("{} is not between {} and {}", content, lowest, highest),
         errc::input_out_of_range);
  }
  return content;
}

bytes_t json_cursor::bytes() const {
  if (!value_->is_string()) {
    return integer(0, std::numeric_limits<std::uint64_t>::max());
  }
  const auto content = text();
  const auto size = try_parse_bytes(content);
  if (!size) {
    fail(size.error().message(), errc::input_malformed, size.error().hint());
  }
  return *size;
}

}  // namespace berth::machine
