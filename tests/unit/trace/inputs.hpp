// SPDX-License-Identifier: Apache-2.0
// Inputs of importer tests: traces written in the test, in memory, plain or compressed.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zlib.h>

#include "trace/import/byte_source.hpp"
#include "trace/import/import.hpp"

namespace berth::test {

inline constexpr std::string_view input_name = "test.json";

inline std::vector<char> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

inline trace::byte_source source_of(std::string_view text) {
  return trace::byte_source::from_memory(std::string(input_name), bytes_of(text)).value();
}

// One gzip member.
inline std::string gzip(std::string_view text) {
  constexpr int gzip_window = 15 + 16;
  constexpr int memory_level = 8;
  z_stream deflater{};
  if (deflateInit2(&deflater, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_window, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string plain(text);
  std::string packed(deflateBound(&deflater, static_cast<uLong>(text.size())), '\0');
  deflater.next_in = reinterpret_cast<Bytef*>(plain.data());
  deflater.avail_in = static_cast<uInt>(plain.size());
  deflater.next_out = reinterpret_cast<Bytef*>(packed.data());
  deflater.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&deflater, Z_FINISH);
  packed.resize(deflater.total_out);
  deflateEnd(&deflater);
  if (status != Z_STREAM_END) {
    throw std::runtime_error("deflate");
  }
  return packed;
}

inline result<trace::imported> import_text(std::string_view text) {
  auto source = trace::byte_source::from_memory(std::string(input_name), bytes_of(text));
  if (!source) {
    return source.error();
  }
  return trace::try_import(std::move(*source));
}

// A trace of these events (their text, without commas at the ends), with other members.
inline std::string trace_of(std::string_view events, std::string_view members = "") {
  return "{\"schemaVersion\":1," + std::string(members) + "\"traceEvents\":[" +
         std::string(events) + "]}";
}

// A text with one '^' in it: the text without it, and where it was.
struct marked {
  std::string text;
  std::size_t position;
};

inline marked unmark(std::string_view text) {
  const auto position = text.find('^');
  if (position == std::string_view::npos) {
    throw std::invalid_argument("no '^' in the text");
  }
  return {std::string(text.substr(0, position)) + std::string(text.substr(position + 1)), position};
}

}  // namespace berth::test
