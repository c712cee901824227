// SPDX-License-Identifier: Apache-2.0
// The command line of berth: verbs and their options. What a verb does stands in cmd_<verb>.cpp.
// The only source that includes CLI11, which is slow to compile.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "berth/version.hpp"
#include "cli.hpp"
#include "cmd_analyze.hpp"
#include "cmd_bandwidth.hpp"
#include "cmd_doctor.hpp"
#include "cmd_emulate.hpp"
#include "cmd_env.hpp"
#include "cmd_export.hpp"
#include "cmd_run.hpp"
#include "cmd_run_both.hpp"
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
  berth::cli::doctor_options doctor;
  berth::cli::bandwidth_options bandwidth;
  berth::cli::emulate_options emulate;
  berth::cli::export_options exported;
  berth::cli::env_options env;
  berth::cli::run_options run;
  std::string emulated_model;  // of run
  std::optional<std::uint32_t> emulated_gpus;
  std::string format = "text";
  bool content = false;
  bool no_children = false;
  std::string fix;  // "copies", "pinned"; empty: nothing
  bool quick = false;
  bool full = false;
  bool csv = false;
  bool docker = false;
  bool slurm = false;
  bool mpirun = false;
  bool check = false;
  bool chrome = false;
  bool list = false;
  bool list_unread = false;
  bool affinity = false;
  bool compare = false;
  bool try_xnack = false;

  [[nodiscard]] output_format chosen_format() const {
    return format == "json" ? output_format::json : output_format::text;
  }
};

CLI::Option* add_format(CLI::App& verb, verbs& parsed) {
  return verb.add_option("--format", parsed.format, "How to show the report (default: text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("");
}

// An empty name is a variable of a script that was not set.
std::string not_empty(const std::string& name) {
  return name.empty() ? "the name is empty" : "";
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
  verb->add_option(
          "--profile", parsed.analyze.profile,
          "What copies cost there: a machine file, as berth bandwidth --save-profile makes")
      ->check(not_empty)
      ->type_name("FILE");
  verb->add_option(
          "--machine", parsed.analyze.machine,
          "The machine that the traces were made on: a bundle of berth doctor --gather, or "
          "what tools printed there; may be repeated")
      ->allow_extra_args(false)
      ->check(not_empty)
      ->type_name("FILE");
  verb->footer(std::string("Example:\n  berth analyze trace.json.gz\n"
                           "  berth analyze --machine machine.tar.zst trace.json.gz\n"
                           "  berth analyze --format json --check rank*.json | jq .traces[].verdict"
                           "\n\n") +
               footer);
  return verb;
}

CLI::App* add_doctor(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "doctor", "Say what of a machine is a fault, a limit or normal; live or from pasted text");
  verb->add_option("FILE", parsed.doctor.files,
                   "What tools printed (rocminfo, rocm-smi, nvidia-smi topo -m, lspci -vv and "
                   "others), - for standard input, or a bundle of --gather; none: this machine");
  auto* const root =
      verb->add_option("--root", parsed.doctor.root, "Read the files of a machine below DIR");
  root->check(not_empty)->type_name("DIR");
  auto* const affinity = verb->add_flag(
      "--affinity", parsed.affinity,
      "Print each GPU's CPUs and NUMA node, with lines for numactl, taskset and Slurm");
  auto* const gather = verb->add_option("--gather", parsed.doctor.gather_into,
                                        "Write all that is read of this machine to FILE (tar.zst)");
  gather->check(not_empty)->type_name("FILE");
  auto* const compare =
      verb->add_flag("--compare", parsed.compare, "Name what differs between two files");
  add_format(*verb, parsed);
  verb->add_option("-o,--output", parsed.doctor.output, "Write to FILE instead of standard output")
      ->type_name("FILE");
  auto* const check =
      verb->add_flag("--check", parsed.check, "Exit with status 1 if a fault was found");
  verb->add_option("--require", parsed.doctor.required,
                   "With --check: also fail unless NAME=VALUE holds (gpus=8, link=gen4x16, "
                   "memory=64GiB, or a check and its worst verdict: iommu=normal); may be repeated")
      ->allow_extra_args(false)
      ->needs(check)
      ->type_name("NAME=VALUE");
  verb->add_option("--require-file", parsed.doctor.required_file, "The same from FILE, one a line")
      ->needs(check)
      ->check(not_empty)
      ->type_name("FILE");
  auto* const trial =
      verb->add_flag("--try-xnack", parsed.try_xnack,
                     "Also start rocminfo with HSA_XNACK=1, and say whether XNACK is on then");
  trial->excludes(affinity)->excludes(gather)->excludes(compare);
  verb->add_flag("--list-unread", parsed.list_unread, "List the lines that were not understood");
  affinity->excludes(gather)->excludes(compare)->excludes(check);
  gather->excludes(compare)->excludes(check);
  compare->excludes(root)->excludes(check);
  verb->footer(std::string("Example:\n  berth doctor\n"
                           "  rocminfo | berth doctor -\n"
                           "  berth doctor --format json --check | jq .verdict\n"
                           "  berth doctor --check --require gpus=8 --require link=gen4x16\n"
                           "  berth doctor --gather machine.tar.zst\n\n") +
               footer);
  return verb;
}

