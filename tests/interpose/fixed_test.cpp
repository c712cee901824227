// SPDX-License-Identifier: Apache-2.0
// `berth run --fix` over AMD's own runtime on an emulated device: programs do what they do without,
// and their pageable copies come through the copy engine's page-locked ring.
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "emulator/run_command.hpp"
#include "emulator/trace_file.hpp"
#include "support/recorded_file.hpp"
#include "support/scratch.hpp"

namespace berth::test {
namespace {

struct fixed_run {
  command_end end;
  std::map<std::string, std::uint64_t> counts;  // "copies", "passed.small"
  std::uint64_t marked = 0;                     // events of fixed copies
  std::uint64_t marked_bytes = 0;
  std::uint64_t marked_with_rows = 0;
};

void add_counts(const recorded_file& read, fixed_run& run) {
  constexpr std::string_view prefix = "fix.";
  for (const auto& [key, value] : read.coverage) {
    if (key.starts_with(prefix)) {
      run.counts[key.substr(prefix.size())] += std::stoull(value);
    }
  }
  for (const auto& one : read.copies()) {
    if (const auto found = one.extras.find("fixed");
        found != one.extras.end() && found->second == 1) {
      ++run.marked;
      run.marked_bytes += one["bytes"];
      run.marked_with_rows += one["rows"] > 1 ? 1U : 0U;
    }
  }
}

fixed_run run_fixed(const std::string& program, const std::string& fix) {
  const scratch traces;
  fixed_run run;
  run.end = run_command({"env", "BERTH_FIX_PROFILE=nominal", "BERTH_FIX_THREADS=4",
                         "BERTH_FIX=" + fix, BERTH_COMMAND, "run", "--fix", "--emulate", "mi210",
                         "--record", traces.file("%p.trace"), "--", program_path(program)});
  for (const auto& file : traces.files()) {
    add_counts(recorded_file::read(file), run);
  }
  return run;
}

std::string plain_output(const std::string& program) {
  return emulate({"--machine", "mi210"}, {program_path(program)}).out;
}

// Each as it is, and with each fixed copy compared.
class FixedProgram : public testing::TestWithParam<const char*> {};

TEST_P(FixedProgram, HasTheSameOutputAndItsCopiesStaged) {
  BERTH_REQUIRE_ROCM();
  const auto run = run_fixed("hip_fixed_copies", GetParam());
  ASSERT_EQ(run.end.status, 0) << run.end.out << run.end.err;
  EXPECT_EQ(run.end.out, plain_output("hip_fixed_copies"));
  auto counts = run.counts;
  EXPECT_GT(counts["copies"], 80U);
  EXPECT_EQ(run.marked, counts["copies"]);
  EXPECT_EQ(run.marked_bytes, counts["bytes"]);
  EXPECT_GE(run.marked_with_rows, 24U);
  EXPECT_EQ(counts["passed.failed"], 0U);
  EXPECT_EQ(counts.contains("differed"), std::string(GetParam()) == "check");
  EXPECT_EQ(counts["differed"], 0U);
  EXPECT_THAT(run.end.err, testing::HasSubstr("copies fixed by berth's copy engine"));
}

INSTANTIATE_TEST_SUITE_P(Interpose, FixedProgram, testing::Values("1", "check"),
                         [](const auto& given) { return "With_" + std::string(given.param); });

struct other_program {
  const char* program;
  bool has_fixed_copies;

