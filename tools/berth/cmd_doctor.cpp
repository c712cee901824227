// SPDX-License-Identifier: Apache-2.0
#include "cmd_doctor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <optional>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "topology/bundle.hpp"
#include "topology/live.hpp"
#include "topology/paste.hpp"
#include "try_xnack.hpp"

namespace berth::cli {
namespace {

constexpr std::string_view standard_input = "-";
constexpr std::size_t largest_text = std::size_t{256} * 1024 * 1024;

error wrong(std::string message, const std::string& where, std::string hint) {
  return error(errc::usage, std::move(message), where, std::move(hint));
}

std::string from_stream(std::istream& in) {
  std::string text;
  std::string part(std::size_t{64} * 1024, '\0');
  while (text.size() <= largest_text &&
         (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0)) {
    text.append(part, 0, static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

result<topology::pasted_text> read_text(const std::string& file, std::istream& in) {
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
    auto piece = read_text(file, in);
    if (!piece) {
      return piece.error();
    }
    pieces.push_back(std::move(*piece));
  }
  return topology::read_pasted(pieces);
}

result<machine::survey> read_files(const std::vector<std::string>& files, std::istream& in) {
  if (std::ranges::none_of(files, is_bundle)) {
    return read_texts(files, in);
  }
  if (files.size() > 1) {
    return error(errc::usage, "a bundle is a whole machine and is read alone", files.front(),
                 "berth doctor --compare A B tells what differs");
  }
  return read_bundle(files.front());
}

topology::live_options live_options_of(const doctor_options& options) {
  topology::live_options from;
  if (!options.root.empty()) {
    from.root = options.root;
  }
  return from;
}

result<machine::survey> read_input(const doctor_options& options, std::istream& in) {
  return options.files.empty() ? topology::read_machine(live_options_of(options))
                               : read_files(options.files, in);
}

report::doctor_report examined(machine::survey seen, report::unread_lines unread) {
  report::doctor_report shown;
  shown.found = diagnose::check_machine(seen);
  shown.seen = std::move(seen);
  shown.unread = unread;
  return shown;
}

// A rendering to where the options say.
template <typename Shown>
result<void> write_shown(const Shown& shown, const doctor_options& options, const streams& io) {
  const auto colours = options.output.empty() ? io.colours : report::colour::off;
  return write_output(io, options.output,
                      options.format == output_format::json ? report::to_json(shown)
                                                            : report::to_text(shown, colours));
}

exit_status finish(const result<void>& written, const streams& io, exit_status otherwise) {
  if (!written) {
    show_error(io.err, written.error());
    return exit_status::unusable;
  }
  return otherwise;
}

// What cannot be tried is a problem of the reading, not of the machine.
void try_xnack(report::doctor_report& shown) {
  constexpr std::chrono::milliseconds patience{8'000};
  auto said = rocminfo_with_xnack(patience);
  if (!said) {
    shown.seen.problems.push_back({"rocminfo, with HSA_XNACK=1", said.error().message()});
    return;
  }
  const std::vector<topology::pasted_text> pieces{{"HSA_XNACK=1", std::move(*said)}};
  diagnose::add_tried_xnack(topology::read_pasted(pieces), shown.found, shown.seen);
}

bool has_nothing(const machine::survey& seen) {
  return seen.kind != machine::survey_kind::live && seen.sources.empty();
}

exit_status examine(const doctor_options& options, std::istream& in, const streams& io) {
  auto seen = read_input(options, in);
  if (!seen) {
    return refuse(io, seen.error());
  }
  if (has_nothing(*seen)) {
    show_error(io.err,
               error(errc::input_unknown_format, "nothing in it describes a machine", {},
                     "rocminfo, rocm-smi --showtopo, nvidia-smi topo -m and lspci -vv are read; "
                     "docs/doctor.md lists all"));
  }
  const bool nothing = has_nothing(*seen);
  if (options.action == doctor_action::show_affinity) {
    return finish(write_shown(diagnose::affinity_of(*seen), options, io), io,
                  nothing ? exit_status::unusable : exit_status::done);
  }
  auto shown = examined(std::move(*seen), options.unread);
  if (options.try_xnack == xnack_trial::on) {
    try_xnack(shown);
  }
  const bool fault = shown.found.worst == diagnose::verdict::fault;
  return finish(write_shown(shown, options, io), io,
                nothing                                      ? exit_status::unusable
                : fault && options.check == doctor_check::on ? exit_status::fault_found
                                                             : exit_status::done);
}

exit_status gather_machine(const doctor_options& options, const streams& io) {
  const auto done = topology::gather(live_options_of(options), options.gather_into);
  if (done && io.err_is_terminal) {
    io.err << "berth doctor " << options.gather_into << " reads it, on any machine\n";
  }
  return finish(done, io, exit_status::done);
}

exit_status compare_machines(const doctor_options& options, std::istream& in, const streams& io) {
  std::vector<report::doctor_report> both;
  for (const auto& file : options.files) {
    auto seen = read_files({file}, in);
    if (!seen) {
      return refuse(io, seen.error());
    }
    both.push_back(examined(std::move(*seen), report::unread_lines::counted));
  }
  auto shown = report::compare(both.front(), both.back());
  shown.first = options.files.front();
  shown.second = options.files.back();
  return finish(write_shown(shown, options, io), io, exit_status::done);
}

// What makes no sense before anything is read.
std::optional<error> contradiction_in(const doctor_options& options) {
  if (!options.root.empty() && !options.files.empty()) {
    return wrong("--root reads a folder, and files were named too", options.files.front(),
                 "leave one of them out");
  }
  if (options.try_xnack == xnack_trial::on && !(options.root.empty() && options.files.empty())) {
    return wrong("--try-xnack asks this machine, and another was named", {},
                 "leave one of them out");
  }
  std::error_code ignored;
  if (!options.root.empty() && !std::filesystem::is_directory(options.root, ignored)) {
    return error(errc::file_unreadable, "it is no folder", options.root,
                 "--root takes a folder that holds /sys and /proc of a machine");
  }
  if (std::ranges::count(options.files, standard_input) > 1) {
    return wrong("standard input is named twice", "-", "name it once");
  }
  if (options.action == doctor_action::compare && options.files.size() != 2) {
    return wrong("--compare takes two files", {}, "berth doctor --compare A B");
  }
  if (options.action == doctor_action::gather && !options.files.empty()) {
    return wrong("--gather reads a machine, not files", options.files.front(),
                 "leave the file out");
  }
  for (const auto& file : options.files) {
    if (would_replace(file, options.output)) {
      return wrong("the report would replace the file that it is about", options.output,
                   "name another file for --output");
    }
  }
  return std::nullopt;
}

}  // namespace

exit_status run_doctor(const doctor_options& options, std::istream& in, const streams& io) {
  if (const auto why = contradiction_in(options)) {
    return refuse(io, *why);
  }
  switch (options.action) {
    case doctor_action::gather:
      return gather_machine(options, io);
    case doctor_action::compare:
      return compare_machines(options, in, io);
    case doctor_action::examine:
    case doctor_action::show_affinity:
      break;
  }
  return examine(options, in, io);
}

}  // namespace berth::cli
