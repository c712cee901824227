// SPDX-License-Identifier: Apache-2.0
// `berth run --emulate`: the recorder and the emulator in one program.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/run_command.hpp"

namespace berth::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

command_end run_emulated(const std::vector<std::string>& variables,
                         const std::vector<std::string>& words) {
  std::vector<std::string> all{"env"};
  all.insert(all.end(), variables.begin(), variables.end());
  all.insert(all.end(), {BERTH_COMMAND, "run", "--emulate", "mi210"});
  all.insert(all.end(), words.begin(), words.end());
  return run_command(all);
}

const std::string standin = std::string("BERTH_PRELOAD_LIBRARY=") + BERTH_STANDIN_RECORDER;

TEST(RunEmulated, PreloadsTheRecorderBeforeTheEmulator) {
  const auto end =
      run_emulated({standin, "STANDIN=nothing"}, {"--", "sh", "-c", "echo $LD_PRELOAD; exit 3"});
  EXPECT_EQ(end.status, 3);
  EXPECT_THAT(end.out, HasSubstr(std::string(BERTH_STANDIN_RECORDER) + ":"));
  EXPECT_THAT(end.out.substr(end.out.find(BERTH_STANDIN_RECORDER)),
              HasSubstr("/libberth_emulator.so"));
  EXPECT_THAT(end.err, AllOf(HasSubstr("emulated device: AMD Instinct MI210"),
                             HasSubstr("note: nothing was recorded: ")));
}

TEST(RunEmulated, HasAsManyDevicesAsAreAskedFor) {
  const auto end = run_emulated({standin, "STANDIN=nothing"}, {"--gpus", "2", "--", "true"});
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(end.err, HasSubstr("2 x AMD Instinct MI210"));
}

// The bundled program, each of its parts alone, so that no other decides what is much.
class ThreeSymptoms : public testing::TestWithParam<std::pair<const char*, const char*>> {
protected:
  void SetUp() override {
    BERTH_REQUIRE_ROCM();
    if (!std::filesystem::exists(BERTH_THREE_SYMPTOMS)) {
      GTEST_SKIP() << "the program was not built: libamdhip64-dev is absent";
    }
    if (BERTH_SANITIZED) {
      GTEST_SKIP() << "there is no recorder with a sanitizer";
    }
  }
};

TEST_P(ThreeSymptoms, AreFoundAndTheCuredProgramHasNone) {
  const auto [part, rule] = GetParam();
  const std::vector<std::string> words{"--", BERTH_THREE_SYMPTOMS, part, "--mib",
                                       "8",  "--rounds",           "20"};
  const auto ill = run_emulated({}, words);
  EXPECT_EQ(ill.status, 0) << ill.err;
  EXPECT_THAT(ill.out, HasSubstr(std::string(part) + " "));
  EXPECT_THAT(ill.err, HasSubstr("[" + std::string(rule) + "]"));
  auto with_cure = words;
  with_cure.emplace_back("--cured");
  const auto cured = run_emulated({}, with_cure);
  EXPECT_EQ(cured.status, 0) << cured.err;
  EXPECT_THAT(cured.err, AllOf(HasSubstr("VERDICT"), Not(HasSubstr("FAULT"))));
  for (const auto* const any : {"pageable-copies", "managed-without-migration", "ping-pong"}) {
    EXPECT_THAT(cured.err, Not(HasSubstr("[" + std::string(any) + "]")));
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, ThreeSymptoms,
                         testing::Values(std::pair{"pageable", "pageable-copies"},
                                         std::pair{"managed", "managed-without-migration"},
                                         std::pair{"pingpong", "ping-pong"}),
                         [](const auto& about) { return std::string(about.param.first); });

}  // namespace
}  // namespace berth::test
