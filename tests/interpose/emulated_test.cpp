// SPDX-License-Identifier: Apache-2.0
// AMD's own runtime on emulated devices, recorded: the program is as right as without, every call
// is seen, and the copies are those that the program has asked for.
//
// The recorded copies are compared with the devices' own ground truth. What can't be equal: one
// call may be several moves on a device (pageable memory through staging, rows, copies between
// devices), and the runtime moves small copies of pageable memory by the CPU. Calls by address name
// no direction, and prefetches of managed memory are moves without a copy.
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "emulator/machines.hpp"
#include "emulator/run_command.hpp"
#include "emulator/trace_file.hpp"
#include "support/recorded_file.hpp"
#include "support/scratch.hpp"

namespace berth::test {
namespace {

enum class truth : std::uint8_t {
  each_copy,  // each call is one move
  bytes,      // the sums are equal, in each direction
  by_address  // the calls name no direction
};

struct recorded_run {
  std::string_view program;
  emulated on;
  truth expected;

  friend void PrintTo(const recorded_run& one, std::ostream* out) { *out << one.program; }
};

constexpr emulated one_mi210{.name = "mi210", .machine = "mi210"};
constexpr emulated pair_of_mi210{.name = "mi210_x2", .machine = "mi210", .gpus = 2};

constexpr recorded_run recorded_runs[] = {
    {"pinned_copy", one_mi210, truth::each_copy}, {"registered_copy", one_mi210, truth::each_copy},
    {"device_copy", one_mi210, truth::each_copy}, {"threads", pair_of_mi210, truth::each_copy},
    {"fork_exec", one_mi210, truth::each_copy},   {"pageable_copy", one_mi210, truth::bytes},
    {"copy_2d", one_mi210, truth::bytes},         {"peer_copy", pair_of_mi210, truth::bytes},
    {"managed", one_mi210, truth::by_address},
};

// What calls have asked for, by the direction that they name.
movements asked_for(const std::vector<recorded_file>& recordings) {
  const std::map<std::uint64_t, std::string> names{
      {1, "host_to_device"}, {2, "device_to_host"}, {3, "device_to_device"}};
  const std::string between_devices = "peer_to_peer";
  movements asked;
  for (const auto& read : recordings) {
    for (const auto& copy : read.copies()) {
      const auto name = names.find(copy["way"]);
      if (copy.operation.starts_with("copy_peer")) {
        asked.add(between_devices, copy["bytes"]);
      } else if (name != names.end() && copy.status == 0) {
        asked.add(name->second, copy["bytes"]);
      }
    }
  }
  return asked;
}

class RecordedHipProgram : public testing::TestWithParam<recorded_run> {};

TEST_P(RecordedHipProgram, IsRightAndHasItsCallsRecorded) {
  BERTH_REQUIRE_ROCM();
  const auto& run = GetParam();
  const temporary_file ground_truth("recorded");
  const scratch traces;
  auto options = run.on.options();
  options.insert(options.end(), {"--trace", ground_truth.string()});
  const auto path = program_path("hip_" + std::string(run.program));
  const auto alone = emulate(run.on.options(), {path});
  const auto end = emulate(options, {"sh", "-c",
                                     "BERTH_RECORD=" + traces.file("%p.trace") +
                                         " LD_PRELOAD=" BERTH_PRELOAD ":$LD_PRELOAD exec " + path});
  ASSERT_EQ(end.status, 0) << end.out << end.err;
  EXPECT_EQ(end.err, alone.err);
  std::vector<recorded_file> recordings;
  for (const auto& file : traces.files()) {
    recordings.push_back(recorded_file::read(file));
    EXPECT_TRUE(recordings.back().whole_events);
    EXPECT_EQ(recordings.back().dropped, 0U);
    EXPECT_EQ(recordings.back().how("libamdhip64"), "linked");
  }
  ASSERT_FALSE(recordings.empty());
  const auto asked = asked_for(recordings);
  auto moved = seen_in(read_trace(ground_truth.string()));
  if (run.expected == truth::by_address) {
    return;
  }
  std::erase_if(moved.bytes, [](const auto& one) { return one.first == "fill"; });
  std::erase_if(moved.single, [](const auto& one) { return one.first.first == "fill"; });
  EXPECT_EQ(asked.bytes, moved.bytes);
  if (run.expected == truth::each_copy) {
    EXPECT_EQ(asked.single, moved.single);
  }
}

INSTANTIATE_TEST_SUITE_P(Interpose, RecordedHipProgram, testing::ValuesIn(recorded_runs),
                         [](const auto& given) { return std::string(given.param.program); });

}  // namespace
}  // namespace berth::test
