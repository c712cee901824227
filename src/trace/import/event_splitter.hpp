// SPDX-License-Identifier: Apache-2.0
// Cuts a Chrome trace into its events without reading the rest of the file into memory.
//
// The JSON Trace Event Format is either an array of events, or an object whose member "traceEvents"
// is that array. The splitter finds where each event begins and ends (brackets outside strings) and
// hands over batches of whole events; what an event means, and whether it is valid JSON inside, is
// the next stage's business. A file that ends in the middle loses only the event that it cut.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "trace/import/byte_source.hpp"

namespace berth::trace {

// Some whole events, in file order. A batch is filled again and again, to keep its memory.
struct event_batch {
  struct piece {
    std::uint32_t offset;
    std::uint32_t length;
  };
  // `text` has at least `padding` bytes behind array(), as simdjson wants them.
  static constexpr std::size_t padding = 64;

  std::vector<char> text;
  std::vector<piece> events;
  std::uint64_t position = 0;         // of text[0] in the (decompressed) file
  std::uint64_t file_bytes_read = 0;  // for progress

  // The events as one JSON array. There must be one at least.
  [[nodiscard]] std::string_view array() const noexcept {
    const std::size_t begin = events.front().offset - 1;
    return {text.data() + begin, events.back().offset + events.back().length + 1 - begin};
  }
};

// Another member of the top-level object, as its JSON text.
struct top_level_member {
  std::string name;
  std::string text;
};

class event_splitter {
public:
  // Members of the top-level object other than `wanted_members` are dropped.
  explicit event_splitter(byte_source source,
                          std::span<const std::string_view> wanted_members = {});

  // Fills `batch` with the next events; none when there are no more. Blocks on the file.
  // @errors input_unknown_format, input_malformed, input_out_of_range, and those of byte_source
  [[nodiscard]] result<void> next(event_batch& batch);

  // Valid once next() has given no events.
  [[nodiscard]] bool ended_early() const noexcept { return ended_early_; }
  [[nodiscard]] std::uint64_t lost_bytes() const noexcept { return lost_bytes_; }
  [[nodiscard]] std::uint64_t end_position() const noexcept { return position_ + end_ - front; }
  [[nodiscard]] const std::vector<top_level_member>& members() const noexcept { return members_; }
  [[nodiscard]] bool is_compressed() const noexcept { return source_.is_compressed(); }

private:
  // The buffer has room for a bracket in front of the first byte that is read, and for another and
  // the padding behind the last.
  static constexpr std::size_t front = 1;
  static constexpr std::size_t back = 1 + event_batch::padding;

  enum class stage { start, before_events, events, after_events, done };
  enum class progress { more, finished, need_bytes };

  [[nodiscard]] result<void> read_start();
  [[nodiscard]] result<void> read_members();
  [[nodiscard]] result<progress> read_member();
  void keep(std::string name, std::string text);
  [[nodiscard]] result<std::string> read_value();
  [[nodiscard]] result<void> read_end();
  [[nodiscard]] result<void> read_events(event_batch& batch);
  [[nodiscard]] result<progress> take_event(event_batch& batch);
  void hand_over(event_batch& batch);

  // The next byte that is not blank, without taking it; nothing at the end of the file.
  [[nodiscard]] result<std::optional<char>> peek();
  // Keeps what is not yet taken and reads more behind it. False at the end of the file.
  [[nodiscard]] result<bool> refill();
  void end_early(std::uint64_t lost);
  [[nodiscard]] error malformed(std::string_view what) const;
  [[nodiscard]] std::string here() const;

  byte_source source_;
  std::vector<std::string> wanted_members_;
  stage stage_ = stage::start;
  std::vector<char> buffer_;  // [at_, end_) is read and not yet taken
  std::size_t at_ = front;
  std::size_t end_ = front;
  std::uint64_t position_ = 0;  // of buffer_[front] in the file
  bool in_object_ = false;      // the top level is an object, not a bare array
  bool has_events_ = false;     // "traceEvents" was there
  bool between_ = false;        // behind an element: a comma or the end must follow
  bool ended_early_ = false;
  std::uint64_t lost_bytes_ = 0;
  std::vector<top_level_member> members_;
};

}  // namespace berth::trace