CLI::App* add_bandwidth(CLI::App& app, verbs& parsed) {
  auto& bandwidth = parsed.bandwidth;
  auto* const verb = app.add_subcommand(
      "bandwidth",
      "Measure every path between host and GPUs, and say whether it is as it should be");
  verb->add_option("--runtime", bandwidth.runtime,
                   "cuda, hip, sim:MODEL; default: BERTH_RUNTIME, else what the machine has")
      ->type_name("NAME");
  auto* const quick = verb->add_flag("--quick", parsed.quick, "Few sizes, few samples");
  verb->add_flag("--full", parsed.full, "Sizes from 4 B to 1 GiB")->excludes(quick);
  verb->add_option("--kinds", bandwidth.kinds,
                   "Only these: pinned, both, kernel, write-combined, registered, pageable, fresh, "
                   "device")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  verb->add_option("--sizes", bandwidth.sizes, "Only these: 64KiB,256MiB")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("SIZE,...");
  verb->add_option("--device", bandwidth.device, "Only this GPU")->type_name("N");
  verb->add_option("--samples", bandwidth.samples, "Samples of each figure (default: 9)")
      ->type_name("N");
  auto* const format = add_format(*verb, parsed);
  verb->add_flag("--csv", parsed.csv, "One row a figure")->excludes(format);
  verb->add_option("-o,--output", bandwidth.output, "Write to FILE instead of standard output")
      ->type_name("FILE");
  verb->add_option(
          "--save-profile", bandwidth.profile,
          "Write what was measured of one GPU as a machine file, for berth analyze --profile")
      ->check(not_empty)
      ->type_name("FILE");
  verb->add_option("--compare", bandwidth.earlier,
                   "Name what is slower or faster than in an earlier run (FILE of --format json)")
      ->check(not_empty)
      ->type_name("FILE");
  verb->add_flag("--check", parsed.check, "Exit with status 1 if a figure is low, or slower");
  verb->footer(std::string("Example:\n  berth bandwidth\n"
                           "  berth bandwidth --kinds pinned,pageable --sizes 1MiB,64MiB\n"
                           "  berth bandwidth --runtime sim:mi250x --quick\n"
                           "  berth bandwidth --check --format json -o bandwidth.json\n\n") +
               footer);
  return verb;
}

void complete_bandwidth(verbs& parsed) {
  using berth::bandwidth::thoroughness;
  using berth::cli::bandwidth_check;
  using berth::cli::bandwidth_format;
  auto& bandwidth = parsed.bandwidth;
  bandwidth.how = parsed.quick  ? thoroughness::quick
                  : parsed.full ? thoroughness::full
                                : thoroughness::usual;
  bandwidth.format = parsed.csv                                      ? bandwidth_format::csv
                     : parsed.chosen_format() == output_format::json ? bandwidth_format::json
                                                                     : bandwidth_format::text;
  bandwidth.check = parsed.check ? bandwidth_check::on : bandwidth_check::off;
}

// Flags become the verb's own types.
void complete_doctor(verbs& parsed) {
  using berth::cli::doctor_action;
  auto& doctor = parsed.doctor;
  doctor.action = !doctor.gather_into.empty() ? doctor_action::gather
                  : parsed.compare            ? doctor_action::compare
                  : parsed.affinity           ? doctor_action::show_affinity
                                              : doctor_action::examine;
  doctor.format = parsed.chosen_format();
  doctor.check = parsed.check ? berth::cli::doctor_check::on : berth::cli::doctor_check::off;
  doctor.try_xnack = parsed.try_xnack ? berth::cli::xnack_trial::on : berth::cli::xnack_trial::off;
  doctor.unread = parsed.list_unread ? berth::report::unread_lines::listed
                                     : berth::report::unread_lines::counted;
}

