// SPDX-License-Identifier: Apache-2.0
// Programs that have nothing to do with GPUs: nothing changes for them, and no file is made.
#include <cstdlib>

#include <gtest/gtest.h>

#include "interpose/client.hpp"

namespace berth::test {
namespace {

bool is_installed(const std::string& name) {
  return client({"sh", "-c", "command -v " + name + " >/dev/null"}).run_alone().status == 0;
}

void expect_nothing_happens(std::vector<std::string> words, variables more = {}) {
  client program(std::move(words), std::move(more));
  const auto alone = program.run_alone();
  EXPECT_EQ(program.run_recorded(), alone);
  EXPECT_NE(alone.status, 127);
  EXPECT_TRUE(program.traces().files().empty());
}

TEST(Unconcerned, ShellsRunAsTheyDo) {
  expect_nothing_happens({"bash", "-c", "echo out; echo err >&2; (exit 3) | cat; exit 5"});
  expect_nothing_happens({"sh", "-c", "ls / | wc -l; kill -TERM $$"});
}

TEST(Unconcerned, PythonRunsAsItDoes) {
  if (!is_installed("python3")) {
    GTEST_SKIP() << "python3 is absent";
  }
  expect_nothing_happens(
      {"python3", "-c",
       "import threading, subprocess, os, ctypes, sys\n"
       "t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n"
       "print(subprocess.run(['true']).returncode, flush=True)\n"
       "pid = os.fork()\n"
       "os._exit(4) if pid == 0 else print(os.waitstatus_to_exitcode("
       "os.waitpid(pid, 0)[1]))\n"
       "print(hasattr(ctypes.CDLL(None), 'hipMalloc'))\n"
       "sys.exit(9)"});
}

TEST(Unconcerned, GitRunsAsItDoes) {
  if (!is_installed("git")) {
    GTEST_SKIP() << "git is absent";
  }
  expect_nothing_happens({"git", "--version"});
}

TEST(Unconcerned, JavaRunsAsItDoes) {
  if (!is_installed("java")) {
    GTEST_SKIP() << "java is absent";
  }
  expect_nothing_happens({"java", "-version"});
}

TEST(Unconcerned, AProgramThatIsMissingIsMissing) {
  client program({"/no/such/program"});
  EXPECT_EQ(program.run_recorded().status, 127);
}

TEST(Unconcerned, ACProgramNeedsNoCxxLibrary) {
  expect_nothing_happens({program("plain_c")}, {{"LD_LIBRARY_PATH", program("empty")}});
}

TEST(Unconcerned, AnEmptyEnvironmentIsEnough) {
  client bare({"env", "-i", "LD_PRELOAD=" BERTH_PRELOAD, program("plain_c")});
  EXPECT_EQ(bare.run_alone(), (ending{11, "plain\n", ""}));
  const scratch folder;
  client named({"env", "-i", "LD_PRELOAD=" BERTH_PRELOAD, "BERTH_RECORD=" + folder.file("a"),
                program("plain_c")});
  EXPECT_EQ(named.run_alone(), (ending{11, "plain\n", ""}));
  EXPECT_TRUE(folder.files().empty());
}

}  // namespace
}  // namespace berth::test
