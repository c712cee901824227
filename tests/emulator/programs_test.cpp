// SPDX-License-Identifier: Apache-2.0
// HIP programs on AMD's own runtime over emulated devices: their results are right, and the ground
// truth says what they did.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/machines.hpp"
#include "emulator/run_command.hpp"
#include "emulator/trace_file.hpp"

namespace berth::test {
namespace {

using testing::HasSubstr;
using testing::Not;

enum class ground_truth_of { all, none };

struct run {
  std::string_view program;
  emulated on;
  std::string_view argument = "";
  ground_truth_of compare = ground_truth_of::all;

  friend void PrintTo(const run& one, std::ostream* out) { *out << one.program << one.on.name; }
};

constexpr emulated mi210{.name = "mi210", .machine = "mi210"};
constexpr emulated two_mi210{.name = "mi210_x2", .machine = "mi210", .gpus = 2};
constexpr emulated hives{.name = "mi100_two_hives", .machine = "mi100-node"};
constexpr emulated small_bar{.name = "small_bar", .machine = "rx6800xt-small-bar"};
constexpr emulated no_hmm{.name = "no_hmm", .machine = "no-hmm.json"};
constexpr emulated two_sockets{.name = "two_sockets", .machine = "two-sockets.json"};
constexpr emulated pro_vii{.name = "radeon_pro_vii", .machine = "radeon-pro-vii"};
constexpr emulated node{.name = "mi250x_node", .machine = "mi250x-node"};

constexpr run runs[] = {
    {"pageable_copy", mi210},
    {"pinned_copy", mi210},
    {"registered_copy", mi210},
    {"device_copy", mi210},
    {"streams_events", mi210},
    {"callbacks", mi210},
    {"graphs", mi210},
    {"managed", mi210, "", ground_truth_of::none},  // through staging of the runtime's choice
    {"pointer_attributes", mi210},
    {"copy_2d", mi210},
    {"peer_copy", two_mi210},
    {"ipc", mi210},
    {"threads", two_mi210},
    {"fork_exec", mi210},
    {"stream_values", mi210},
    {"managed", no_hmm, "no-hmm", ground_truth_of::none},
    {"pinned_copy", small_bar},
    {"device_copy", pro_vii},
    {"peer_copy", hives},
    {"peer_copy", two_sockets},
    {"threads", node},
};

class HipProgram : public testing::TestWithParam<run> {};

TEST_P(HipProgram, IsRightAndTheGroundTruthSaysWhatItDid) {
  BERTH_REQUIRE_ROCM();
  const auto& [program, on, argument, compare] = GetParam();
  const temporary_file trace("trace");
  auto options = on.options();
  options.insert(options.end(), {"--trace", trace.string()});
  std::vector<std::string> words = {program_path("hip_" + std::string(program))};
  if (!argument.empty()) {
    words.emplace_back(argument);
  }
  const auto end = emulate(options, words);
  ASSERT_EQ(end.status, 0) << end.out << end.err;
  if (compare == ground_truth_of::none) {
    return;
  }
  const auto claims = claimed_by(end.out);
  const auto seen = seen_in(read_trace(trace.string()));
  EXPECT_EQ(seen.bytes, claims.bytes);
  for (const auto& [move, count] : claims.single) {
    const auto found = seen.single.find(move);
    EXPECT_TRUE(
        found != seen.single.end() &&
        (claims.in_pieces.contains(move.first) ? found->second >= count : found->second == count))
        << move.first << ' ' << move.second;
  }
  if (claims.in_pieces.empty()) {
    EXPECT_EQ(seen.single, claims.single);
  }
}

INSTANTIATE_TEST_SUITE_P(Emulator, HipProgram, testing::ValuesIn(runs), [](const auto& given) {
  return std::string(given.param.program) + "_" + std::string(given.param.on.name);
});

// AMD's runtime has switches that take other paths through the driver.
class RuntimeSwitch : public testing::TestWithParam<std::string_view> {};

TEST_P(RuntimeSwitch, LeavesProgramsRight) {
  BERTH_REQUIRE_ROCM();
  const auto end =
      emulate({}, {"env", std::string(GetParam()), program_path("hip_streams_events")});
  EXPECT_EQ(end.status, 0) << end.out << end.err;
}

INSTANTIATE_TEST_SUITE_P(Emulator, RuntimeSwitch,
                         testing::Values("HSA_ENABLE_SDMA=0", "HSA_ENABLE_INTERRUPT=0",
                                         "AMD_DIRECT_DISPATCH=0", "HIP_LAUNCH_BLOCKING=1",
                                         "GPU_MAX_HW_QUEUES=1", "HSA_XNACK=1",
                                         "AMD_SERIALIZE_COPY=3"),
                         [](const auto& given) {
                           return std::string(given.param.substr(0, given.param.find('=')));
                         });

// Allocations of device memory appear with at least the size that was asked for.
TEST(HipProgramVariant, GroundTruthHasTheAllocations) {
  BERTH_REQUIRE_ROCM();
  const temporary_file trace("trace");
  const auto end = emulate({"--trace", trace.string()}, {program_path("hip_pointer_attributes")});
  ASSERT_EQ(end.status, 0) << end.out << end.err;
  const auto records = read_trace(trace.string());
  std::map<std::uint64_t, std::uint64_t> live;
  bool found = false;
  for (const auto& record : records) {
    if (record.at("record") == "alloc") {
      const auto bytes = record.at("bytes").get<std::uint64_t>();
      found = found || (record.at("kind") == "device" && bytes == 64U << 20U);
      EXPECT_TRUE(live.emplace(record.at("handle"), bytes).second);
    } else if (record.at("record") == "free") {
      EXPECT_EQ(live.count(record.at("handle")), 1U);
      live.erase(record.at("handle"));
    }
  }
  EXPECT_TRUE(found);
}

TEST(HipProgramVariant, DeviceTimesFollowTheModel) {
  BERTH_REQUIRE_ROCM();
  const emulated exact{.name = "exact", .machine = "exact-rates.json"};
  const auto end = emulate(exact.options(), {program_path("hip_device_times")});
  ASSERT_EQ(end.status, 0) << end.out << end.err;
  std::istringstream lines(end.out);
  int rates = 0;
  for (std::string word; lines >> word;) {
    if (word == "rate") {
      std::string direction;
      std::uint64_t bytes = 0;
      double rate = 0;
      lines >> direction >> bytes >> rate;
      const double wanted = direction == "host_to_device" ? 25.0 : 20.0;
      EXPECT_NEAR(rate, wanted, wanted * 0.01) << direction << ' ' << bytes;
      ++rates;
    }
  }
  EXPECT_EQ(rates, 18);
}

TEST(HipProgramVariant, KernelsDoWhatTheirHostFunctionDoesOrNothing) {
  BERTH_REQUIRE_ROCM();
  if (!std::filesystem::exists(program_path("hip_kernels"))) {
    GTEST_SKIP() << "hipcc is absent";
  }
  const auto without = emulate({}, {program_path("hip_kernels")});
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("saxpy 1\n"));
  EXPECT_THAT(without.err, HasSubstr("2 kernels completed without effect: saxpy (1), "
                                     "without_effect (1)"));
  const auto with = emulate({}, {program_path("hip_kernels_with_host_function")});
  EXPECT_EQ(with.status, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("saxpy 21\n"));
  EXPECT_THAT(with.err, HasSubstr("1 kernels completed without effect: without_effect (1)"));
}

// berth's own: its threads, ring, streams and kernels over AMD's runtime.
command_end run_copy_engine(const std::vector<std::string>& more = {}) {
  auto options = mi210.options();
  options.insert(options.end(), {"--kernels", BERTH_EMULATED_KERNELS});
  options.insert(options.end(), more.begin(), more.end());
  return emulate(options, {program_path("copy_engine")});
}

TEST(HipCopyEngine, KeepsEveryByte) {
  BERTH_REQUIRE_ROCM();
  const auto end = run_copy_engine();
  EXPECT_EQ(end.status, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("\n0 wrong bytes, 0 failures"));
  EXPECT_THAT(end.err, Not(HasSubstr("completed without effect")));
}

TEST(HipCopyEngine, IsSeenToBeWrongWhenOneByteIs) {
  BERTH_REQUIRE_ROCM();
  const auto end = run_copy_engine({"--fault", "copy-corrupt,nth=3,from=256KiB"});
  EXPECT_EQ(end.status, 1) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("\n1 wrong bytes, 0 failures"));
}

// A fault of AMD's runtime that the emulator shows: see the program. The time limit ends it.
TEST(HipProgramVariant, StreamDestroyHangsAfterStreamOrderedAllocation) {
  BERTH_REQUIRE_ROCM();
  const auto end = emulate({}, {program_path("hip_stream_ordered")}, std::chrono::seconds(10));
  EXPECT_THAT(end.out, HasSubstr("synchronised"));
  EXPECT_EQ(end.status, -1) << "this version of HIP no longer hangs: drop the exceptions for it";
}

// Another: see the program.
TEST(HipProgramVariant, SmallUnalignedFillLeavesItsMemory) {
  BERTH_REQUIRE_ROCM();
  const auto end = emulate({}, {program_path("hip_small_fill")});
  EXPECT_EQ(end.status, 134) << "this version of HIP is right: drop the exceptions for it\n"
                             << end.out;
  EXPECT_THAT(end.err, testing::AnyOf(HasSubstr("Memory access fault by GPU node-1"),
                                      HasSubstr("has not noticed")));
}

}  // namespace
}  // namespace berth::test
