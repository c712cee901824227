// SPDX-License-Identifier: Apache-2.0
// `berth doctor` as a user runs it: on this machine, on made-up ones, on text, on nonsense.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/synthetic_machine.hpp"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

synthetic_machine two_gpus() {
  return {
      .numa = {{.cpus = "0-7"}, {.cpus = "8-15"}},
      .gpus = {{.address = "0000:03:00.0", .bridges = {{.address = "0000:00:01.1"}}},
               {.address = "0000:83:00.0", .numa = 1, .bridges = {{.address = "0000:80:01.1"}}}},
      .xgmi = {{.from = 0, .to = 1}}};
}

synthetic_machine with_lost_lanes() {
  auto machine = two_gpus();
  machine.gpus[1].trained.width = 4;
  machine.gpus[1].bridges[0].trained.width = 4;
  return machine;
}

// What berth doctor says of a folder's files.
outcome examine(const synthetic_machine& machine, std::vector<std::string> more = {}) {
  const machine_folder folder;
  machine_writer(folder, machine).write();
  std::vector<std::string> words{"doctor", "--root", folder.root().string()};
  words.insert(words.end(), more.begin(), more.end());
  return run_berth(words);
}

constexpr std::string_view lspci_text =
    "0000:00:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge\n"
    "\tCapabilities: [58] Express (v2) Root Port (Slot+), MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n"
    "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x1 (downgraded)\n";

TEST(Doctor, OfThisMachineIsSensible) {
  const auto shown = run_berth({"doctor", "--format", "json"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.err, IsEmpty());
  const auto all = json::parse(shown.out);
  EXPECT_EQ(all["schema"], "berth.doctor/1");
  EXPECT_EQ(all["kind"], "live");
  EXPECT_FALSE(all["machine"]["numa_nodes"].empty());
  if (all["machine"]["gpus"].empty()) {
    EXPECT_NE(all["verdict"], "fault");
    EXPECT_THAT(run_berth({"doctor"}).out, StartsWith("VERDICT   No fault found"));
    EXPECT_EQ(run_berth({"doctor", "--check"}).status, 0);
  }
}

TEST(Doctor, FindsNoFaultOnAHealthyMachine) {
  const auto shown = examine(two_gpus(), {"--check"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, StartsWith("VERDICT   No fault found"));
}

TEST(Doctor, ExitsWith1ForAFaultAndOnlyWithCheck) {
  const auto shown = examine(with_lost_lanes(), {"--check"});
  EXPECT_EQ(shown.status, 1);
  EXPECT_THAT(shown.out,
              AllOf(StartsWith("VERDICT   1 fault"), HasSubstr("\nFAULT     GPU 1: link"),
                    HasSubstr("16 GT/s x4"), HasSubstr("0000:80:01.1")));
  EXPECT_EQ(examine(with_lost_lanes()).status, 0);
}

TEST(Doctor, FailsWhereASiteRequiresMore) {
  const auto met = examine(two_gpus(), {"--check", "--require", "gpus=2", "--require", "link=x16"});
  EXPECT_EQ(met.status, 0);
  EXPECT_THAT(met.out, HasSubstr("\nMET       gpus=2"));
  const auto failed = examine(two_gpus(), {"--check", "--require", "gpus=3", "--format", "json"});
  EXPECT_EQ(failed.status, 1);
  const auto all = json::parse(failed.out);
  EXPECT_NE(all["verdict"], "fault");
  EXPECT_EQ(all["requirements"][0]["is"], "failed");
  EXPECT_EQ(all["requirements"][0]["found"], "2 GPUs were seen");
}

TEST(Doctor, TakesTheRequirementsOfAFile) {
  const scratch_folder scratch;
  const auto site = scratch.file("site");
  write_file(site, "# nodes of ours\ngpus=2\nlink=gen5\n");
  const auto shown = examine(two_gpus(), {"--check", "--require-file", site});
  EXPECT_EQ(shown.status, 1);
  EXPECT_THAT(shown.out, HasSubstr("\nNOT MET   link=gen5: GPU 0 has a link of 16 GT/s x16"));
  EXPECT_EQ(examine(two_gpus(), {"--check", "--require-file", scratch.file("no")}).status, 3);
}

TEST(Doctor, PrintsTheAffinityOfEachGpu) {
  const auto shown = examine(two_gpus(), {"--affinity"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("numactl --cpunodebind=1 --membind=1"));
  const auto all = json::parse(examine(two_gpus(), {"--affinity", "--format", "json"}).out);
  EXPECT_EQ(all["gpus"][1]["numa_node"], 1);
}

TEST(Doctor, GivesTheSameVerdictOfABundle) {
  const scratch_folder scratch;
  const auto bundle = scratch.file("machine.tar.zst");
  ASSERT_EQ(examine(with_lost_lanes(), {"--gather", bundle}).status, 0);
  const auto here = json::parse(examine(with_lost_lanes(), {"--format", "json"}).out);
  const auto there = json::parse(run_berth({"doctor", bundle, "--format", "json"}).out);
  EXPECT_EQ(here["results"], there["results"]);
  EXPECT_EQ(here["machine"], there["machine"]);
}

TEST(Doctor, NamesWhatDiffersBetweenTwoMachines) {
  const scratch_folder scratch;
  const auto good = scratch.file("good");
  const auto bad = scratch.file("bad");
  ASSERT_EQ(examine(two_gpus(), {"--gather", good}).status, 0);
  ASSERT_EQ(examine(with_lost_lanes(), {"--gather", bad}).status, 0);
  const auto shown = run_berth({"doctor", "--compare", good, bad});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, AllOf(HasSubstr("check link-below-capability"),
                               HasSubstr("gpus[1].pci_path[0].trained.width")));
  EXPECT_THAT(run_berth({"doctor", "--compare", good, good}).out, HasSubstr("No difference"));
}

TEST(Doctor, ReadsTextFromAFile) {
  const scratch_folder scratch;
  const auto file = scratch.file("lspci.txt");
  write_file(file, lspci_text);
  const auto shown = run_berth({"doctor", file, "--check"});
  EXPECT_EQ(shown.status, 1);
  EXPECT_THAT(shown.out, HasSubstr("both lanes and speed are lost"));
}

TEST(Doctor, WritesToAFile) {
  const scratch_folder scratch;
  const auto file = scratch.file("report.json");
  const auto shown = run_berth({"doctor", "--format", "json", "-o", file});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, IsEmpty());
  EXPECT_EQ(json::parse(read_file(file))["schema"], "berth.doctor/1");
}

// A rocminfo of the test's own, found first.
outcome try_with(const std::string& script) {
  const scratch_folder scratch;
  const auto program = scratch.file("rocminfo");
  write_file(program, "#!/bin/sh\n" + script);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto path = std::filesystem::path(program).parent_path().string() + ":/usr/bin:/bin";
  return run_berth({"doctor", "--try-xnack"}, output_to::file, {{"PATH", path}});
}

TEST(Doctor, TriesXnackWithRocminfo) {
  const auto shown = try_with(
      "echo 'HSA System Attributes'; [ \"$HSA_XNACK\" = 1 ] && echo 'XNACK enabled:   YES'\n"
      "echo 'HSA Agents'; echo 'Agent 1'; echo '  Name:                    gfx90a'\n"
      "echo '  Vendor Name:             AMD'; echo '  Node:                    1'\n"
      "echo '  Device Type:             GPU'; echo '  ISA Info:'; echo '    ISA 1'\n"
      "echo '      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+'\n");
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("tried with HSA_XNACK=1: XNACK is on for GPU 0 (gfx90a)"));
}

