// SPDX-License-Identifier: Apache-2.0
#include "machine_input.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <istream>
#include <string_view>
#include <system_error>
#include <utility>

#include "topology/bundle.hpp"
#include "topology/live.hpp"
#include "topology/paste.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t largest_text = std::size_t{256} * 1024 * 1024;

std::string from_stream(std::istream& in) {
  std::string text;
  std::string part(std::size_t{64} * 1024, '\0');
  while (text.size() <= largest_text &&
         (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0)) {
    text.append(part, 0, static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

// zstd's magic number: text never begins so.
bool is_bundle(const std::string& file) {
  std::ifstream opened(file, std::ios::binary);
  std::string begin(4, '\0');
  return file != standard_input && opened.read(begin.data(), 4) && begin == "\x28\xb5\x2f\xfd";
}

result<machine::survey> read_bundle(const std::string& file) {
  const auto opened = topology::open_bundle(file);
  if (!opened) {
    return opened.error();
  }
  topology::live_options from;
  from.root = opened->root();
  return topology::read_machine(from);
}

result<machine::survey> read_texts(const std::vector<std::string>& files, std::istream& in) {
  std::vector<topology::pasted_text> pieces;
  for (const auto& file : files) {
    auto piece = read_text_file(file, in);
    if (!piece) {
      return piece.error();
    }
    pieces.push_back(std::move(*piece));
  }
  return topology::read_pasted(pieces);
}

}  // namespace

result<topology::pasted_text> read_text_file(const std::string& file, std::istream& in) {
  const bool is_standard = file == standard_input;
  const std::string name = is_standard ? "standard input" : file;
  std::error_code ignored;
  if (!is_standard && std::filesystem::is_directory(file, ignored)) {
    return error(errc::file_unreadable, "it is a folder", file,
                 "berth doctor --root FOLDER reads the files of a captured machine");
  }
  std::ifstream opened;
  if (!is_standard) {
    opened.open(file, std::ios::binary);
    if (!opened.is_open()) {
      return error(errc::file_unreadable, std::error_code(errno, std::generic_category()).message(),
                   file);
    }
  }
  auto text = from_stream(is_standard ? in : opened);
  if (text.size() > largest_text) {
    return error(errc::input_out_of_range, "more than 256 MiB of text", name,
                 "give the output of the tools alone");
  }
  return topology::pasted_text{name, std::move(text)};
}

result<machine::survey> read_machine_files(const std::vector<std::string>& files,
                                           std::istream& in) {
  if (std::ranges::none_of(files, is_bundle)) {
    return read_texts(files, in);
  }
  if (files.size() > 1) {
    return error(errc::usage, "a bundle is a whole machine and is read alone", files.front(),
                 "berth doctor --compare A B tells what differs");
  }
  return read_bundle(files.front());
}

bool describes_nothing(const machine::survey& seen) {
  return seen.kind != machine::survey_kind::live && seen.sources.empty();
}

error nothing_described(const std::string& where) {
  return error(errc::input_unknown_format, "nothing in it describes a machine", where,
               "rocminfo, rocm-smi --showtopo, nvidia-smi topo -m and lspci -vv are read; "
               "docs/doctor.md lists all");
}

}  // namespace berth::cli
