// SPDX-License-Identifier: Apache-2.0
#include "trace/import/event_splitter.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "core/text.hpp"

namespace berth::trace {
namespace {

constexpr std::size_t buffer_size = 1 << 20;
// No real event comes near: the largest carry a kernel's name and a stack.
constexpr std::size_t longest_event = 64 * mib;
constexpr std::size_t longest_member = 64 * mib;

constexpr std::string_view formats_hint =
    "berth reads PyTorch/Kineto Chrome traces, plain or gzip: an object with \"traceEvents\"";

enum class mark : unsigned char { none, quote, open, close };

constexpr auto marks = [] {
  std::array<mark, 256> table{};
  table['"'] = mark::quote;
  table['{'] = table['['] = mark::open;
  table['}'] = table[']'] = mark::close;
  return table;
}();

constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Behind the closing quote of the string whose text starts at `at`; null if it does not end.
const char* end_of_string(const char* at, const char* end) noexcept {
  const char* const text = at;
  while (at < end) {
    at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
    if (at == nullptr) {
      return nullptr;
    }
    const char* before = at;
    while (before > text && before[-1] == '\\') {
      --before;
    }
    ++at;
    if ((at - 1 - before) % 2 == 0) {
      return at;
    }
  }
  return nullptr;
}

// Behind the bracket that closes the one at `at`; null if it is not closed before `end`.
const char* end_of_brackets(const char* at, const char* end) noexcept {
  std::size_t depth = 0;
  while (at < end) {
    switch (marks[static_cast<unsigned char>(*at++)]) {
      case mark::none:
        break;
      case mark::quote:
        at = end_of_string(at, end);
        if (at == nullptr) {
          return nullptr;
        }
        break;
      case mark::open:
        ++depth;
        break;
      case mark::close:
        if (--depth == 0) {
          return at;
        }
        break;
    }
  }
  return nullptr;
}

}  // namespace

event_splitter::event_splitter(byte_source source, std::string path)
    : source_(std::move(source)), path_(std::move(path)) {
  buffer_.resize(buffer_size + event_batch::padding);
}

result<std::optional<event_batch>> event_splitter::next() {
  if (stage_ == stage::start) {
    if (auto read = read_start(); !read) {
      return read.error();
    }
  }
  if (stage_ == stage::before_events) {
    if (auto read = read_members(); !read) {
      return read.error();
    }
  }
  if (stage_ == stage::events) {
    auto batch = read_events();
    if (!batch || batch->has_value()) {
      return batch;
    }
  }
  if (stage_ == stage::after_events) {
    if (auto read = in_object_ ? read_members() : read_end(); !read) {
      return read.error();
    }
  }
  stage_ = stage::done;
  return std::optional<event_batch>();
}

result<void> event_splitter::read_start() {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (auto filled = refill(); !filled) {
    return filled.error();
  }
  if (std::string_view(buffer_.data(), end_).starts_with(byte_order_mark)) {
    at_ = byte_order_mark.size();
  }
  const auto first = peek();
  if (!first) {
    return first.error();
  }
  if (!first->has_value()) {
    return error(errc::input_empty, "the file holds only blanks", path_);
  }
  if (*first != '{' && *first != '[') {
    return error(errc::input_unknown_format,
                 fmt::format("not a trace: it starts with '{}'",
                             text::printable(std::string(1, first->value()))),
                 here(), std::string(formats_hint));
  }
  in_object_ = *first == '{';
  has_events_ = !in_object_;
  stage_ = in_object_ ? stage::before_events : stage::events;
  ++at_;
  return {};
}

result<void> event_splitter::read_members() {
  while (true) {
    const auto step = read_member();
    if (!step) {
      return step.error();
    }
    if (*step == progress::need_bytes) {
      end_early(end_ - at_);
      return {};
    }
    if (stage_ == stage::events) {
      return {};
    }
    if (*step == progress::finished) {
      if (!has_events_) {
        return error(errc::input_unknown_format, "JSON without \"traceEvents\"", path_,
                     std::string(formats_hint));
      }
      return read_end();
    }
  }
}

result<event_splitter::progress> event_splitter::read_member() {
  auto c = peek();
  if (!c) {
    return c.error();
  }
  if (*c == '}') {
    ++at_;
    return progress::finished;
  }
  if (between_ && *c == ',') {
    ++at_;
    between_ = false;
    c = peek();
    if (!c) {
      return c.error();
    }
  }
  if (!c->has_value()) {
    return progress::need_bytes;
  }
  if (between_ || *c != '"') {
    return malformed(between_ ? "',' or '}' expected" : "a member's name expected");
  }
  auto name = read_string();
  if (!name) {
    return name.error();
  }
  c = peek();
  if (!c) {
    return c.error();
  }
  if (!c->has_value()) {
    return progress::need_bytes;
  }
  if (*c != ':') {
    return malformed("':' expected");
  }
  ++at_;
  c = peek();
  if (!c) {
    return c.error();
  }
  if (*name == "traceEvents") {
    if (*c != '[' || has_events_) {
      return c->has_value() ? result<progress>(malformed("one array \"traceEvents\" expected"))
                            : result<progress>(progress::need_bytes);
    }
    ++at_;
    has_events_ = true;
    stage_ = stage::events;
    between_ = false;
    return progress::more;
  }
  auto value = read_value();
  if (!value) {
    return value.error();
  }
  if (value->empty()) {
    return progress::need_bytes;
  }
  members_.push_back({std::move(*name), std::move(*value)});
  between_ = true;
  return progress::more;
}

// The text of the string that starts at the next byte, escapes left as they are.
result<std::string> event_splitter::read_string() {
  auto quoted = read_value();
  if (!quoted || quoted->size() < 2) {
    return quoted;
  }
  return quoted->substr(1, quoted->size() - 2);
}

// The JSON text of the next value; empty if the file ends inside it.
result<std::string> event_splitter::read_value() {
  while (true) {
    const char* const begin = buffer_.data() + at_;
    const char* const end = buffer_.data() + end_;
    const char* after = nullptr;
    if (begin < end) {
      switch (marks[static_cast<unsigned char>(*begin)]) {
        case mark::quote:
          after = end_of_string(begin + 1, end);
          break;
        case mark::open:
          after = end_of_brackets(begin, end);
          break;
        case mark::close:
          return malformed("a value expected");
        case mark::none:
          after = std::find_if(
              begin, end, [](char c) { return is_blank(c) || c == ',' || c == '}' || c == ']'; });
          after = after == end ? nullptr : after;
          break;
      }
    }
    if (after == begin) {
      return malformed("a value expected");
    }
    if (after != nullptr) {
      at_ += static_cast<std::size_t>(after - begin);
      return std::string(begin, after);
    }
    if (end_ - at_ > longest_member) {
      return error(errc::input_out_of_range,
                   fmt::format("a value of more than {}", format_bytes(longest_member)), here());
    }
    auto more = refill();
    if (!more) {
      return more.error();
    }
    if (!*more) {
      return std::string();
    }
  }
}

// Nothing but blanks may follow the top-level value.
result<void> event_splitter::read_end() {
  const auto rest = peek();
  if (!rest) {
    return rest.error();
  }
  if (rest->has_value()) {
    return malformed("something follows the end of the trace");
  }
  // The JSON may be whole though the compressed data lacks its end mark.
  if (source_.ended_early()) {
    end_early(0);
  }
  return {};
}

result<std::optional<event_batch>> event_splitter::read_events() {
  event_batch batch;
  while (true) {
    const auto step = take_event(batch);
    if (!step) {
      return step.error();
    }
    if (*step == progress::finished) {
      stage_ = stage::after_events;
      between_ = true;
      break;
    }
    if (*step == progress::need_bytes) {
      if (!batch.events.empty()) {
        break;
      }
      if (end_ - at_ > longest_event) {
        return error(errc::input_out_of_range,
                     fmt::format("an event of more than {}", format_bytes(longest_event)), here());
      }
      auto more = refill();
      if (!more) {
        return more.error();
      }
      if (!*more) {
        end_early(end_ - at_);
        return std::optional<event_batch>();
      }
    }
  }
  if (batch.events.empty()) {
    return std::optional<event_batch>();
  }
  return std::optional(hand_over(std::move(batch)));
}

// Takes the next event if it is whole in the buffer.
result<event_splitter::progress> event_splitter::take_event(event_batch& batch) {
  const char* const begin = buffer_.data();
  while (at_ < end_ && is_blank(begin[at_])) {
    ++at_;
  }
  if (at_ == end_) {
    return progress::need_bytes;
  }
  const char c = begin[at_];
  if (c == ']') {
    ++at_;
    return progress::finished;
  }
  if (between_) {
    if (c != ',') {
      return malformed("',' or ']' expected between events");
    }
    ++at_;
    between_ = false;
    return progress::more;
  }
  if (c != '{') {
    return malformed("an event expected: '{'");
  }
  const char* const after = end_of_brackets(begin + at_, begin + end_);
  if (after == nullptr) {
    return progress::need_bytes;
  }
  const auto length = static_cast<std::size_t>(after - begin) - at_;
  batch.events.push_back({static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(length)});
  at_ += length;
  between_ = true;
  return progress::more;
}

// Gives the buffer away with the batch and goes on in a new one, which takes over what is not
// taken.
event_batch event_splitter::hand_over(event_batch batch) {
  std::vector<char> next(std::max(buffer_size, end_ - at_) + event_batch::padding);
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), next.begin());
  batch.position = position_;
  batch.file_bytes_read = source_.file_bytes_read();
  batch.text = std::exchange(buffer_, std::move(next));
  position_ += at_;
  end_ -= at_;
  at_ = 0;
  return batch;
}