TEST(Doctor, SaysWhereXnackCouldNotBeTried) {
  const auto shown = try_with("exit 3\n");
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("NOT READ  rocminfo, with HSA_XNACK=1: it failed"));
}

TEST(Doctor, SaysThatNonsenseDescribesNoMachine) {
  const scratch_folder scratch;
  const auto file = scratch.file("noise");
  std::string noise;
  for (int value = 0; value < 4096; ++value) {
    noise += static_cast<char>(value * 37 % 251);
  }
  for (const auto& text : {std::string(), noise, std::string("hello\n")}) {
    write_file(file, text);
    const auto shown = run_berth({"doctor", file});
    EXPECT_EQ(shown.status, 3);
    EXPECT_THAT(shown.err, HasSubstr("BTH-1104"));
  }
  write_file(file, "\x28\xb5\x2f\xfd and no bundle");
  EXPECT_EQ(run_berth({"doctor", file}).status, 3);
}

TEST(Doctor, SaysWhichInputCouldNotBeRead) {
  const scratch_folder scratch;
  const auto missing = scratch.file("missing");
  EXPECT_THAT(run_berth({"doctor", missing}).err, AllOf(HasSubstr("BTH-1101"), HasSubstr(missing)));
  EXPECT_EQ(run_berth({"doctor", missing}).status, 3);
  EXPECT_EQ(run_berth({"doctor", "--root", missing}).status, 3);
  EXPECT_THAT(run_berth({"doctor", std::filesystem::temp_directory_path().string()}).err,
              HasSubstr("--root"));
  EXPECT_EQ(run_berth({"doctor", "--gather", scratch.file("no/such/folder")}).status, 3);
}

TEST(Doctor, RefusesWrongUsageWithAHint) {
  const std::vector<std::vector<std::string>> wrong{
      {"doctor", "--compare", "a"},
      {"doctor", "--compare", "a", "b", "c"},
      {"doctor", "--root", "/", "a"},
      {"doctor", "--gather", "a", "b"},
      {"doctor", "--affinity", "--check"},
      {"doctor", "--format", "xml"},
      {"doctor", "--root", ""},
      {"doctor", "-", "-"},
      {"doctor", "--try-xnack", "a"},
      {"doctor", "--require", "gpus=1"},
      {"doctor", "--check", "--require", "gpus"},
      {"doctor", "--check", "--require", "speed=fast"},
      {"doctor", "--check", "--require", "link=x3"},
  };
  for (const auto& words : wrong) {
    const auto shown = run_berth(words);
    EXPECT_EQ(shown.status, 2) << testing::PrintToString(words);
    EXPECT_THAT(shown.err, HasSubstr("\nhint: ")) << testing::PrintToString(words);
  }
}

}  // namespace
}  // namespace berth::test
