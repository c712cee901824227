// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "trace/import/recording/about.hpp"
#include "trace/import/recording/content.hpp"
#include "trace/import/recording/conversion.hpp"
#include "trace/import/recording/first_calls.hpp"
#include "trace/recording/block_reader.hpp"

namespace berth::trace {
namespace {

using recording::content;
using recording::damage;

// Why the end of a recording is not the end of what was recorded; empty if it is.
std::string early_end(const content& recorded, const damage& losses) {
  if (!recorded.end) {
    return losses.cut ? "the recording ends inside a block: the program was killed, or the file "
                        "was copied while it ran"
                      : "the recording has no end: the program was killed, or still runs";
  }
  const auto reason = recorded.end->find("reason");
  constexpr std::string_view disk = "disk";
  if (reason != recorded.end->end() && reason->second.starts_with(disk)) {
    return fmt::format("the recording stopped early: {}", reason->second);
  }
  return {};
}

std::optional<cut> cut_of(const content& recorded, const damage& losses, const std::string& file) {
  if (auto why = early_end(recorded, losses); !why.empty()) {
    return cut{
        error(errc::input_truncated, std::move(why), file,
              "events of the last 0.1 s before it may be missing; those before are complete"),
        recorded.events.size(), losses.lost_bytes};
  }
  if (losses.any()) {
    return cut{error(errc::input_malformed,
                     fmt::format("the file is damaged: places {}, missing blocks {}", losses.places,
                                 losses.missing_blocks),
                     file, "copy or record it again"),
               recorded.events.size(), losses.lost_bytes};
  }
  return std::nullopt;
}

}  // namespace

bool is_recording_file(const std::string& path) {
  auto source = byte_source::open(path);
  if (!source) {
    return false;
  }
  const auto first = source->peek(recording::file_magic.size());
  return first && recording::is_recording(*first);
}

result<imported> import_recording(byte_source source, const import_options& options) {
  const auto file = source.name();
  auto blocks = recording::block_reader::open(std::move(source));
  if (!blocks) {
    return blocks.error();
  }
  auto recorded = recording::read_content(*blocks, options.progress);
  if (!recorded) {
    return recorded.error();
  }
  const auto& losses = blocks->losses();
  if (blocks->blocks_read() == 0) {
    return error(errc::input_truncated, "the recording ends before its first whole block", file,
                 "the program that was recorded ended before it had written anything");
  }
  const auto known = recording::lost_events(*recorded, losses) ? recording::ranges_known::some
                                                               : recording::ranges_known::all;
  imported read;
  const auto converted = recording::convert(*recorded, known, read.events);
  read.events.about = recording::describe(*recorded, losses, converted);
  read.events.about.file = file;
  recording::leave_out_first_calls(read.events);
  read.cut = cut_of(*recorded, losses, file);
  return read;
}

}  // namespace berth::trace
