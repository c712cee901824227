// SPDX-License-Identifier: Apache-2.0
#include "trace/import/event_splitter.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "core/text.hpp"
#include "trace/import/json_scan.hpp"

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

}  // namespace

event_splitter::event_splitter(byte_source source, std::span<const std::string_view> wanted_members)
    : source_(std::move(source)), wanted_members_(wanted_members.begin(), wanted_members.end()) {
  buffer_.resize(buffer_size + back);
}

result<void> event_splitter::next(event_batch& batch) {
  batch.events.clear();
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
    auto read = read_events(batch);
    if (!read || !batch.events.empty()) {
      return read;
    }
  }
  if (stage_ == stage::after_events) {
    if (auto read = in_object_ ? read_members() : read_end(); !read) {
      return read.error();
    }
  }
  stage_ = stage::done;
  return {};
}

result<void> event_splitter::read_start() {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (auto filled = refill(); !filled) {
    return filled.error();
  }
  if (std::string_view(buffer_.data() + at_, end_ - at_).starts_with(byte_order_mark)) {
    at_ += byte_order_mark.size();
  }
  const auto first = peek();
  if (!first) {
    return first.error();
  }
  if (!first->has_value() && source_.ended_early()) {
    end_early(0);
    return {};
  }
  if (!first->has_value()) {
    return error(errc::input_empty, "the file holds only blanks", source_.name());
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
        return error(errc::input_unknown_format, "JSON without \"traceEvents\"", source_.name(),
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
  auto name = read_value();
  if (!name) {
    return name.error();
  }
  if (name->empty()) {
    return progress::need_bytes;
  }
  // Without its quotes; escapes stay as they are.
  *name = name->substr(1, name->size() - 2);
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
  keep(std::move(*name), std::move(*value));
  between_ = true;
  return progress::more;
}

// As in JSON itself, the last of several members with one name counts.
void event_splitter::keep(std::string name, std::string text) {
  if (std::find(wanted_members_.begin(), wanted_members_.end(), name) == wanted_members_.end()) {
    return;
  }
  const auto known = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& member) { return member.name == name; });
  if (known != members_.end()) {
    known->text = std::move(text);
  } else {
    members_.push_back({std::move(name), std::move(text)});
  }
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

result<void> event_splitter::read_events(event_batch& batch) {
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
      auto more = refill();
      if (!more) {
        return more.error();
      }
      if (!*more) {
        end_early(end_ - at_);
        return {};
      }
    }
  }
  if (!batch.events.empty()) {
    hand_over(batch);
  }
  return {};
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
  const auto length =
      static_cast<std::size_t>((after != nullptr ? after : begin + end_) - begin) - at_;
  if (length > longest_event) {
    return error(errc::input_out_of_range,
                 fmt::format("an event of more than {}", format_bytes(longest_event)), here());
  }
  if (after == nullptr) {
    return progress::need_bytes;
  }
  batch.events.push_back({static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(length)});
  at_ += length;
  between_ = true;
  return progress::more;
}

// Gives the buffer away with the batch and goes on in the batch's old one, which takes over what is
// not taken.
void event_splitter::hand_over(event_batch& batch) {
  auto& next = batch.text;
  next.resize(std::max(buffer_size, front + end_ - at_) + back);
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), next.begin() + front);
  // Commas and blanks stand between the events: with brackets around them they are an array.
  buffer_[batch.events.front().offset - 1] = '[';
  buffer_[batch.events.back().offset + batch.events.back().length] = ']';
  batch.position = position_ - front;
  batch.file_bytes_read = source_.file_bytes_read();
  std::swap(buffer_, next);
  position_ += at_ - front;
  end_ -= at_ - front;
  at_ = front;
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
  if (at_ > front) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin() + front);
    position_ += at_ - front;
    end_ -= at_ - front;
    at_ = front;
  }
  if (end_ + back == buffer_.size()) {
    buffer_.resize(2 * end_ + back);
  }
  const auto room = buffer_.size() - back - end_;
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
  return fmt::format("{} at byte {}{}", source_.name(), position_ + at_ - front,
                     source_.is_compressed() ? " of the decompressed text" : "");
}

}  // namespace berth::trace
