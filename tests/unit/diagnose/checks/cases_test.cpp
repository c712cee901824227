// SPDX-License-Identifier: Apache-2.0
// What berth doctor concludes of the shared cases, each of which says at its head what a good
// reader does: per case what must be said, by which check, and what must not be said at all.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/checks/check.hpp"
#include "report/doctor.hpp"
#include "support/shared_cases.hpp"
#include "unit/topology/paste_support.hpp"

namespace berth::test {
namespace {

using diagnose::verdict;

struct said {
  std::string_view check;
  diagnose::verdict verdict;
  std::string_view phrase;  // of the headline
};

struct doctor_case {
  std::string_view name;
  std::string_view file;
  std::string_view begin = "";  // the part of it: from here
  std::string_view end = "";    // up to here
  std::size_t gpus = 0;
  std::vector<said> must = {};
  std::vector<std::string_view> must_not = {};  // in the whole report
  // The worst verdict; `fault` where one is right.
  diagnose::verdict at_most = verdict::limit;
};

std::ostream& operator<<(std::ostream& out, const doctor_case& one) {
  return out << one.name;
}

const std::vector<doctor_case>& cases() {
  static const std::vector<doctor_case> all{
      {.name = "d02",
       .file = "d02_mi250_reverse_numa_order_3x.txt",
       .gpus = 4,
       .must = {{"gpu-numa-order", verdict::limit, "the reverse of NUMA order"},
                {"gpu-numa-order", verdict::limit, "GPU 3 on node 0"},
                {"copy-engines", verdict::unknown, "some variables"}},
       .must_not = {"no variable of the environment steers"}},
      {.name = "d03",
       .file = "d03_p100_numa_bandwidthTest_numactl.txt",
       .gpus = 2,
       .must = {{"measured-rates", verdict::limit, "5.1 times less"},
                {"measured-rates", verdict::limit, "pinned memory of node 0 reaches 12.9 GB/s"}},
       .must_not = {"443", "link is broken"}},
      {.name = "d04_redirect",
       .file = "d04_acs_blocks_p2p_nccl_hang.txt",
       .end = "-------- nccl#606",
       .must = {{"acs-redirect", verdict::fault, "ACS redirect is on"}},
       .at_most = verdict::fault},
      {.name = "d04_source_validation",
       .file = "d04_acs_blocks_p2p_nccl_hang.txt",
       .begin = "-------- nccl#606",
       .end = "-------- nccl#257",
       .must = {{"acs-redirect", verdict::normal, "SrcValid"}},
       .at_most = verdict::normal},
      {.name = "d05_inner_link",
       .file = "d05_pcie_links_behind_internal_switch_and_idle.txt",
       .end = "-------- (2)",
       .gpus = 2,
       .must = {{"link-below-capability", verdict::unknown,
                 "above the switch on the card, runs at 8 GT/s x8"},
                {"link-below-capability", verdict::unknown, "link to the host runs at 8 GT/s x8"}},
       .must_not = {"link to the host runs at 16 GT/s", "all it can do"}},
      {.name = "d05_endpoint_alone",
       .file = "d05_pcie_links_behind_internal_switch_and_idle.txt",
       .begin = "-------- (2)",
       .end = "-------- (3)",
       .gpus = 1,
       .must = {{"link-below-capability", verdict::unknown, "may be the link to a switch"}},
       .must_not = {"x2"}},
      {.name = "d05_idle",
       .file = "d05_pcie_links_behind_internal_switch_and_idle.txt",
       .begin = "-------- (3)",
       .must = {{"link-below-capability", verdict::unknown, "idle GPU slows its link"}}},
      {.name = "d06",
       .file = "d06_lspci_rootport_x1_downgraded.txt",
       .must = {{"link-below-capability", verdict::fault, "both lanes and speed are lost"},
                {"link-below-capability", verdict::limit, "32 GT/s x16 (63.0 GB/s)"},
                {"link-below-capability", verdict::limit, "a single lane"}},
       .at_most = verdict::fault},
      {.name = "d06_gen5_card_in_gen4_slot",
       .file = "d06_lspci_rootport_x1_downgraded.txt",
       .begin = "-------- (2)",
       .end = "-------- (3)",
       .must = {{"link-below-capability", verdict::limit, "no fault"}}},
      {.name = "d08",
       .file = "d08_mi100_two_hives_expected_vs_measured.txt",
       .gpus = 4,
       .must = {{"measured-rates", verdict::normal, "70 of 92 GB/s"},
                {"measured-rates", verdict::normal, "no copy reaches them"},
                {"measured-rates", verdict::limit, "56 % of the 50.0"},
                {"hives", verdict::normal, "xGMI"}}},
      {.name = "d09",
       .file = "d09_mi210_8gpu_rbt_numa_masked.txt",
       .gpus = 8,
       .must = {{"xnack", verdict::unknown, "can use XNACK"}},
       .must_not = {"times less"}},
      {.name = "d11",
       .file = "d11_sdma_engine_choice_mi300_d2h.txt",
       .must = {{"logged-copies", verdict::fault, "copy engine 2"},
                {"logged-copies", verdict::fault, "code 4097"},
                {"xnack", verdict::normal, "XNACK is off in the program"}},
       .at_most = verdict::fault},
      {.name = "e03",
       .file = "e03_showtopo_8gpu_two_hives_xgmi_pcie.txt",
       .gpus = 8,
       .must = {{"hives", verdict::limit, "GPUs 0-3 | GPUs 4-7"},
                {"link-weights", verdict::normal, "hops are not physical steps"},
                {"gpu-numa-order", verdict::normal, "GPUs 4-7 on node 1"}}},
      {.name = "e05",
       .file = "e05_showtopo_4gpu_mi300a_each_numa.txt",
       .gpus = 4,
       .must = {{"hives", verdict::normal, "xGMI joins all 4 GPUs"},
                {"gpu-numa-order", verdict::normal, "GPU 3 on node 3"}},
       .at_most = verdict::unknown},
      {.name = "e06",
       .file = "e06_showtopo_4gpu_oldformat_site_docs.txt",
       .gpus = 4,
       .must = {{"hives", verdict::normal, "xGMI joins all 4 GPUs"},
                {"gpu-numa-order", verdict::normal, "GPU 3 on node 3"}},
       .at_most = verdict::unknown},
      {.name = "e09",
       .file = "e09_mi100_bridge_collapsed_whitespace.txt",
       .gpus = 2,
       .must = {{"hives", verdict::normal, "as is usual without a bridge"}},
       .at_most = verdict::unknown},
      {.name = "e10",
       .file = "e10_showtoponuma_8gpu.txt",
       .gpus = 8,
       .must = {{"gpu-numa-order", verdict::normal, "GPUs 0-3 on node 0, GPUs 4-7 on node 1"}},
       .at_most = verdict::unknown},
      {.name = "f01",
       .file = "f01_rocminfo_docs_stray_backslashes.txt",
       .gpus = 1,
       .must = {{"xnack", verdict::normal, "XNACK is off on GPU 0"}},
       .must_not = {"\\"},
       .at_most = verdict::unknown},
      {.name = "f02",
       .file = "f02_rocminfo_raven2_apu_xnack_yes.txt",
       .gpus = 1,
       .must = {{"xnack", verdict::normal, "it says nothing about a discrete GPU"}},
       .must_not = {"managed pages migrate"},
       .at_most = verdict::unknown},
      {.name = "h01_vm",
       .file = "h01_nvidia_smi_topo_small_fixtures.txt",
       .begin = "-------- (1)",
       .end = "-------- (2)",
       .gpus = 2,
       .must = {{"hives", verdict::normal, "NVLink joins all 2 GPUs"}},
       .at_most = verdict::unknown},
      {.name = "h01_pairs",
       .file = "h01_nvidia_smi_topo_small_fixtures.txt",
       .begin = "-------- (2)",
       .end = "-------- (3)",
       .gpus = 4,
       .must = {{"hives", verdict::limit, "2 groups of GPUs"}}},
      {.name = "h01_nps4",
       .file = "h01_nvidia_smi_topo_small_fixtures.txt",
       .begin = "-------- (3)",
       .end = "-------- (4)",
       .gpus = 8,
       .must = {{"gpu-numa-order", verdict::limit, "not NUMA order"}}},
      {.name = "h01_dgx2",
       .file = "h01_nvidia_smi_topo_small_fixtures.txt",
       .begin = "-------- (4)",
       .gpus = 16,
       .must = {{"hives", verdict::normal, "NVLink joins all 16 GPUs"}},
       .at_most = verdict::unknown},
      {.name = "h01_all_in_one",
       .file = "h01_nvidia_smi_topo_small_fixtures.txt",
       .gpus = 16,
       .must = {{"contradictory-input", verdict::unknown, "several machines"}}},
      {.name = "j01",
       .file = "j01_kfd_mi210_8gpu_two_hives.txt",
       .gpus = 8,
       .must = {{"hives", verdict::limit, "GPUs 0-3 | GPUs 4-7"},
                {"xnack", verdict::unknown, "can use XNACK with HSA_XNACK=1"},
                {"link-weights", verdict::normal, "weights count cost, not speed"}},
       .must_not = {"64.0 GB/s"}},
      {.name = "j02",
       .file = "j02_kfd_oldkernel_2gpu.txt",
       .gpus = 2,
       .must_not = {"0 GB/s"},
       .at_most = verdict::unknown},
      {.name = "j05",
       .file = "j05_rccl_topo_3p_pcie.xml.txt",
       .gpus = 3,
       .must = {{"gpu-numa-order", verdict::normal, "GPU 0 on node 0, GPUs 1-2 on node 1"}},
       .at_most = verdict::unknown},
      {.name = "j06",
       .file = "j06_rccl_topo_4p3l.xml.txt",
       .gpus = 4,
       .must = {{"hives", verdict::normal, "xGMI joins all 4 GPUs"},
                {"xnack", verdict::limit, "amdgpu.noretry=0"}}},
      {.name = "j08",
       .file = "j08_rccl_topo_8p_90a.xml.txt",
       .gpus = 8,
       .must = {{"hives", verdict::normal, "xGMI joins all 8 GPUs"},
                {"process-numa", verdict::normal, "one NUMA node"}},
       .at_most = verdict::unknown},
      {.name = "j10",
       .file = "j10_rccl_topo_8p_940vm.xml.txt",
       .gpus = 8,
       .must = {{"hives", verdict::normal, "xGMI joins all 8 GPUs"},
                {"gpu-numa-order", verdict::normal, "GPUs 4-7 on node 1"}},
       .at_most = verdict::unknown},
      {.name = "j13",
       .file = "j13_lumi_lstopo_binding.txt",
       .gpus = 8,
       .must = {{"visible-devices", verdict::normal, "not GPU 0 of the machine"}},
       .must_not = {"no variable of the environment steers"},
       .at_most = verdict::unknown},
  };
  return all;
}

std::string part_of(const std::filesystem::path& file, const doctor_case& one) {
  auto text = topology::test::content_of(file);
  text.erase(0, text.find("======== RAW TEXT"));
  text.erase(0, text.find('\n') + 1);
  if (!one.begin.empty()) {
    text.erase(0, text.find(one.begin));
  }
  if (!one.end.empty()) {
    text.erase(std::min(text.find(one.end), text.size()));
  }
  return text;
}

bool says(const diagnose::checkup& found, const said& wanted) {
  return std::ranges::any_of(found.results, [&](const diagnose::check_result& one) {
    return one.check == wanted.check && one.verdict == wanted.verdict &&
           one.headline.find(wanted.phrase) != std::string::npos;
  });
}

// How the report ranks them: `unknown` is no fault and no limit.
class SharedCase : public testing::TestWithParam<doctor_case> {};

TEST_P(SharedCase, IsConcludedAsItsHeadSays) {
  const auto& one = GetParam();
  const auto file = shared_case("cases/" + std::string(one.file));
  BERTH_REQUIRE_SHARED(file)
  report::doctor_report shown;
  shown.seen = topology::test::read_text(part_of(file, one));
  shown.found = diagnose::check_machine(shown.seen);
  const auto text = report::to_text(shown, report::colour::off);
  EXPECT_EQ(shown.seen.machine.gpus.size(), one.gpus);
  EXPECT_LE(shown.found.worst, one.at_most) << text;
  for (const auto& wanted : one.must) {
    EXPECT_TRUE(says(shown.found, wanted))
        << wanted.check << ": " << to_string(wanted.verdict) << ": " << wanted.phrase << "\n"
        << text;
  }
  for (const auto& forbidden : one.must_not) {
    for (const auto& result : shown.found.results) {
      EXPECT_THAT(result.headline, testing::Not(testing::HasSubstr(std::string(forbidden))));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Doctor, SharedCase, testing::ValuesIn(cases()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace berth::test
