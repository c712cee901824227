// SPDX-License-Identifier: Apache-2.0
// Reading traces of other tools. The format is recognised from the content, never from the name.
//
// A file that ends in the middle still gives a trace, of all that was whole, together with a `cut`
// that says so: the caller must show it. Everything else that is wrong with a file gives an error
// and no trace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "berth/result.hpp"
#include "trace/import/byte_source.hpp"
#include "trace/trace.hpp"

namespace berth::trace {

struct import_options {
  // Called from time to time with the bytes of the file that are read and its size.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

// How a file ended before its content did.
struct cut {
  error why;                   // input_truncated, with file and position
  std::uint64_t whole_events;  // of all kinds, read before the end
  std::uint64_t lost_bytes;    // behind the last whole event, decompressed
};

struct imported {
  trace events;
  std::optional<berth::trace::cut> cut;
};

// Reads one file. Blocks; uses two threads.
// @errors file_unreadable, input_empty, input_unknown_format, input_malformed, input_encoding,
//         input_out_of_range, input_compression; each with file and byte position
[[nodiscard]] result<imported> try_import(const std::string& path,
                                          const import_options& options = {});
// The same of an opened source.
[[nodiscard]] result<imported> try_import(byte_source source, const import_options& options = {});

}  // namespace berth::trace