  friend void PrintTo(const other_program& one, std::ostream* out) { *out << one.program; }
};

// --- What the devices did -----------------------------------------------------------------------

std::uint64_t number_of(const nlohmann::json& hexadecimal) {
  return std::stoull(hexadecimal.get<std::string>(), nullptr, 0);
}

// Bytes between host and device whose host end is a ring: page-locked memory of whole mebibytes, as
// none of the program's own is (HIP page-locks that in place).
std::uint64_t bytes_through_rings(const std::vector<nlohmann::json>& truth) {
  constexpr std::uint64_t mebibyte = 1U << 20U;
  constexpr std::uint64_t smallest_ring = 4 * mebibyte;
  std::map<std::uint64_t, std::uint64_t> rings;  // end by begin
  std::uint64_t bytes = 0;
  for (const auto& record : truth) {
    if (record["record"] == "free") {
      rings.erase(number_of(record["address"]));
    } else if (record["record"] == "alloc" && record["kind"] == "user") {
      const auto begin = number_of(record["address"]);
      const auto size = record["bytes"].get<std::uint64_t>();
      // Addresses are used again: what the runtime had there before is gone.
      std::erase_if(
          rings, [&](const auto& one) { return one.first < begin + size && begin < one.second; });
      if (size % mebibyte == 0 && size >= smallest_ring) {
        rings[begin] = begin + size;
      }
    } else if (record["record"] == "copy") {
      const bool up = record["direction"] == "host_to_device";
      const auto at = number_of(record[up ? "source" : "destination"]);
      const auto after = rings.upper_bound(at);
      const bool is_ring = after != rings.begin() && at < std::prev(after)->second;
      bytes += is_ring && record["direction"] != "within_device"
                   ? record["bytes"].get<std::uint64_t>()
                   : 0;
    }
  }
  return bytes;
}

std::uint64_t ring_bytes_of(const std::string& fix, fixed_run& run) {
  const temporary_file truth("fixed");
  const scratch traces;
  run.end = emulate(
      {"--machine", "mi210", "--trace", truth.string()},
      {"env", "BERTH_FIX=" + fix, "BERTH_FIX_PROFILE=nominal", "BERTH_FIX_THREADS=4",
       "BERTH_RECORD=" + traces.file("%p.trace"), "sh", "-c",
       "LD_PRELOAD=" BERTH_PRELOAD ":$LD_PRELOAD exec " + program_path("hip_fixed_copies")});
  for (const auto& file : traces.files()) {
    add_counts(recorded_file::read(file), run);
  }
  return bytes_through_rings(read_trace(truth.string()));
}

TEST(Fix, HasTheDevicesReadAndWritePageLockedSlotsInsteadOfTheProgramsMemory) {
  BERTH_REQUIRE_ROCM();
  fixed_run plain;
  EXPECT_EQ(ring_bytes_of("0", plain), 0U);
  fixed_run fixed;
  const auto bytes = ring_bytes_of("1", fixed);
  EXPECT_GT(fixed.marked_bytes, 0U);
  EXPECT_EQ(bytes, fixed.marked_bytes);
  EXPECT_EQ(fixed.end.out, plain.end.out);
}

// Small copies, pinned ones, graphs, children: what is not meant is left alone.
class OtherProgram : public testing::TestWithParam<other_program> {};

TEST_P(OtherProgram, HasTheSameOutput) {
  BERTH_REQUIRE_ROCM();
  const auto program = "hip_" + std::string(GetParam().program);
  const auto run = run_fixed(program, "check");
  ASSERT_EQ(run.end.status, 0) << run.end.out << run.end.err;
  EXPECT_EQ(run.end.out, plain_output(program));
  auto counts = run.counts;
  EXPECT_EQ(counts["copies"] > 0, GetParam().has_fixed_copies);
  EXPECT_EQ(counts["passed.failed"], 0U);
  EXPECT_EQ(counts["differed"], 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Interpose, OtherProgram,
    testing::Values(other_program{"pageable_copy", true}, other_program{"pinned_copy", false},
                    other_program{"registered_copy", false}, other_program{"copy_2d", false},
                    other_program{"streams_events", false}, other_program{"graphs", false},
                    other_program{"fork_exec", true}),
    [](const auto& given) { return std::string(given.param.program); });

TEST(Fix, EndsBeforeTheDeviceIsReset) {
  BERTH_REQUIRE_ROCM();
  auto run = run_fixed("hip_device_reset", "1");
  EXPECT_EQ(run.end.status, 0) << run.end.out << run.end.err;
  EXPECT_EQ(run.end.out, plain_output("hip_device_reset"));
  EXPECT_GT(run.counts["copies"], 0U);
  EXPECT_EQ(run.counts["passed.ended"], 8U);
  EXPECT_EQ(run.counts["passed.failed"], 0U);
}

TEST(Fix, IsOffWhereTheEnvironmentSaysSo) {
  BERTH_REQUIRE_ROCM();
  const auto run = run_fixed("hip_pageable_copy", "0");
  EXPECT_EQ(run.end.status, 0) << run.end.err;
  EXPECT_TRUE(run.counts.empty());
  EXPECT_EQ(run.marked, 0U);
}

// What --ab prints, as JSON.
nlohmann::json compared(std::vector<std::string> environment, const std::string& program) {
  environment.insert(environment.begin(), "env");
  for (const char* const word : {"BERTH_FIX_PROFILE=nominal", "BERTH_FIX_THREADS=4", BERTH_COMMAND,
                                 "run", "--ab=2", "--format", "json", "--emulate", "mi210", "--"}) {
    environment.emplace_back(word);
  }
  environment.push_back(program_path(program));
  const auto end = run_command(environment);
  EXPECT_EQ(end.status, 0) << end.err;
  return nlohmann::json::parse(end.err.substr(std::min(end.err.find("{"), end.err.size())), nullptr,
                               false);
}

TEST(FixBothWays, RunsEachAsOftenAndCountsWhatWasFixed) {
  BERTH_REQUIRE_ROCM();
  const auto shown = compared({}, "hip_pageable_copy");
  ASSERT_TRUE(shown.is_object());
  EXPECT_EQ(shown["pairs"], 2);
  EXPECT_GT(shown["fixed_copies"], 0);
  for (const char* const row : {"program", "to_device", "to_host"}) {
    for (const char* const side : {"plain", "fixed"}) {
      EXPECT_EQ(shown[row][side]["times_ns"].size(), 2U) << row << side;
    }
    EXPECT_GT(shown[row]["ratio"], 0) << row;
    EXPECT_EQ(shown[row]["plain"]["bytes"], shown[row]["fixed"]["bytes"]) << row;
  }
}

TEST(FixBothWays, IsPlainWhereThatIsMeantWhateverTheEnvironmentSays) {
  BERTH_REQUIRE_ROCM();
  EXPECT_GT(compared({"BERTH_FIX=1"}, "hip_pageable_copy")["fixed_copies"], 0);
  const auto off = compared({"BERTH_FIX=0"}, "hip_pageable_copy");
  EXPECT_EQ(off["fixed_copies"], 0);
  EXPECT_THAT(off["notes"].dump(), testing::HasSubstr("no copy was fixed"));
}

TEST(FixBothWays, StopsAtAProgramThatFails) {
  BERTH_REQUIRE_ROCM();
  const auto end = run_command({BERTH_COMMAND, "run", "--ab", "--emulate", "mi210", "--", "false"});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.err, testing::HasSubstr("the plain run of pair 1 ended with status 1"));
}

fixed_run run_with(const std::string& variable) {
  const scratch traces;
  fixed_run run;
  run.end = run_command({"env", "BERTH_FIX_PROFILE=nominal", variable, BERTH_COMMAND, "run",
                         "--fix", "--emulate", "mi210", "--record", traces.file("%p.trace"), "--",
                         program_path("hip_fixed_copies")});
  for (const auto& file : traces.files()) {
    add_counts(recorded_file::read(file), run);
  }
  return run;
}

long uncopied_kib(const std::string& err, const std::string& when) {
  const auto at = err.find("uncopied " + when + " ");
  return at == std::string::npos ? -1 : std::stol(err.substr(at + 10 + when.size()));
}

fixed_run run_program_with(const std::string& variable, const std::string& wish,
                           const std::string& program) {
  const scratch traces;
  fixed_run run;
  run.end = run_command({"env", "BERTH_FIX_PROFILE=nominal", variable, BERTH_COMMAND, "run", wish,
                         "--emulate", "mi210", "--record", traces.file("%p.trace"), "--",
                         program_path(program)});
  for (const auto& file : traces.files()) {
    add_counts(recorded_file::read(file), run);
  }
  return run;
}

TEST(Fix, GivesItsRingsBackWhereTheProgramWaitsForAnIdleDevice) {
  BERTH_REQUIRE_ROCM();
  auto run = run_program_with("BERTH_FIX_IDLE=1", "--fix", "hip_pageable_pauses");
  ASSERT_EQ(run.end.status, 0) << run.end.err;
  EXPECT_EQ(run.end.out, plain_output("hip_pageable_pauses"));
  EXPECT_GE(uncopied_kib(run.end.err, "before") - uncopied_kib(run.end.err, "after"), 4096)
      << run.end.err;
  EXPECT_GE(run.counts["passed.not_ready"], 1U) << "a ring is made behind the first copy after it";
  EXPECT_GE(run.counts["copies"], 8U) << "and then they are fixed again";
}

TEST(Fix, KeepsItsRingsWhereThatIsAskedFor) {
  BERTH_REQUIRE_ROCM();
  const auto run = run_program_with("BERTH_FIX_IDLE=0", "--fix", "hip_pageable_pauses");
  ASSERT_EQ(run.end.status, 0) << run.end.err;
  EXPECT_GE(uncopied_kib(run.end.err, "after"), 4096) << run.end.err;
  EXPECT_EQ(uncopied_kib(run.end.err, "before"), uncopied_kib(run.end.err, "after"));
}

TEST(Fix, KeepsFreedPinnedMemoryForTheNextAllocationIfAsked) {
  BERTH_REQUIRE_ROCM();
  auto run = run_program_with("BERTH_FIX_PINNED=64", "--fix=pinned", "hip_pinned_reuse");
  ASSERT_EQ(run.end.status, 0) << run.end.out << run.end.err;
  EXPECT_EQ(run.end.out, plain_output("hip_pinned_reuse"));
  EXPECT_GE(run.counts["reused"], 11U) << "all but the first of the twelve of one sort";
  EXPECT_THAT(run.end.err, testing::HasSubstr("served by freed blocks"));
  auto tight = run_program_with("BERTH_FIX_PINNED=4", "--fix=pinned", "hip_pinned_reuse");
  EXPECT_EQ(tight.end.status, 0) << tight.end.err;
  EXPECT_EQ(tight.counts["reused"], 0U) << "no block is within the budget";
  auto off = run_program_with("BERTH_FIX=1", "--fix", "hip_pinned_reuse");
  EXPECT_EQ(off.counts["reused"], 0U);
}

TEST(Fix, SaysThatWithoutPageLockedMemoryThereIsNoEngine) {
  BERTH_REQUIRE_ROCM();
  auto run = run_with("BERTH_FIX_MEMORY=0");
  EXPECT_EQ(run.end.status, 0) << run.end.err;
  EXPECT_EQ(run.end.out, plain_output("hip_fixed_copies"));
  EXPECT_EQ(run.counts["copies"], 0U);
  EXPECT_GT(run.counts["passed.no_engine"], 80U);
}

TEST(Fix, TakesNonsenseInItsVariablesAsNotSet) {
  BERTH_REQUIRE_ROCM();
  for (const char* const nonsense : {"BERTH_FIX_MEMORY=much", "BERTH_FIX_THREADS=-1"}) {
    auto run = run_with(nonsense);
    EXPECT_EQ(run.end.status, 0) << nonsense << run.end.err;
    EXPECT_GT(run.counts["copies"], 0U) << nonsense << run.end.err;
    EXPECT_EQ(run.counts["passed.no_engine"], 0U) << nonsense;
  }
}

TEST(Fix, CopiesWithTheCallersThreadAlone) {
  BERTH_REQUIRE_ROCM();
  const auto run = run_with("BERTH_FIX_THREADS=1");
  EXPECT_EQ(run.end.status, 0) << run.end.err;
  EXPECT_EQ(run.end.out, plain_output("hip_fixed_copies"));
}

TEST(Fix, LeavesAllToTheRuntimeWhereItsLibraryIsNotThere) {
  BERTH_REQUIRE_ROCM();
  const auto end =
      run_command({"env", "BERTH_FIX_LIBRARY=/nowhere/libberth_fix.so", BERTH_COMMAND, "run",
                   "--fix", "--emulate", "mi210", "--", program_path("hip_pageable_copy")});
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_THAT(end.err, testing::HasSubstr("no_library"));
}

}  // namespace
}  // namespace berth::test
