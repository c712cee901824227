// SPDX-License-Identifier: Apache-2.0
#include "cmd_export.hpp"

#include "trace/export/chrome.hpp"
#include "trace/import/import.hpp"

namespace berth::cli {
namespace {

exit_status refuse_export(const streams& io, exit_status status, const error& why) {
  show_error(io.err, why);
  return status;
}

}  // namespace

exit_status run_export(const export_options& options, const streams& io) {
  if (would_replace(options.file, options.output)) {
    return refuse_export(
        io, exit_status::wrong_usage,
        error(errc::usage, "the export would replace the trace that it is made from",
              options.output, "name another file for --output"));
  }
  auto read = [&] {
    progress_line progress(io, "reading " + options.file);
    return trace::try_import(options.file,
                             {.progress = [&](std::uint64_t done, std::uint64_t total) {
                               progress.update(done, total);
                             }});
  }();
  if (!read) {
    return refuse_export(io, exit_status::unusable, read.error());
  }
  const auto written = write_output(
      io, options.output, [&](const text_sink& sink) { trace::write_chrome(read->events, sink); });
  if (!written) {
    return refuse_export(io, exit_status::unusable, written.error());
  }
  if (read->cut) {
    return refuse_export(io, exit_status::unusable, read->cut->why);
  }
  return exit_status::done;
}

}  // namespace berth::cli
