// SPDX-License-Identifier: Apache-2.0
// The command around a program: faults that were ordered, bad input, and that nothing is left.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/launch.hpp"
#include "emulator/rocm_libraries.hpp"
#include "emulator/run_command.hpp"
#include "emulator/trace_file.hpp"

namespace berth::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The overlay folders in a folder of temporary files of this test's own.
class Command : public testing::Test {
protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("berth-command-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "an overlay folder was left";
    unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }

private:
  std::filesystem::path folder_;
};

TEST_F(Command, PassesOnTheExitStatusOfAProgramWithoutADevice) {
  const auto end = emulate({}, {program_path("no_device")});
  EXPECT_EQ(end.status, 7);
  EXPECT_EQ(end.out, "nothing to do with a GPU\n");
  EXPECT_THAT(end.err, HasSubstr("emulated device: AMD Instinct MI210 (model mi210)"));
}

TEST_F(Command, SurvivesTheCrashOfAProgram) {
  BERTH_REQUIRE_ROCM();
  // AddressSanitizer would answer the signal itself.
  const auto end =
      emulate({}, {"env", sanitizer_options("handle_segv=0"), program_path("hip_crash")});
  EXPECT_EQ(end.status, 128 + SIGSEGV) << end.out << end.err;
}

TEST_F(Command, PassesASignalOnAndCleansUp) {
  const temporary_file started("started");
  const pid_t command = fork();
  if (command == 0) {
    execl(BERTH_COMMAND, BERTH_COMMAND, "emulate", "--", "sh", "-c", ": > \"$0\"; exec sleep 60",
          started.string().c_str(), nullptr);
    _exit(127);
  }
  for (int tries = 0; tries < 2000 && !std::filesystem::exists(started.string()); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(command, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(command, &status, 0), command);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

// At whatever moment it is stopped: SetUp and TearDown see to the folder.
TEST_F(Command, LeavesNothingHoweverEarlyItIsStopped) {
  for (int delay_ms = 0; delay_ms < 60; delay_ms += 5) {
    const pid_t command = fork();
    if (command == 0) {
      execl(BERTH_COMMAND, BERTH_COMMAND, "emulate", "--", "sleep", "60", nullptr);
      _exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    kill(command, SIGTERM);
    int status = 0;
    ASSERT_EQ(waitpid(command, &status, 0), command);
    EXPECT_TRUE((WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
                (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM))
        << status;
  }
}

TEST_F(Command, TriesAReleaseThatWasNotTriedAndSaysSo) {
  BERTH_REQUIRE_ROCM();
  const temporary_file folder("other-rocm");
  std::filesystem::create_directory(folder.string());
  const auto in = [&](const char* name) { return folder.string() + "/" + name; };
  for (const auto& known : emulator::library_folders()) {
    const auto runtime = known + "/libhsa-runtime64.so.1";
    if (std::filesystem::exists(runtime)) {
      std::filesystem::copy_file(runtime, in("libhsa-runtime64.so.1.99.0"));
      break;
    }
  }
  std::filesystem::create_symlink("libhsa-runtime64.so.1.99.0", in("libhsa-runtime64.so.1"));
  const std::vector<std::string> folders = {folder.string()};
  EXPECT_EQ(emulator::untried_hsa_runtime(folders), "libhsa-runtime64.so.1.99.0");
  const auto end =
      emulate({}, {"env", "LD_LIBRARY_PATH=" + folder.string(), program_path("hip_pinned_copy")});
  EXPECT_EQ(end.status, 0) << end.err;
  const std::string warning = "this ROCm (libhsa-runtime64.so.1.99.0) has not been tried";
  EXPECT_THAT(end.err, HasSubstr(warning));
  EXPECT_THAT(emulate({}, {program_path("hip_pinned_copy")}).err, Not(HasSubstr(warning)));
  std::filesystem::remove_all(folder.string());
}

TEST_F(Command, NamesAnUnknownCallOnceAndRefusesIt) {
  const auto end = emulate({}, {program_path("unknown_call")});
  EXPECT_EQ(end.status, 0) << end.err;
  const auto first = end.err.find("unknown call of the driver, number 126");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(end.err.find("unknown call", first + 1), std::string::npos);
}

TEST_F(Command, RefusesAnUnknownModelWithCloseNames) {
  const auto end = emulate({"--machine", "mi211"}, {"true"});
  EXPECT_EQ(end.status, 2);
  EXPECT_THAT(end.err, HasSubstr("mi210"));
}

TEST_F(Command, RefusesWhatItHasNoDataOf) {
  for (const auto* const model : {"h200", "mi300x", "pcie4"}) {
    const auto end = emulate({"--machine", model}, {"true"});
    EXPECT_EQ(end.status, 2) << model;
    EXPECT_THAT(end.err, HasSubstr("cannot be emulated")) << model;
  }
  EXPECT_EQ(emulate({"--machine", "mi100-node", "--gpus", "9"}, {"true"}).status, 2);
  EXPECT_EQ(emulate({"--gpus", "0"}, {"true"}).status, 2);
}

TEST_F(Command, RefusesAProgramThatIsNotThere) {
  const auto end = emulate({}, {"/does/not/exist"});
  EXPECT_EQ(end.status, 2);
  EXPECT_THAT(end.err, HasSubstr("/does/not/exist"));
  EXPECT_EQ(emulate({}, {}).status, 2);
}

TEST_F(Command, RefusesATraceThatCannotBeWritten) {
  EXPECT_EQ(emulate({"--trace", "/does/not/exist/trace"}, {"true"}).status, 3);
}

TEST_F(Command, ListsTheModelsThatItCanBe) {
  const auto end = emulate({"--list"}, {});
  EXPECT_EQ(end.status, 0);
  for (const auto* const model : {"mi210", "mi100-node", "mi250x-node", "rx6800xt-small-bar"}) {
    EXPECT_THAT(end.out, HasSubstr(model));
  }
  EXPECT_THAT(end.out, Not(HasSubstr("h200")));
}

TEST_F(Command, AnAllocationFailsAsOrdered) {
  BERTH_REQUIRE_ROCM();
  const auto end = emulate({"--fault", "allocation-fails,nth=all,memory=device,from=60MiB"},
                           {program_path("hip_pinned_copy")});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.out, HasSubstr("hipErrorOutOfMemory"));
}

TEST_F(Command, AQueueFailsAsOrdered) {
  BERTH_REQUIRE_ROCM();
  const auto end = emulate({"--fault", "queue-fails,nth=all"}, {program_path("hip_pinned_copy")});
  EXPECT_NE(end.status, 0);
}

TEST_F(Command, AKernelFaultsAsOrdered) {
  BERTH_REQUIRE_ROCM();
  const temporary_file trace("trace");
  const auto end = emulate(
      {"--trace", trace.string(), "--fault", "kernel-faults,kernel=__amd_rocclr_fillBufferAligned"},
      {program_path("hip_device_copy")});
  EXPECT_EQ(end.status, 134) << end.out << end.err;
  EXPECT_THAT(end.err, testing::AnyOf(HasSubstr("Memory access fault by GPU node-1"),
                                      HasSubstr("has not noticed")));
  const auto records = read_trace(trace.string());
  EXPECT_TRUE(std::any_of(records.begin(), records.end(), [](const auto& record) {
    return record.at("record") == "memory_fault";
  }));
}

TEST_F(Command, ACopyIsCorruptAsOrdered) {
  BERTH_REQUIRE_ROCM();
  const auto end =
      emulate({"--fault", "copy-corrupt,nth=2,from=1MB"}, {program_path("hip_pinned_copy")});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.out, HasSubstr("FAILED program::has_pattern"));
}

TEST_F(Command, ACopyIsSlowAsOrdered) {
  BERTH_REQUIRE_ROCM();
  const temporary_file trace("trace");
  const auto end =
      emulate({"--trace", trace.string(), "--fault", "copy-slow,nth=3,from=1MiB,by=20ms"},
              {program_path("hip_device_times")});
  ASSERT_EQ(end.status, 0) << end.err;
  int slow = 0;
  int copies = 0;
  for (const auto& record : read_trace(trace.string())) {
    if (record.at("record") == "copy" && record.at("bytes") == 1U << 20U) {
      const auto took =
          record.at("end_ns").get<std::uint64_t>() - record.at("start_ns").get<std::uint64_t>();
      slow += ++copies == 3 && took > 20'000'000 ? 1 : 0;
      slow += copies != 3 && took > 20'000'000 ? 100 : 0;
    }
  }
  EXPECT_EQ(slow, 1);
}

TEST(RocmLibraries, ThoseThatAreMissingAreNamedWithTheirPackages) {
  const temporary_file folder("libraries");
  std::filesystem::create_directory(folder.string());
  const std::vector<std::string> folders = {"/does/not/exist", folder.string()};
  EXPECT_EQ(emulator::missing_rocm_libraries(folders).size(), 4U);
  EXPECT_EQ(emulator::untried_hsa_runtime(folders), "");
  for (const auto* const file : {"libhsakmt.so.1", "libhsa-runtime64.so.1", "libamd_comgr.so.2"}) {
    std::ofstream(folder.string() + "/" + file) << "x";
  }
  EXPECT_EQ(emulator::described(emulator::missing_rocm_libraries(folders)),
            "libamdhip64.so.5 (Debian package libamdhip64-5)");
  std::filesystem::remove_all(folder.string());
}

TEST(Fault, IsParsed) {
  using emulator::fault_kind;
  using emulator::parse_fault;
  const auto slow = parse_fault("copy-slow,nth=2,by=20ms,from=1MiB").value();
  EXPECT_EQ(slow.kind, fault_kind::copy_slow);
  EXPECT_EQ(slow.nth, 2U);
  EXPECT_EQ(slow.delay_ns, 20'000'000U);
  EXPECT_EQ(slow.at_least, 1U << 20U);
  EXPECT_EQ(parse_fault("queue-fails,nth=all").value().nth, 0U);
  EXPECT_EQ(parse_fault("kernel-faults,kernel=saxpy").value().only, "saxpy");
  for (const auto* const bad :
       {"", "fire", "copy-slow", "copy-slow,by=1", "queue-fails,nth=0", "queue-fails,nth",
        "queue-fails,by=1ms", "allocation-fails,memory=x", "copy-corrupt,from=x"}) {
    EXPECT_FALSE(parse_fault(bad)) << bad;
  }
}

// The best of some runs, so that a busy machine does not decide. Not with sanitizers, whose own
// start takes longer.
TEST(Startup, OfRocminfoIsShort) {
  BERTH_REQUIRE_ROCM();
  if (run_command({"rocminfo"}).status == 127) {
    GTEST_SKIP() << "rocminfo is absent";
  }
  if (BERTH_SANITIZED) {
    GTEST_SKIP() << "sanitizers take their own time";
  }
  for (const auto* const machine : {"mi210", "mi250x-node"}) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int run = 0; run < 5; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_EQ(emulate({"--machine", machine}, {"rocminfo"}).status, 0);
      best = std::min(best, std::chrono::steady_clock::now() - begin);
    }
    std::cout << machine << ": "
              << std::chrono::duration_cast<std::chrono::milliseconds>(best).count() << " ms\n";
    EXPECT_LE(best, std::chrono::milliseconds(300)) << machine;
  }
}

TEST(Idle, TakesAlmostNoTime) {
  BERTH_REQUIRE_ROCM();
  const auto end = emulate({}, {program_path("hip_idle")});
  ASSERT_EQ(end.status, 0) << end.err;
  const auto at = end.out.find("idle ");
  ASSERT_NE(at, std::string::npos);
  std::cout << end.out;
  EXPECT_LE(std::strtod(end.out.c_str() + at + 5, nullptr), BERTH_SANITIZED ? 0.05 : 0.02);
}

}  // namespace
}  // namespace berth::test
