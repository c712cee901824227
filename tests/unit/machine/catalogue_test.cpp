// SPDX-License-Identifier: Apache-2.0
// The data that is compiled in: every file parses, every figure says where it comes from, and
// devices are found under the names that tools print.
#include "machine/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::machine {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::set<std::string> names_of_catalogue() {
  std::set<std::string> names;
  for (const auto& one : catalogue()) {
    names.insert(one.name);
  }
  return names;
}

TEST(catalogue, has_every_file_under_its_own_name) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_MODELS_DIRECTORY)) {
    if (entry.path().extension() == ".json") {
      files.insert(entry.path().stem().string());
    }
  }
  EXPECT_EQ(names_of_catalogue(), files);
}

TEST(catalogue, has_the_models_that_simulation_promises) {
  const auto names = names_of_catalogue();
  for (const auto* const name : {"mi100", "mi210", "mi250x", "mi250x-node", "mi300x", "mi300a",
                                 "h200", "h100", "a100", "v100", "rx6800xt", "rx7900xtx"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST(catalogue, files_read_from_disk_equal_the_embedded_ones) {
  for (const auto& one : catalogue()) {
    const auto file = std::filesystem::path(BERTH_MODELS_DIRECTORY) / (one.name + ".json");
    const auto read = try_load_model(file);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->name, one.name);
    EXPECT_EQ(read->hardware.gpus.size(), one.hardware.gpus.size());
    EXPECT_EQ(read->profile.paths().size(), one.profile.paths().size());
  }
}

// Time never falls with size, and the rate never leaves what hardware can do.
void expect_plausible(const cost& time, const std::string& what) {
  double before = 0;
  for (bytes_t size = 0; size <= 4 * gib; size = size == 0 ? 1 : size * 2) {
    const double now = time.nanoseconds(size);
    EXPECT_GE(now, before) << what << " at " << size;
    before = now;
  }
  EXPECT_GT(before, 0) << what;
}

TEST(catalogue, every_path_has_an_origin_and_a_plausible_cost) {
  for (const auto& one : catalogue()) {
    for (const auto& row : one.profile.paths()) {
      const auto what = one.name + ": " + to_string(row.where);
      EXPECT_NE(row.known, provenance::unknown) << what;
      EXPECT_FALSE(row.source.empty()) << what;
      expect_plausible(row.device_time, what);
      if (row.call_overhead_ns) {
        EXPECT_NE(row.call_overhead_ns->known, provenance::unknown) << what;
        EXPECT_FALSE(row.call_overhead_ns->source.empty()) << what;
      }
    }
  }
}

TEST(catalogue, every_operation_and_quantity_has_an_origin) {
  for (const auto& one : catalogue()) {
    for (const auto& row : one.profile.operations()) {
      const auto what = one.name + ": " + std::string(to_string(row.what));
      EXPECT_NE(row.known, provenance::unknown) << what;
      EXPECT_FALSE(row.source.empty()) << what;
      expect_plausible(row.time, what);
    }
    for (const auto& row : one.profile.quantities()) {
      const auto what = one.name + ": " + std::string(to_string(row.what));
      EXPECT_NE(row.number.known, provenance::unknown) << what;
      EXPECT_FALSE(row.number.source.empty()) << what;
      EXPECT_GT(row.number.value, 0) << what;
    }
  }
}

TEST(catalogue, no_host_path_is_faster_than_its_link) {
  for (const auto& one : catalogue()) {
    const auto link = one.profile.find(quantity::host_link_gb_per_s);
    for (const auto& row : one.profile.paths()) {
      const bool crosses =
          row.where.way == direction::host_to_device || row.where.way == direction::device_to_host;
      if (link && crosses) {
        EXPECT_LT(row.device_time.large_gb_per_s(), link->value)
            << one.name << ": " << to_string(row.where);
      }
    }
    const auto both = one.profile.find(quantity::host_bidirectional_gb_per_s);
    if (link && both) {
      EXPECT_LT(both->value, 2 * link->value) << one.name;
    }
  }
}

TEST(catalogue, no_copy_inside_a_device_is_faster_than_its_memory) {
  for (const auto& one : catalogue()) {
    const auto memory = one.profile.find(quantity::memory_gb_per_s);
    for (const auto& row : one.profile.paths()) {
      if (memory && row.where.way == direction::device_to_device) {
        EXPECT_LT(2 * row.device_time.large_gb_per_s(), memory->value) << one.name;
      }
    }
  }
}

TEST(catalogue, every_gpu_says_who_made_it_and_can_copy_both_ways) {
  for (const auto& one : catalogue()) {
    for (const auto& device : one.hardware.gpus) {
      EXPECT_NE(device.made_by, vendor::unknown) << one.name;
      EXPECT_FALSE(device.title.empty()) << one.name;
      EXPECT_FALSE(device.isa.empty()) << one.name;
    }
    for (const auto way : {direction::host_to_device, direction::device_to_host}) {
      EXPECT_TRUE(one.profile.lookup({.way = way, .host = memory_kind::pinned, .by = engine::dma}))
          << one.name;
    }
  }
}

TEST(catalogue, radeon_and_nvidia_have_no_xnack_and_mi200_has_it_by_process) {
  EXPECT_EQ(find_by_name("rx7900xtx")->hardware.gpus.front().xnack_can, xnack_ability::none);
  EXPECT_EQ(find_by_name("mi210")->hardware.gpus.front().xnack_can, xnack_ability::per_process);
  EXPECT_EQ(find_by_name("mi100")->hardware.gpus.front().xnack_can, xnack_ability::boot_parameter);
  EXPECT_EQ(find_by_name("h200")->hardware.gpus.front().xnack, setting_state::inapplicable);
}

TEST(catalogue, nodes_have_gpus_links_and_numa_nodes_that_exist) {
  for (const auto& one : catalogue()) {
    if (one.kind != model_kind::node) {
      continue;
    }
    EXPECT_GT(one.hardware.gpus.size(), 1U) << one.name;
    EXPECT_FALSE(one.hardware.links.empty()) << one.name;
    for (std::size_t index = 0; index < one.hardware.gpus.size(); ++index) {
      const auto& device = one.hardware.gpus[index];
      EXPECT_EQ(device.index, index) << one.name;
      ASSERT_TRUE(device.numa_node) << one.name;
      EXPECT_TRUE(std::any_of(one.hardware.numa_nodes.begin(), one.hardware.numa_nodes.end(),
                              [&](const numa_node& node) { return node.id == device.numa_node; }))
          << one.name;
    }
  }
  EXPECT_EQ(find_by_name("mi300x-node")->hardware.links.size(), 28U);
  EXPECT_EQ(find_by_name("mi250x-node")->hardware.gpus.front().isa, "gfx90a") << "inherited";
}

TEST(catalogue, small_bar_is_smaller_than_the_memory) {
  const auto& device = find_by_name("rx6800xt-small-bar")->hardware.gpus.front();
  EXPECT_EQ(device.bar, 256 * mib);
  EXPECT_EQ(device.memory, 16 * gib);
}

TEST(find_by_name, ignores_case_and_knows_nothing_else) {
  ASSERT_NE(find_by_name("MI250X"), nullptr);
  EXPECT_EQ(find_by_name(" h200 ")->name, "h200");
  EXPECT_EQ(find_by_name("h2000"), nullptr);
  EXPECT_EQ(find_by_name(""), nullptr);
}

struct device_name {
  const char* printed;
  const char* model;  // empty: none
};

class find_by_device_name_test : public testing::TestWithParam<device_name> {};

TEST_P(find_by_device_name_test, finds_the_model) {
  const auto* const found = find_by_device_name(GetParam().printed);
  EXPECT_EQ(found != nullptr ? found->name : "", GetParam().model) << GetParam().printed;
}

INSTANTIATE_TEST_SUITE_P(
    names, find_by_device_name_test,
    testing::Values(
        device_name{"NVIDIA H200", "h200"}, device_name{"NVIDIA H200 NVL", "h200"},
        device_name{"NVIDIA H100 80GB HBM3", "h100"}, device_name{"NVIDIA H100 PCIe", "h100"},
        device_name{"NVIDIA GH200 480GB", "gh200"}, device_name{"NVIDIA A100-SXM4-80GB", "a100"},
        device_name{"NVIDIA A100-PCIE-40GB", "a100"}, device_name{"A100-SXM4-40GB", "a100"},
        device_name{"Tesla V100-SXM2-32GB", "v100"}, device_name{"Tesla P100-PCIE-16GB", "p100"},
        device_name{"NVIDIA GeForce RTX 4090", "rtx4090"},
        device_name{"GeForce RTX 3090", "rtx3090"}, device_name{"AMD Instinct MI100", "mi100"},
        device_name{"AMD Instinct MI210", "mi210"}, device_name{"AMD Instinct MI250X", "mi250x"},
        device_name{"AMD Instinct MI250X / MI250", "mi250x"},
        device_name{"AMD INSTINCT MI250 (MCM) OAM AC MBA", "mi250x"},
        device_name{"Aldebaran/MI200 [Instinct MI250X/MI250]", "mi250x"},
        device_name{"AMD Instinct MI300X", "mi300x"}, device_name{"AMD Instinct MI300A", "mi300a"},
        device_name{"gfx90a", "mi250x"}, device_name{"gfx90a:sramecc+:xnack-", "mi250x"},
        device_name{"amdgcn-amd-amdhsa--gfx908:sramecc+:xnack-", "mi100"},
        device_name{"gfx942", "mi300x"}, device_name{"AMD Radeon RX 7900 XTX", "rx7900xtx"},
        device_name{"Radeon RX 7900 XTX", "rx7900xtx"},
        device_name{"AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "strix-halo"},
        // Not these: another chip, another link, or no name at all.
        device_name{"AMD Radeon RX 7900 XT", ""}, device_name{"NVIDIA H20", ""},
        device_name{"NVIDIA A10", ""}, device_name{"NVIDIA GeForce RTX 4090 Laptop GPU", ""},
        device_name{"NVIDIA A100-SXM4-80GB MIG 1g.10gb", ""},
        device_name{"GeForce RTX 2060 with Max-Q Design", ""},
        device_name{"AMD Radeon Graphics", ""}, device_name{"NVIDIA", ""}, device_name{"", ""},
        device_name{"AMD EPYC 9655 96-Core Processor", ""}));

TEST(close_names, suggests_what_was_meant) {
  EXPECT_THAT(close_names("mi250"), Contains("mi250x"));
  EXPECT_THAT(close_names("h20"), Contains("h200"));
  EXPECT_THAT(close_names("mi30x"), Contains("mi300x"));
  EXPECT_LE(close_names("mi").size(), 3U);
  EXPECT_TRUE(close_names("a completely different thing").empty());
  EXPECT_TRUE(close_names("").empty());
  EXPECT_TRUE(close_names(std::string(1'000'000, 'm')).empty());
}

TEST(try_get_model, names_what_is_close_or_all_there_is) {
  EXPECT_EQ(try_get_model("h200")->name, "h200");
  const auto slip = try_get_model("mi300");
  ASSERT_FALSE(slip);
  EXPECT_EQ(slip.error().code(), errc::usage);
  EXPECT_THAT(slip.error().message(), HasSubstr("'mi300'"));
  EXPECT_THAT(slip.error().hint(), HasSubstr("mi300x"));
  EXPECT_THAT(try_get_model("\x1b[31m").error().hint(), HasSubstr("known: a100"));
  EXPECT_THAT(try_get_model("\x1b[31m").error().message(), HasSubstr("\\x1b"));
}

TEST(nominal_profile, claims_nothing_as_measured_here) {
  for (const auto& one : catalogue()) {
    const auto profile = nominal_profile(one);
    EXPECT_EQ(profile.name(), one.name);
    for (const auto& row : profile.paths()) {
      EXPECT_NE(row.known, provenance::measured) << one.name;
      if (row.call_overhead_ns) {
        EXPECT_NE(row.call_overhead_ns->known, provenance::measured) << one.name;
      }
    }
    for (const auto& row : profile.operations()) {
      EXPECT_NE(row.known, provenance::measured) << one.name;
    }
    for (const auto& row : profile.quantities()) {
      EXPECT_NE(row.number.known, provenance::measured) << one.name;
    }
  }
}

TEST(generic_profile, follows_generation_and_width) {
  const path pinned{
      .way = direction::host_to_device, .host = memory_kind::pinned, .by = engine::dma};
  const auto rate = [&](std::uint32_t generation, std::uint32_t width) {
    return generic_profile(generation, width)->lookup(pinned)->device_time.large_gb_per_s();
  };
  EXPECT_NEAR(rate(3, 16), 13, 1);
  EXPECT_NEAR(rate(4, 16), 26.5, 1.5);
  EXPECT_NEAR(rate(5, 16), 56, 1);
  EXPECT_DOUBLE_EQ(rate(4, 8), rate(4, 16) / 2);
  EXPECT_EQ(generic_profile(4, 8)->name(), "pcie4-x8");
  EXPECT_EQ(generic_profile(4, 8)->lookup(pinned)->known, provenance::modelled);
  EXPECT_EQ(generic_profile(4, 16)->lookup(pinned)->known, provenance::nominal);
}

TEST(generic_profile, a_narrow_link_limits_only_what_it_carries) {
  const path pageable{
      .way = direction::host_to_device, .host = memory_kind::pageable, .by = engine::dma};
  const auto rate = [&](std::uint32_t width) {
    return generic_profile(4, width)->lookup(pageable)->device_time.large_gb_per_s();
  };
  EXPECT_DOUBLE_EQ(rate(8), rate(16)) << "the CPU is the limit, not the link";
  EXPECT_LT(rate(1), rate(16) / 4);
}

TEST(generic_profile, is_nothing_for_links_without_a_reference) {
  EXPECT_FALSE(generic_profile(2, 16));
  EXPECT_FALSE(generic_profile(6, 16));
  EXPECT_FALSE(generic_profile(4, 0));
  EXPECT_FALSE(generic_profile(4, 3));
  EXPECT_FALSE(generic_profile(0, 0));
}

}  // namespace
}  // namespace berth::machine
