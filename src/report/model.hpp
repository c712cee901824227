// SPDX-License-Identifier: Apache-2.0
// The report model: what text and JSON render. One model, so that no rendering knows more than
// another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/error.hpp"
#include "diagnose/diagnosis.hpp"
#include "trace/import/import.hpp"
#include "trace/trace.hpp"

namespace berth::report {

// Of one trace: what it is, how far it could be read, and what it shows. A trace that could not be
// read at all has an error and nothing else.
struct trace_report {
  std::string file;
  std::optional<error> failure;
  trace::metadata about;
  std::optional<trace::cut> cut;
  diagnose::diagnosis diagnosis;
};

// A recorded process that copied nothing and started no kernel.
struct quiet_process {
  std::string file;
  std::string program;  // empty if unknown
};

struct document {
  std::vector<trace_report> traces;
  std::vector<quiet_process> quiet = {};  // of folders: not worth a report each
};

// Copies that a report shows together, because they have the same label.
struct labelled_copies {
  std::string label;
  diagnose::copy_group group;
};
// By falling time. An unknown kind and the kind that its side suggests share a label; the merged
// group then has the unknown kind.
[[nodiscard]] std::vector<labelled_copies> labelled(const diagnose::totals& totals);

// "HtoD (Pageable -> Device)": direction and kinds as CUDA's profilers spell them; an end of
// unknown kind is called by its side.
[[nodiscard]] std::string copy_label(const diagnose::copy_group& group);

}  // namespace berth::report