CLI::App* add_emulate(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "emulate",
      "Run a program of AMD's ROCm on an emulated machine: memory and copies, no kernels");
  verb->add_option("--machine", parsed.emulate.machine.model,
                   "A model's name or a machine file (default: mi210)")
      ->type_name("MODEL");
  verb->add_option("--gpus", parsed.emulate.machine.gpus,
                   "How many GPUs (default: as the model says)")
      ->type_name("N");
  verb->add_option("--trace", parsed.emulate.machine.trace,
                   "Write each buffer and each packet to FILE, one JSON object a line")
      ->type_name("FILE");
  verb->add_option("--kernels", parsed.emulate.machine.kernels,
                   "A library with host functions of the names of the program's kernels")
      ->type_name("FILE");
  verb->add_option("--fault", parsed.emulate.machine.faults,
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

// What `run` and `env` share.
void add_recording_options(CLI::App& verb, berth::cli::recording_words& words, verbs& parsed) {
  verb.add_option(
          "--device-times", words.device_times,
          "Times of the devices themselves, through CUPTI: auto (off with --fix and --ab), off, on "
          "(default: auto)")
      ->check(CLI::IsMember({"auto", "off", "on"}))
      ->type_name("");
  verb.add_option("--stacks", words.stacks,
                  "Call sites: auto (large copies, allocations, samples), off, all (default: auto)")
      ->check(CLI::IsMember({"auto", "off", "all"}))
      ->type_name("");
  verb.add_flag("--content", parsed.content,
                "Sample what is copied to the device, to find copies of unchanged data");
  verb.add_flag("--fix{copies}", parsed.fix,
                "Make copies of pageable memory by berth's copy engine, where that is faster; "
                "--fix=pinned: keep freed page-locked memory for the next allocation, too")
      ->check(CLI::IsMember({"copies", "pinned"}));
  verb.add_option("--delay", words.delay, "Begin so many seconds after the start")
      ->type_name("SECONDS");
  verb.add_option("--duration", words.duration, "Record so many seconds")->type_name("SECONDS");
  verb.add_option("--signal", words.signal, "A signal that switches the recording on and off: USR2")
      ->type_name("NAME");
}

CLI::App* add_run(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "run", "Run a program, record its GPU memory life, and say why its copies are slow");
  verb->add_option("--record", parsed.run.record,
                   "Keep the recording: FILE, with %p process, %h host, %r rank; or a folder")
      ->check(not_empty)
      ->type_name("FILE");
  verb->add_flag("--ab{5}", parsed.run.pairs,
                 "Run the program with and without --fix, in turns, and compare: 5 times each, or "
                 "--ab=N")
      ->check(CLI::Range(1, 1000))
      ->type_name("")
      ->excludes("--record");
  verb->add_option("--emulate", parsed.emulated_model,
                   "Run on an emulated AMD machine (berth emulate --list)")
      ->check(not_empty)
      ->type_name("MODEL");
  verb->add_option("--gpus", parsed.emulated_gpus, "With --emulate: how many GPUs")
      ->type_name("N")
      ->needs("--emulate");
  verb->add_flag("--no-children", parsed.no_children,
                 "Leave out the processes that the program starts");
  add_recording_options(*verb, parsed.run.recording, parsed);
  add_format(*verb, parsed);
  verb->add_option("-o,--output", parsed.run.output,
                   "Write the report to FILE instead of standard error")
      ->check(not_empty)
      ->type_name("FILE");
  verb->add_flag("--check", parsed.check,
                 "Exit with status 1 if the program succeeded and a fault was found");
  verb->prefix_command();
  verb->footer(std::string(
      "Example:\n  berth run -- ./program --size 64\n"
      "  berth run --record run.berth -- python3 train.py\n"
      "  berth run --fix -- python3 train.py\n"
      "  berth run --ab -- ./program\n"
      "  berth run --emulate mi210 -- ./my_hip_program\n\n"
      "Exit status: the program's own; 128 and the signal's number if a signal ended it.\n"
      "Where it did not start: 2 wrong usage, 3 the machine or the input does not allow "
      "it.\nWith --check, if the program succeeded: 1 a fault was found, 3 no report could "
      "be made."));
  return verb;
}

CLI::App* add_env(CLI::App& app, verbs& parsed) {
  auto* const verb = app.add_subcommand(
      "env",
      "Print the variables with which a program records itself, for containers and launchers");
  verb->add_option("--record", parsed.env.record,
                   "The recordings: FILE, with %p process, %h host, %r rank; or a folder "
                   "(default: berth-%h-%p.berth in this one)")
      ->check(not_empty)
      ->type_name("FILE");
  add_recording_options(*verb, parsed.env.recording, parsed);
  add_format(*verb, parsed);
  auto* const docker = verb->add_flag("--docker", parsed.docker, "As options of docker run");
  auto* const slurm = verb->add_flag("--slurm", parsed.slurm, "As an option of srun and sbatch");
  auto* const mpirun = verb->add_flag("--mpirun", parsed.mpirun, "As options of Open MPI's mpirun");
  docker->excludes(slurm)->excludes(mpirun);
  slurm->excludes(mpirun);
  verb->footer(std::string("Example:\n  eval \"$(berth env --record run-%p.berth)\"; ./launcher\n"
                           "  docker run $(berth env --docker) IMAGE ./program\n"
                           "  srun $(berth env --slurm --record run-%r.berth) ./program\n\n") +
               footer);
  return verb;
}

