// SPDX-License-Identifier: Apache-2.0
// PyTorch/Kineto Chrome traces: what each event of such a file means in the event model.
//
// Kineto writes one complete event ("ph":"X") for each activity, with its category in "cat". The
// spellings of categories, arguments and copies changed with its versions and differ between builds
// for CUDA and for ROCm; the tables in the source list all that are known.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "trace/import/event_splitter.hpp"
#include "trace/trace.hpp"

namespace berth::trace {

// A batch of events on its way to the reader, with what simdjson's first stage finds in it. The
// stage is a good part of the work and can run on another thread than the reader's.
class kineto_batch {
public:
  kineto_batch();
  kineto_batch(const kineto_batch&) = delete;
  kineto_batch& operator=(const kineto_batch&) = delete;
  kineto_batch(kineto_batch&&) noexcept;
  kineto_batch& operator=(kineto_batch&&) noexcept;
  ~kineto_batch();

  event_batch events;

  // To be called when `events` is filled. What it finds wrong kineto_reader::add() reports.
  void index();

private:
  friend class kineto_reader;
  struct state;
  std::unique_ptr<state> state_;
};

class kineto_reader {
public:
  // `file` names the file in errors.
  explicit kineto_reader(std::string file);
  ~kineto_reader();
  kineto_reader(const kineto_reader&) = delete;
  kineto_reader& operator=(const kineto_reader&) = delete;

  // The members of the top-level object that finish() reads.
  [[nodiscard]] static std::span<const std::string_view> wanted_members() noexcept;

  // Adds the events of an indexed batch, once. `position_note` is appended to byte positions in
  // errors.
  // @errors input_malformed, input_encoding, input_out_of_range; the reader is of no use afterwards
  [[nodiscard]] result<void> add(kineto_batch& batch, std::string_view position_note);

  // Takes memory for about as many events, those seen included.
  void expect(std::uint64_t events);

  // Events of any kind that were seen.
  [[nodiscard]] std::uint64_t seen() const noexcept;

  // Joins what belongs together and gives the trace away. `members` are the top-level members
  // beside the events. @errors input_unknown_format if no event was one of a trace
  [[nodiscard]] result<trace> finish(const std::vector<top_level_member>& members);

private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace berth::trace