result<std::optional<char>> event_splitter::peek() {
  while (true) {
    while (at_ < end_ && is_blank(buffer_[at_])) {
      ++at_;
    }
    if (at_ < end_) {
      return std::optional(buffer_[at_]);
    }
    auto more = refill();
    if (!more) {
      return more.error();
    }
    if (!*more) {
      return std::optional<char>();
    }
  }
}

result<bool> event_splitter::refill() {
  if (at_ > 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    position_ += at_;
    end_ -= at_;
    at_ = 0;
  }
  if (end_ + event_batch::padding == buffer_.size()) {
    buffer_.resize(2 * end_ + event_batch::padding);
  }
  const auto room = buffer_.size() - event_batch::padding - end_;
  auto count = source_.read(std::span(buffer_).subspan(end_, room));
  if (!count) {
    return count.error();
  }
  end_ += *count;
  return *count > 0;
}

void event_splitter::end_early(std::uint64_t lost) {
  ended_early_ = true;
  lost_bytes_ = lost;
  stage_ = stage::done;
}

error event_splitter::malformed(std::string_view what) const {
  return error(errc::input_malformed, fmt::format("not JSON: {}", what), here());
}

std::string event_splitter::here() const {
  return fmt::format("{} at byte {}{}", path_, position_ + at_,
                     source_.is_compressed() ? " of the decompressed text" : "");
}

}  // namespace berth::trace
