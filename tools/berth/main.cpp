// SPDX-License-Identifier: Apache-2.0
// The command line of berth: verbs and their options. What a verb does stands in cmd_<verb>.cpp.
// The only source that includes CLI11, which is slow to compile.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "berth/version.hpp"
#include "cli.hpp"
#include "cmd_analyze.hpp"
#include "cmd_emulate.hpp"
#include "cmd_export.hpp"
#include "cmd_version.hpp"

namespace {

using berth::cli::exit_status;
using berth::cli::output_format;

constexpr auto footer =
    "Exit status: 0 done, 1 a fault was found (with --check), 2 wrong usage,\n"
    "3 the machine or the input does not allow it, 4 data came out wrong.";

// What the parser fills; flags and words become the verbs' own types when a verb runs.
struct verbs {
  berth::cli::analyze_options analyze;
  berth::cli::emulate_options emulate;
  berth::cli::export_options exported;
  std::string format = "text";
  bool check = false;
  bool chrome = false;
  bool list = false;

  [[nodiscard]] output_format chosen_format() const {
    return format == "json" ? output_format::json : output_format::text;
  }
};

void add_format(CLI::App& verb, verbs& parsed) {
  verb.add_option("--format", parsed.format, "How to show the report (default: text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("");
}

CLI::App* add_analyze(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "analyze", "Say why a program's GPU copies are slow, from a profiler's trace");
  verb->add_option("FILE", parsed.analyze.files,
                   "Traces: recordings of berth run, folders of them, PyTorch/Kineto Chrome traces")
      ->required();
  add_format(*verb, parsed);
  verb->add_option("-o,--output", parsed.analyze.output, "Write to FILE instead of standard output")
      ->type_name("FILE");
  verb->add_flag("--check", parsed.check, "Exit with status 1 if a fault was found");
  verb->footer(std::string("Example:\n  berth analyze trace.json.gz\n"
                           "  berth analyze --format json --check rank*.json | jq .traces[].verdict"
                           "\n\n") +
               footer);
  return verb;
}

CLI::App* add_emulate(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "emulate",
      "Run a program of AMD's ROCm on an emulated machine: memory and copies, no kernels");
  verb->add_option("--machine", parsed.emulate.machine,
                   "A model's name or a machine file (default: mi210)")
      ->type_name("MODEL");
  verb->add_option("--gpus", parsed.emulate.gpus, "How many GPUs (default: as the model says)")
      ->type_name("N");
  verb->add_option("--trace", parsed.emulate.trace,
                   "Write each buffer and each packet to FILE, one JSON object a line")
      ->type_name("FILE");
  verb->add_option("--kernels", parsed.emulate.kernels,
                   "A library with host functions of the names of the program's kernels")
      ->type_name("FILE");
  verb->add_option("--fault", parsed.emulate.faults,
                   "Make something fail (docs/emulator.md lists what); may be repeated")
      ->allow_extra_args(false)
      ->type_name("FAULT");
  verb->add_flag("--list", parsed.list, "List the models that can be emulated");
  verb->add_option("PROGRAM", parsed.emulate.program, "The program and its arguments, behind --");
  verb->footer(std::string("Example:\n  berth emulate --machine mi210 --gpus 2 -- rocminfo\n"
                           "  berth emulate --trace copies.jsonl -- ./my_hip_program --size 64\n\n"
                           "Exit status: the program's own; 2 and 3 as below where it did not "
                           "start.\n") +
               footer);
  return verb;
}

CLI::App* add_export(CLI::App& app, verbs& parsed) {
  auto* const verb =
      app.add_subcommand("export", "Write a trace in a form that other programs open");
  verb->add_option("FILE", parsed.exported.file, "A trace, as berth analyze reads it")->required();
  verb->add_flag("--chrome", parsed.chrome,
                 "As Chrome Trace Event JSON: Perfetto (ui.perfetto.dev) opens it")
      ->required();
  verb->add_option("-o,--output", parsed.exported.output,
                   "Write to FILE instead of standard output")
      ->type_name("FILE");
  verb->footer(
      std::string("Example:\n  berth export recording.berth --chrome -o recording.json\n\n") +
      footer);
  return verb;
}

CLI::App* add_version(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "version", "Print the version, the GPU runtimes of this machine, and which one is used");
  add_format(*verb, parsed);
  verb->footer(std::string("Example:\n  berth version\n  BERTH_RUNTIME=sim:mi250x berth version\n"
                           "\n") +
               footer);
  return verb;
}

// What the parser objects to, in the form of all errors, with what to type next.
int wrong_usage(const CLI::App& app, const CLI::ParseError& why) {
  const auto parsed = app.get_subcommands();
  const auto rest = app.remaining();
  if (parsed.empty() && !rest.empty() && !rest.front().starts_with('-')) {
    berth::cli::show_error(std::cerr,
                           berth::error(berth::errc::usage, "'" + rest.front() + "' is no verb", {},
                                        "berth --help lists the verbs"));
  } else {
    const std::string verb = parsed.empty() ? "" : " " + parsed.front()->get_name();
    berth::cli::show_error(std::cerr, berth::error(berth::errc::usage, why.what(), {},
                                                   "berth" + verb + " --help tells how"));
  }
  return static_cast<int>(exit_status::wrong_usage);
}

int run(int argc, char** argv) {
  CLI::App app("GPU memory in its right place, moved at the speed of the link.", "berth");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(berth::version_text));
  app.footer(std::string("berth VERB --help tells more of a verb.\n\n") + footer);
  verbs parsed;
  const auto* const analyze = add_analyze(app, parsed);
  const auto* const emulate = add_emulate(app, parsed);
  const auto* const exported = add_export(app, parsed);
  const auto* const version = add_version(app, parsed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    // Help and version arrive as exceptions too.
    return stop.get_exit_code() == 0 ? app.exit(stop) : wrong_usage(app, stop);
  }
  const auto io = berth::cli::standard_streams();
  if (analyze->parsed()) {
    parsed.analyze.format = parsed.chosen_format();
    parsed.analyze.check =
        parsed.check ? berth::cli::analyze_check::on : berth::cli::analyze_check::off;
    return static_cast<int>(run_analyze(parsed.analyze, io));
  }
  if (emulate->parsed()) {
    parsed.emulate.action =
        parsed.list ? berth::cli::emulate_action::list_models : berth::cli::emulate_action::run;
    return run_emulate(parsed.emulate, io);
  }
  if (exported->parsed()) {
    return static_cast<int>(run_export(parsed.exported, io));
  }
  if (version->parsed()) {
    return static_cast<int>(run_version({.format = parsed.chosen_format()}, io));
  }
  return static_cast<int>(exit_status::done);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const berth::exception& failure) {
    berth::cli::show_error(std::cerr, failure.details());
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
  }
  return static_cast<int>(exit_status::unusable);
}
