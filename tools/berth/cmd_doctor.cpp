// SPDX-License-Identifier: Apache-2.0
#include "cmd_doctor.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <istream>
#include <optional>
#include <ostream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "machine_input.hpp"
#include "topology/bundle.hpp"
#include "topology/live.hpp"
#include "topology/paste.hpp"
#include "try_xnack.hpp"

namespace berth::cli {
namespace {

error wrong(std::string message, const std::string& where, std::string hint) {
  return error(errc::usage, std::move(message), where, std::move(hint));
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
                               : read_machine_files(options.files, in);
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

// All that the options and the file of the options require.
result<std::vector<diagnose::requirement>> requirements_of(const doctor_options& options) {
  std::vector<diagnose::requirement> all;
  if (!options.required_file.empty()) {
    std::istringstream nothing;
    auto text = read_text_file(options.required_file, nothing);
    if (!text) {
      return text.error();
    }
    auto of_file = diagnose::parse_requirements(text->text, options.required_file);
    if (!of_file) {
      return of_file.error();
    }
    all = *std::move(of_file);
  }
  for (const auto& one : options.required) {
    auto parsed = diagnose::parse_requirement(one);
    if (!parsed) {
      return parsed.error();
    }
    all.push_back(*std::move(parsed));
  }
  return all;
}

// With --check.
bool fails(const report::doctor_report& shown) {
  return shown.found.worst == diagnose::verdict::fault ||
         std::ranges::any_of(shown.required,
                             [](const auto& one) { return one.is != diagnose::fulfilment::met; });
}

exit_status examine(const doctor_options& options, std::istream& in, const streams& io) {
  const auto required = requirements_of(options);
  if (!required) {
    return refuse(io, required.error());
  }
  auto seen = read_input(options, in);
  if (!seen) {
    return refuse(io, seen.error());
  }
  const bool nothing = describes_nothing(*seen);
  if (nothing) {
    show_error(io.err, nothing_described({}));
  }
  if (options.action == doctor_action::show_affinity) {
    return finish(write_shown(diagnose::affinity_of(*seen), options, io), io,
                  nothing ? exit_status::unusable : exit_status::done);
  }
  auto shown = examined(std::move(*seen), options.unread);
  if (options.try_xnack == xnack_trial::on) {
    try_xnack(shown);
  }
  for (const auto& one : *required) {
    shown.required.push_back(diagnose::examine(one, shown.seen, shown.found));
  }
  const bool fault = fails(shown);
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
    auto seen = read_machine_files({file}, in);
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
