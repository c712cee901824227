// SPDX-License-Identifier: Apache-2.0
// PyTorch/Kineto Chrome traces: what each event of such a file means in the event model.
//
// Kineto writes one complete event ("ph":"X") for each activity, with its category in "cat". The
// spellings of categories, arguments and copies changed with its versions and differ between builds
// for CUDA and for ROCm; the tables in the source list all that are known.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "trace/import/event_splitter.hpp"
#include "trace/trace.hpp"

namespace berth::trace {

class kineto_reader {
public:
  // `file` names the file in errors.
  explicit kineto_reader(std::string file);
  ~kineto_reader();
  kineto_reader(const kineto_reader&) = delete;
  kineto_reader& operator=(const kineto_reader&) = delete;

  // Adds the events of a batch. `position_note` is appended to byte positions in errors.
  // @errors input_malformed, input_encoding, input_out_of_range; the reader is of no use afterwards
  [[nodiscard]] result<void> add(const event_batch& batch, std::string_view position_note);

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
