// SPDX-License-Identifier: Apache-2.0
// What all verbs of the command line share: exit statuses, streams, and how an error is shown.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "berth/error.hpp"
#include "berth/result.hpp"
#include "report/render.hpp"

namespace berth::cli {

// The exit statuses are part of the interface (README.md).
enum class exit_status : int {
  done = 0,
  fault_found = 1,  // only with --check
  wrong_usage = 2,
  unusable = 3,    // the machine or the input does not allow it
  wrong_data = 4,  // data came out wrong
};

enum class output_format : std::uint8_t { text, json };

// Where a verb writes. `terminal` members say whether a person watches that stream.
struct streams {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  report::colour colours = report::colour::off;
};

// Standard output and error, with colour if a terminal is there and NO_COLOR is not set.
[[nodiscard]] streams standard_streams();

// "error: ..." and, on a line of its own, "hint: ...".
void show_error(std::ostream& err, const error& what);

// Shows it, and gives the exit status of a verb that could not begin: wrong_usage or unusable.
[[nodiscard]] exit_status refuse(const streams& io, const error& what);

// `io` with standard error in the place of standard output, for verbs whose program owns the
// latter.
[[nodiscard]] streams all_on_error(const streams& io);

// Writes all of `text` to `path`, or to `io.out` if it is empty. A file appears whole or not at
// all.
// @errors file_unwritable
[[nodiscard]] result<void> write_output(const streams& io, const std::string& path,
                                        std::string_view text);

// Whether writing to `output` would write over that file, which exists.
[[nodiscard]] bool would_replace(const std::string& file, const std::string& output);

// The same of a text that is made part by part and need not fit into memory.
using text_sink = std::function<void(std::string_view part)>;
[[nodiscard]] result<void> write_output(const streams& io, const std::string& path,
                                        const std::function<void(const text_sink&)>& produce);

// One line on a terminal that says how far a long task is; nothing elsewhere. It disappears with
// the object.
class progress_line {
public:
  progress_line(const streams& io, std::string what);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  void update(std::uint64_t done, std::uint64_t total);

private:
  std::ostream* err_;  // null: nobody watches
  std::string what_;
  int shown_percent_ = -1;
};

}  // namespace berth::cli