berth::cli::env_form form_of(const verbs& parsed) {
  using berth::cli::env_form;
  return parsed.docker                                   ? env_form::docker
         : parsed.slurm                                  ? env_form::slurm
         : parsed.mpirun                                 ? env_form::mpirun
         : parsed.chosen_format() == output_format::json ? env_form::json
                                                         : env_form::shell;
}

// Flags and words become the verb's own types.
void complete_recording(berth::cli::recording_words& words, const verbs& parsed) {
  using namespace berth::interpose;
  words.content = parsed.content ? contents::hashed : contents::unread;
  words.copies = parsed.fix.empty() ? copies::left_alone : copies::fixed;
  words.pinned = parsed.fix == "pinned" ? freed_pinned::kept : freed_pinned::given_back;
  words.children = parsed.no_children ? children::left_out : children::recorded;
}

// The words of `run` behind the first --, which are the program's: the parser would take some.
std::vector<std::string> take_program(std::vector<std::string>& words) {
  const auto begin = std::find(words.begin(), words.end(), "--");
  if (words.empty() || words.front() != "run" || begin == words.end()) {
    return {};
  }
  std::vector<std::string> program(begin, words.end());
  words.erase(begin, words.end());
  return program;
}

// Without a -- the program begins where the parser knows no further. Its options are its own.
void complete_run(verbs& parsed, std::vector<std::string> rest, std::vector<std::string> program) {
  if (!rest.empty() && rest.front().starts_with('-')) {
    throw CLI::ExtrasError(std::vector<std::string>{rest.front()});
  }
  if (rest.empty() && !program.empty()) {
    program.erase(program.begin());  // the --
  }
  parsed.run.program = std::move(rest);
  parsed.run.program.insert(parsed.run.program.end(), program.begin(), program.end());
  complete_recording(parsed.run.recording, parsed);
  parsed.run.format = parsed.chosen_format();
  parsed.run.check = parsed.check ? berth::cli::analyze_check::on : berth::cli::analyze_check::off;
  if (!parsed.emulated_model.empty()) {
    parsed.run.emulate.emplace();
    parsed.run.emulate->model = parsed.emulated_model;
    parsed.run.emulate->gpus = parsed.emulated_gpus;
  }
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
  const auto* const doctor = add_doctor(app, parsed);
  const auto* const bandwidth = add_bandwidth(app, parsed);
  const auto* const emulate = add_emulate(app, parsed);
  const auto* const exported = add_export(app, parsed);
  const auto* const run = add_run(app, parsed);
  const auto* const env = add_env(app, parsed);
  const auto* const version = add_version(app, parsed);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    auto program = take_program(words);
    std::reverse(words.begin(), words.end());  // as the parser takes them
    app.parse(std::move(words));
    if (run->parsed()) {
      complete_run(parsed, run->remaining(), std::move(program));
    }
  } catch (const CLI::ParseError& stop) {
    // Help and version arrive as exceptions too.
    return stop.get_exit_code() == 0 ? app.exit(stop) : wrong_usage(app, stop);
  }
  const auto io = berth::cli::standard_streams();
  if (analyze->parsed()) {
    parsed.analyze.format = parsed.chosen_format();
    parsed.analyze.check =
        parsed.check ? berth::cli::analyze_check::on : berth::cli::analyze_check::off;
    return static_cast<int>(run_analyze(parsed.analyze, std::cin, io));
  }
  if (doctor->parsed()) {
    complete_doctor(parsed);
    return static_cast<int>(run_doctor(parsed.doctor, std::cin, io));
  }
  if (bandwidth->parsed()) {
    complete_bandwidth(parsed);
    return static_cast<int>(run_bandwidth(parsed.bandwidth, io));
  }
  if (emulate->parsed()) {
    parsed.emulate.action =
        parsed.list ? berth::cli::emulate_action::list_models : berth::cli::emulate_action::run;
    return run_emulate(parsed.emulate, io);
  }
  if (exported->parsed()) {
    return static_cast<int>(run_export(parsed.exported, io));
  }
  if (run->parsed()) {
    return parsed.run.pairs > 0 ? run_both_ways(parsed.run, io) : run_run(parsed.run, io);
  }
  if (env->parsed()) {
    complete_recording(parsed.env.recording, parsed);
    parsed.env.form = form_of(parsed);
    return static_cast<int>(run_env(parsed.env, io));
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
