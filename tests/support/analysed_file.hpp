// SPDX-License-Identifier: Apache-2.0
// The report of a trace file, as `berth analyze` makes it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "diagnose/diagnosis.hpp"
#include "report/model.hpp"
#include "trace/import/import.hpp"

namespace berth::test {

// The report names the file without its folder, which differs between machines.
inline report::trace_report analysed(const std::filesystem::path& path) {
  report::trace_report shown;
  shown.file = path.filename().string();
  auto read = trace::try_import(path.string());
  if (!read) {
    ADD_FAILURE() << read.error().to_string();
    shown.failure = read.error();
    return shown;
  }
  shown.diagnosis = diagnose::diagnose(read->events);
  shown.about = std::move(read->events.about);
  shown.cut = std::move(read->cut);
  return shown;
}

// The traces that come with the project.
inline std::filesystem::path bundled_traces() {
  return std::filesystem::path(BERTH_SOURCE_DIR) / "tests" / "data" / "traces";
}

}  // namespace berth::test
