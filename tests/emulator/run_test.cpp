// SPDX-License-Identifier: Apache-2.0
// `berth run --emulate`: the recorder and the emulator in one program.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/run_command.hpp"

namespace berth::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
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

}  // namespace
}  // namespace berth::test
