// SPDX-License-Identifier: Apache-2.0
// `berth run` and `berth env`, as a user runs them, over a stand-in for the recorder.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"

namespace berth::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// The system's programs are not made for a sanitizer that is preloaded into them.
std::string sanitizer_options() {
  const char* const given = std::getenv("ASAN_OPTIONS");
  return (given != nullptr ? std::string(given) + ":" : "") + "detect_leaks=0:handle_segv=0";
}

// A command line whose temporary files go into a folder of the test's own.
class run_command : public testing::Test {
protected:
  outcome run(std::vector<std::string> arguments, const std::string& standin = "") const {
    return run_berth(arguments, output_to::file,
                     {{"BERTH_PRELOAD_LIBRARY", BERTH_STANDIN_RECORDER},
                      {"STANDIN", standin},
                      {"ASAN_OPTIONS", sanitizer_options()},
                      {"TMPDIR", temporary.file("")}});
  }
  void TearDown() override {
    EXPECT_THAT(temporary.names(), IsEmpty()) << "temporary files were left";
  }

  scratch_folder scratch;

private:
  scratch_folder temporary;
};

std::string script(const scratch_folder& scratch, const std::string& name,
                   const std::string& text) {
  const auto path = scratch.file(name);
  write_file(path, text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST_F(run_command, leaves_the_programs_words_input_and_output_alone) {
  const auto words = run({"run", "--", "printf", "%s|", "a b", "--format", "--", "-x"}, "nothing");
  EXPECT_EQ(words.status, 0) << words.err;
  EXPECT_EQ(words.out, "a b|--format|--|-x|");
  const auto without_dashes = run({"run", "printf", "%s|", "--check", "--", "-o"}, "nothing");
  EXPECT_EQ(without_dashes.out, "--check|--|-o|") << without_dashes.err;
  const auto errors = run({"run", "sh", "-c", "echo to-error >&2"}, "nothing");
  EXPECT_THAT(errors.err, StartsWith("to-error\n"));
  EXPECT_THAT(errors.out, IsEmpty());
}

TEST_F(run_command, passes_on_how_the_program_ended) {
  EXPECT_EQ(run({"run", "sh", "-c", "exit 3"}).status, 3);
  EXPECT_EQ(run({"run", "sh", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
  EXPECT_EQ(run({"run", "sh", "-c", "kill -11 $$"}).status, 128 + SIGSEGV);
  // The check has a say only where the program succeeded.
  EXPECT_EQ(run({"run", "--check", "sh", "-c", "exit 5"}, "nothing").status, 5);
  EXPECT_EQ(run({"run", "--check", "true"}, "nothing").status, 3);
}

TEST_F(run_command, hands_on_signals_that_only_programs_know) {
  for (const char* const signal : {"USR1", "USR2", "ALRM"}) {
    const auto shown = run({"run", "sh", "-c",
                            std::string("trap 'echo got' ") + signal + "; kill -" + signal +
                                " $PPID; for i in 1 2 3 4 5; do sleep 0.1; done; exit 5"},
                           "nothing");
    EXPECT_EQ(shown.status, 5) << signal << shown.err;
    EXPECT_EQ(shown.out, "got\n") << signal;
  }
}

TEST_F(run_command, replaces_a_recording_only_when_the_program_starts) {
  write_file(scratch.file("kept.berth"), "berthtrc of yesterday");
  EXPECT_EQ(run({"run", "--record", scratch.file("kept.berth"), "-o", "/nonexistent/x", "true"},
                "nothing")
                .status,
            3);
  EXPECT_EQ(read_file(scratch.file("kept.berth")), "berthtrc of yesterday");
}

TEST_F(run_command, preloads_the_recorder_before_what_was_there) {
  const auto shown = run_berth({"run", "sh", "-c", "echo $LD_PRELOAD"}, output_to::file,
                               {{"BERTH_PRELOAD_LIBRARY", BERTH_STANDIN_RECORDER},
                                {"STANDIN", "nothing"},
                                {"ASAN_OPTIONS", sanitizer_options()},
                                {"LD_PRELOAD", BERTH_STANDIN_RECORDER}});
  EXPECT_THAT(shown.out,
              HasSubstr(std::string(BERTH_STANDIN_RECORDER) + ":" + BERTH_STANDIN_RECORDER + "\n"));
}

TEST_F(run_command, refuses_what_cannot_be_started) {
  write_file(scratch.file("plain.py"), "print()\n");
  struct refused {
    std::string program;
    std::string message;
  };
  const std::vector<refused> cases{
      {"no-such-program", "no-such-program: there is no such program in PATH"},
      {scratch.file("absent"), "there is no such file"},
      {scratch.file(""), "is a folder, not a program"},
      {scratch.file("plain.py"), "may not be executed\nhint: berth run -- python3 "},
      {script(scratch, "a", "#!/no/such/interpreter\n"),
       "its interpreter /no/such/interpreter is not there"},
      {script(scratch, "b", "#!/usr/bin/env -S A=1 no-such-interpreter -u\n"),
       "its interpreter no-such-interpreter is not there"},
  };
  for (const auto& [program, message] : cases) {
    const auto shown = run({"run", "--", program});
    EXPECT_EQ(shown.status, 2) << program;
    EXPECT_THAT(shown.err,
                AllOf(StartsWith("error: BTH-1001: "), HasSubstr(message), HasSubstr("\nhint: ")))
        << program;
  }
}

TEST_F(run_command, starts_scripts_with_and_without_a_first_line) {
  const auto plain = script(scratch, "plain", "echo plain\n");
  const auto with_line = script(scratch, "line", "#!/usr/bin/env sh\necho line\n");
  EXPECT_EQ(run({"run", plain}, "nothing").out, "plain\n");
  EXPECT_EQ(run({"run", with_line}, "nothing").out, "line\n");
}

TEST_F(run_command, refuses_wrong_usage) {
  const std::vector<std::vector<std::string>> wrong{
      {"run"},
      {"run", "--"},
      {"run", "--no-such-option", "--", "true"},
      {"run", "--record"},
      {"run", "--record", "", "--", "true"},
      {"run", "--ab=0", "--", "true"},
      {"run", "--ab=many", "--", "true"},
      {"run", "--ab", "--record", scratch.file("x"), "--", "true"},
      {"run", "--record", scratch.file("%p/x"), "--", "true"},
      {"run", "--stacks", "some", "--", "true"},
      {"run", "--device-times", "yes", "--", "true"},
      {"run", "--delay", "soon", "--", "true"},
      {"run", "--duration", "-1", "--", "true"},
      {"run", "--signal", "KILL", "--", "true"},
      {"run", "--gpus", "2", "--", "true"},
      {"run", "--emulate", "no-such-model", "--", "true"},
      {"run", "--record", scratch.file("x"), "-o", scratch.file("x"), "--", "true"},
      {"env", "superfluous"},
      {"env", "--docker", "--slurm"},
      {"env", "--no-children"},
      {"env", "--slurm", "--record", "a,b/x"},
  };
  for (const auto& arguments : wrong) {
    const auto shown = run(arguments);
    const auto what = testing::PrintToString(arguments);
    EXPECT_EQ(shown.status, 2) << what;
    EXPECT_THAT(shown.out, IsEmpty()) << what;
    EXPECT_THAT(shown.err, StartsWith("error: BTH-1001: ")) << what;
    EXPECT_THAT(shown.err, HasSubstr("\nhint: ")) << what;
  }
}

TEST_F(run_command, tries_the_places_of_its_files_before_the_program_runs) {
  write_file(scratch.file("notes"), "not a recording\n");
  const auto started = scratch.file("started");
  const std::vector<std::vector<std::string>> places{
      {"--record", scratch.file("absent/x.berth")},
      {"--record", scratch.file("notes/x.berth")},
      {"--record", scratch.file("notes")},
      {"-o", scratch.file("absent/report")},
      {"-o", scratch.file("")},
  };
  for (auto arguments : places) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--", "touch", started});
    const auto shown = run(arguments);
    const auto what = testing::PrintToString(arguments);
    EXPECT_EQ(shown.status, 3) << what;
    EXPECT_THAT(shown.err, StartsWith("error: BTH-1102: ")) << what;
    EXPECT_FALSE(std::filesystem::exists(started)) << what;
  }
  EXPECT_EQ(read_file(scratch.file("notes")), "not a recording\n");
}

TEST_F(run_command, says_why_a_recorder_is_not_preloaded) {
  const auto mute = run({"run", "true"}, "mute");
  EXPECT_EQ(mute.status, 3);
  EXPECT_THAT(mute.err, HasSubstr("and it did not answer"));
  const auto crash = run({"run", "true"}, "crash");
  EXPECT_EQ(crash.status, 3);
  EXPECT_THAT(crash.err, HasSubstr("ended by signal 9"));
  const auto absent = run_berth({"run", "true"}, output_to::file,
                                {{"BERTH_PRELOAD_LIBRARY", scratch.file("absent.so")}});
  EXPECT_EQ(absent.status, 3) << "another recorder beside the command must not stand in";
  EXPECT_THAT(absent.err, HasSubstr("BERTH_PRELOAD_LIBRARY names no file"));
  write_file(scratch.file("no_library.so"), "no library");
  const auto bad = run_berth({"run", "true"}, output_to::file,
                             {{"BERTH_PRELOAD_LIBRARY", scratch.file("no_library.so")}});
  EXPECT_EQ(bad.status, 3);
  EXPECT_THAT(bad.err, AllOf(StartsWith("error: BTH-1208: "), HasSubstr("LD_PRELOAD")));
}

TEST_F(run_command, explains_a_static_program_and_runs_it_for_its_children) {
  const auto alone = run({"run", "--no-children", "--", BERTH_STATIC_PROGRAM});
  EXPECT_EQ(alone.status, 3);
  EXPECT_THAT(alone.err, AllOf(StartsWith("error: BTH-1208: "), HasSubstr("linked statically"),
                               HasSubstr("hint: link it dynamically")));
  const auto with_children = run({"run", "--", BERTH_STATIC_PROGRAM});
  EXPECT_EQ(with_children.status, 7);
  EXPECT_EQ(with_children.out, "static\n");
  EXPECT_THAT(with_children.err, AllOf(StartsWith("warning: "), HasSubstr("linked statically"),
                                       HasSubstr("note: nothing was recorded: ")));
}

TEST_F(run_command, says_why_nothing_was_recorded) {
  struct reason {
    std::vector<std::string> program;
    std::string text;
  };
  const auto docker = script(scratch, "docker", "#!/bin/sh\n");
  const std::vector<reason> cases{
      {{"true"}, "neither true nor a program that it started used a GPU runtime"},
      {{"sh", "-c", "exit 4"}, "sh ended with status 4 before it loaded a GPU runtime"},
      {{"sh", "-c", "kill -9 $$"}, "sh was ended by signal 9"},
      {{docker}, "docker starts programs where its environment does not reach"},
  };
  for (const auto& [program, text] : cases) {
    std::vector<std::string> arguments{"run", "--"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    EXPECT_THAT(run(arguments, "nothing").err, HasSubstr("note: nothing was recorded: " + text));
  }
}

TEST_F(run_command, keeps_recordings_that_were_asked_for_and_names_them) {
  const auto file = scratch.file("kept.berth");
  const auto first = run({"run", "--record", file, "--", "true"});
  EXPECT_EQ(first.status, 0);
  EXPECT_THAT(first.err, HasSubstr("Once more: berth analyze " + file + "\n"));
  // Another run replaces it, and does not take it for its own.
  const auto second = run({"run", "--record", file, "--", "true"}, "nothing");
  EXPECT_THAT(second.err, HasSubstr("nothing was recorded"));
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST_F(run_command, names_the_recordings_in_a_folder_after_the_program) {
  const auto shown = run({"run", "--record", scratch.file(""), "--", "true"});
  EXPECT_THAT(shown.err, HasSubstr("Recorded 1 process."));
  EXPECT_THAT(scratch.names(), ElementsAre(MatchesRegex("true-[0-9]+\\.berth")));
}

TEST_F(run_command, records_children_unless_they_are_left_out) {
  const auto all = run({"run", "--record", scratch.file("all-%p.berth"), "--", "sh", "-c",
                        "/bin/true; sh -c 'exit 0'; exit 0"});
  EXPECT_THAT(all.err, HasSubstr("Recorded 3 processes."));
  const auto one = run({"run", "--no-children", "--record", scratch.file("one-%p.berth"), "--",
                        "sh", "-c", "/bin/true; sh -c 'exit 0'; exit 0"});
  EXPECT_THAT(one.err, HasSubstr("Recorded 1 process."));
}

TEST_F(run_command, reports_on_what_was_recorded) {
  const auto shown = run({"run", "--", "sh", "-c", "exit 0"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, IsEmpty());
  EXPECT_THAT(shown.err,
              AllOf(HasSubstr("berth recording"), HasSubstr("VERDICT"), HasSubstr("8 MiB")));
  const auto report = scratch.file("report.json");
  const auto to_file = run({"run", "--format", "json", "-o", report, "--", "true"});
  EXPECT_THAT(to_file.err, IsEmpty());
  EXPECT_EQ(nlohmann::json::parse(read_file(report)).at("traces").size(), 1U);
}

TEST_F(run_command, says_that_a_recording_was_cut) {
  const auto shown = run({"run", "--", "true"}, "cut");
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.err, HasSubstr("BTH-1108"));
  EXPECT_EQ(run({"run", "--check", "--", "true"}, "cut").status, 3);
}

TEST_F(run_command, shows_what_is_wrong_with_a_recording_and_keeps_the_programs_status) {
  const auto shown = run({"run", "--", "sh", "-c", "exit 6"}, "garbage");
  EXPECT_EQ(shown.status, 6);
  EXPECT_THAT(shown.err, HasSubstr("error: BTH-110"));
  EXPECT_EQ(run({"run", "--check", "--", "true"}, "garbage").status, 3);
}

TEST(Run, HandsOnNothingOfAnOuterRecording) {
  const auto shown =
      run_berth({"run", "--", "sh", "-c", "echo \"[$BERTH_RECORD_ONLY]\""}, output_to::file,
                {{"BERTH_PRELOAD_LIBRARY", BERTH_STANDIN_RECORDER}, {"BERTH_RECORD_ONLY", "1"}});
  EXPECT_THAT(shown.out, HasSubstr("[]")) << shown.err;
}

// Starts `berth run` without waiting for it.
pid_t start_berth(const std::vector<std::string>& arguments, const std::string& folder,
                  const char* standin) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::setenv("BERTH_PRELOAD_LIBRARY", BERTH_STANDIN_RECORDER, 1);
    ::setenv("STANDIN", standin, 1);
    ::setenv("ASAN_OPTIONS", sanitizer_options().c_str(), 1);
    ::setenv("TMPDIR", folder.c_str(), 1);
    std::vector<std::string> owned{BERTH_COMMAND};
    owned.insert(owned.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (auto& one : owned) {
      pointers.push_back(one.data());
    }
    pointers.push_back(nullptr);
    const int err = ::open((folder + "/err").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(err, STDERR_FILENO);
    ::execv(BERTH_COMMAND, pointers.data());
    ::_exit(127);
  }
  return child;
}

bool appears(const std::string& file) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (std::filesystem::exists(file)) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The program decides what a signal means; the report comes all the same.
TEST(run_signals, reach_the_program_and_the_report_still_comes) {
  struct sent {
    int number;
    bool to_group;  // as a terminal does
    std::string name;
    std::vector<std::string> options;
  };
  const std::vector<sent> cases{{SIGINT, true, "INT", {}},
                                {SIGTERM, false, "TERM", {}},
                                {SIGUSR2, false, "USR2", {"--signal", "USR2"}}};
  for (const auto& [number, to_group, name, options] : cases) {
    const scratch_folder scratch;
    const auto ready = scratch.file("ready");
    std::vector<std::string> arguments{"run"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "sh", "-c",
                                       "trap 'exit 21' " + name + "; touch " + ready +
                                           "; while true; do sleep 0.05; done"});
    const pid_t berth = start_berth(arguments, scratch.file(""), "nothing");
    ASSERT_TRUE(appears(ready)) << name;
    ASSERT_EQ(::kill(to_group ? -berth : berth, number), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(berth, &status, 0), berth);
    EXPECT_TRUE(WIFEXITED(status)) << name;
    EXPECT_EQ(WEXITSTATUS(status), 21) << name;
    EXPECT_THAT(read_file(scratch.file("err")), HasSubstr("note: nothing was recorded: "));
    EXPECT_EQ(scratch.names().size(), 2U) << "a temporary folder was left";
  }
}

// A report that never ends being written: into a pipe that nobody reads.
TEST(run_signals, end_a_long_report_and_leave_no_files) {
  const scratch_folder scratch;
  const auto ended = scratch.file("ended");
  const auto pipe = scratch.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t berth = start_berth({"run", "--format", "json", "-o", pipe, "--", "touch", ended},
                                  scratch.file(""), "garbage");
  ASSERT_TRUE(appears(ended));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_EQ(::kill(berth, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(berth, &status, 0), berth);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_THAT(scratch.names(), testing::UnorderedElementsAre("ended", "err", "pipe"));
}

// --- berth env ----------------------------------------------------------------------------------

class env_command : public run_command {};

// What a shell makes of the printed lines.
std::string in_a_shell(const std::string& lines, const std::string& before,
                       const std::string& expression, const scratch_folder& scratch) {
  const auto file = scratch.file("lines.sh");
  write_file(file, before + "\n" + lines + "printf '%s' \"" + expression + "\" >" +
                       scratch.file("value") + "\n");
  EXPECT_EQ(std::system(("sh " + file).c_str()), 0);
  return read_file(scratch.file("value"));
}

TEST_F(env_command, prints_lines_for_a_shell) {
  const auto shown = run({"env", "--record", scratch.file("it's here/run-%p.berth"), "--stacks",
                          "all", "--device-times", "off", "--content", "--delay", "2.5",
                          "--duration", "250ms", "--signal", "sigusr2"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  const std::vector<std::pair<std::string, std::string>> expected{
      {"BERTH_RECORD", scratch.file("it's here/run-%p.berth")},
      {"BERTH_RECORD_STACKS", "all"},
      {"BERTH_RECORD_DEVICE_TIMES", "off"},
      {"BERTH_RECORD_CONTENT", "1"},
      {"BERTH_RECORD_DELAY", "2.5"},
      {"BERTH_RECORD_DURATION", "0.25"},
      {"BERTH_RECORD_SIGNAL", "USR2"}};
  // LD_PRELOAD would reach the programs of the test's own shell.
  std::string lines = shown.out;
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(in_a_shell(lines.substr(lines.find('\n') + 1), "", "$" + name, scratch), value);
  }
  EXPECT_THAT(lines, StartsWith("export LD_PRELOAD=" + std::string(BERTH_STANDIN_RECORDER) +
                                "${LD_PRELOAD:+:$LD_PRELOAD}\n"));
}

TEST_F(env_command, prints_only_what_differs_from_the_defaults) {
  const auto shown = run({"env", "--format", "json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  const auto read = nlohmann::json::parse(shown.out);
  EXPECT_EQ(read.size(), 2U);
  EXPECT_EQ(read.at("LD_PRELOAD"), BERTH_STANDIN_RECORDER);
  EXPECT_EQ(read.at("BERTH_RECORD"),
            (std::filesystem::current_path() / "berth-%h-%p.berth").string());
}

TEST_F(env_command, prints_options_for_launchers) {
  const std::string library = BERTH_STANDIN_RECORDER;
  const auto folder = std::filesystem::path(scratch.file("x")).parent_path().string();
  const auto file = folder + "/%r.berth";
  EXPECT_EQ(run({"env", "--docker", "--record", file}).out,
            "-e LD_PRELOAD=" + library + " -e BERTH_RECORD=" + file + " -v " + library + ":" +
                library + ":ro -v " + folder + ":" + folder + "\n");
  EXPECT_EQ(run({"env", "--slurm", "--record", file}).out,
            "--export=ALL,LD_PRELOAD=" + library + ",BERTH_RECORD=" + file + "\n");
  EXPECT_EQ(run({"env", "--mpirun", "--record", file}).out,
            "-x LD_PRELOAD=" + library + " -x BERTH_RECORD=" + file + "\n");
}

TEST_F(env_command, says_where_it_looks_for_the_recorder) {
  write_file(scratch.file("has blank.so"), "");
  const auto shown = run_berth({"env"}, output_to::file,
                               {{"BERTH_PRELOAD_LIBRARY", scratch.file("has blank.so")}});
  EXPECT_EQ(shown.status, 2);
  EXPECT_THAT(shown.err, HasSubstr("BERTH_PRELOAD_LIBRARY"));
}

}  // namespace
}  // namespace berth::test
