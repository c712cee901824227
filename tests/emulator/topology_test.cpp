// SPDX-License-Identifier: Apache-2.0
// What rocminfo and rocm-smi show of each machine is what the model says.
#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/machines.hpp"
#include "emulator/run_command.hpp"

namespace berth::test {
namespace {

using machine::link_kind;
using machine::place_kind;

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// An agent of rocminfo: its lines in order, "Name: gfx90a".
using agent = std::vector<std::string>;

std::vector<agent> gpu_agents_of(const std::string& text) {
  std::vector<agent> agents;
  agent current;
  const auto finish = [&] {
    if (std::find(current.begin(), current.end(), "Device Type: GPU") != current.end()) {
      agents.push_back(current);
    }
    current.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = trimmed(line);
    if (line.starts_with("Agent ")) {
      finish();
      continue;
    }
    const auto colon = line.find(':');
    if (colon != std::string::npos && !line.starts_with("*")) {
      current.push_back(line.substr(0, colon) + ": " + trimmed(line.substr(colon + 1)));
    }
  }
  finish();
  return agents;
}

std::string first_value(const agent& of, const std::string& name) {
  for (const auto& line : of) {
    if (line.starts_with(name + ": ")) {
      return line.substr(name.size() + 2);
    }
  }
  return "";
}

std::uint64_t leading_number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

// The sections of rocm-smi --showtopo: title to rows of words behind the row's label.
using matrix = std::vector<std::vector<std::string>>;

std::map<std::string, matrix> matrices_of(const std::string& text) {
  std::map<std::string, matrix> found;
  std::string title;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("==")) {
      title = line.substr(line.find_first_not_of("= "));
      title = title.substr(0, title.find_last_not_of("= ") + 1);
    } else if (line.starts_with("GPU") && !line.starts_with("GPU[")) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      auto& row = found[title].emplace_back();
      while (words >> word) {
        row.push_back(word);
      }
    }
  }
  return found;
}

std::vector<std::uint32_t> numa_nodes_of(const std::string& text, const std::string& what) {
  std::vector<std::uint32_t> nodes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("(Topology) " + what + ": ");
    if (at != std::string::npos) {
      nodes.push_back(
          static_cast<std::uint32_t>(leading_number(line.substr(at + what.size() + 13))));
    }
  }
  return nodes;
}

const machine::link* link_between(const machine::description& hardware, std::uint32_t a,
                                  std::uint32_t b) {
  const machine::place from{place_kind::gpu, a};
  const machine::place to{place_kind::gpu, b};
  for (const auto& link : hardware.links) {
    if ((link.from == from && link.to == to) || (link.from == to && link.to == from)) {
      return &link;
    }
  }
  return nullptr;
}

struct expected_link {
  std::string type;
  std::string hops;
  std::optional<std::uint32_t> weight;  // nothing where the model does not say
};

// By the rules of rocm_smi_lib: an xGMI link counts itself, all else is the way over the host.
expected_link expected_between(const machine::description& hardware, const machine::gpu& a,
                               const machine::gpu& b, std::uint32_t from, std::uint32_t to) {
  const auto* const known = link_between(hardware, from, to);
  const bool xgmi = known != nullptr ? known->kind == link_kind::xgmi : a.hive && a.hive == b.hive;
  if (xgmi) {
    return {"XGMI", "1", known != nullptr ? known->weight : std::nullopt};
  }
  const bool same_node = a.numa_node.value_or(0) == b.numa_node.value_or(0);
  std::optional<std::uint32_t> weight = same_node ? 40 : 72;
  if (known != nullptr && known->weight) {
    weight = known->weight;
  }
  return {"PCIE", same_node ? "2" : "3", weight};
}

class Topology : public testing::TestWithParam<emulated> {
protected:
  std::vector<machine::gpu> gpus() const {
    const auto model = GetParam().model();
    auto gpus = model.hardware.gpus;
    gpus.resize(GetParam().gpus.value_or(static_cast<std::uint32_t>(gpus.size())), gpus.front());
    return gpus;
  }
};

// Compares with the file, or writes it where BERTH_UPDATE_GOLDEN is set.
void compare_with_golden(const std::string& name, const std::string& text) {
  const auto path = fmt::format("{}/tests/emulator/golden/{}.txt", BERTH_SOURCE_DIR, name);
  if (std::getenv("BERTH_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

TEST_P(Topology, RocminfoShowsTheModel) {
  BERTH_REQUIRE_ROCM();
  const auto end = emulate(GetParam().options(), {"rocminfo"});
  if (end.status == 2 && end.err.find("cannot be started") != std::string::npos) {
    GTEST_SKIP() << "rocminfo is absent";
  }
  ASSERT_EQ(end.status, 0) << end.err;
  const auto agents = gpu_agents_of(end.out);
  const auto wanted = gpus();
  ASSERT_EQ(agents.size(), wanted.size());
  std::string text;
  for (std::size_t index = 0; index < agents.size(); ++index) {
    const auto& shown = agents[index];
    const auto& gpu = wanted[index];
    EXPECT_EQ(first_value(shown, "Name"), gpu.isa);
    EXPECT_EQ(first_value(shown, "Marketing Name"), gpu.title.substr(0, gpu.title.find(" (")));
    EXPECT_EQ(leading_number(first_value(shown, "Compute Unit")), gpu.compute_units);
    EXPECT_EQ(leading_number(first_value(shown, "Size")) * kib, *gpu.memory - 16 * mib);
    EXPECT_EQ(leading_number(first_value(shown, "Chip ID")), gpu.pci_device_id);
    const auto isa = std::find_if(shown.begin(), shown.end(), [](const auto& line) {
      return line.starts_with("Name: amdgcn-amd-amdhsa--");
    });
    ASSERT_NE(isa, shown.end());
    EXPECT_THAT(*isa, testing::HasSubstr(gpu.isa));
    EXPECT_EQ(isa->ends_with(":xnack-"), gpu.xnack_can != machine::xnack_ability::none) << *isa;
    for (const auto& line : shown) {
      text += line + "\n";
    }
    text += "\n";
  }
  compare_with_golden(std::string(GetParam().name) + ".rocminfo", text);
}

TEST_P(Topology, RocmSmiShowsTheModel) {
  BERTH_REQUIRE_ROCM();
  // A script: what its interpreter keeps to the end is no leak of ours.
  const auto end = emulate(GetParam().options(),
                           {"env", sanitizer_options("detect_leaks=0"), "rocm-smi", "--showtopo"});
  if (end.status == 127) {
    GTEST_SKIP() << "rocm-smi is absent";
  }
  ASSERT_EQ(end.status, 0) << end.err;
  const auto model = GetParam().model();
  const auto wanted = gpus();
  auto shown = matrices_of(end.out);
  const auto& weights = shown["Weight between two GPUs"];
  const auto& hops = shown["Hops between two GPUs"];
  const auto& types = shown["Link Type between two GPUs"];
  ASSERT_EQ(weights.size(), wanted.size());
  for (std::uint32_t a = 0; a < wanted.size(); ++a) {
    for (std::uint32_t b = 0; b < wanted.size(); ++b) {
      if (a == b) {
        EXPECT_EQ(weights.at(a).at(b), "0");
        continue;
      }
      const auto expected = expected_between(model.hardware, wanted[a], wanted[b], a, b);
      EXPECT_EQ(types.at(a).at(b), expected.type) << a << ' ' << b;
      EXPECT_EQ(hops.at(a).at(b), expected.hops) << a << ' ' << b;
      if (expected.weight) {
        EXPECT_EQ(weights.at(a).at(b), std::to_string(*expected.weight)) << a << ' ' << b;
      }
    }
  }
  std::vector<std::uint32_t> numa;
  for (const auto& gpu : wanted) {
    numa.push_back(gpu.numa_node.value_or(0));
  }
  EXPECT_EQ(numa_nodes_of(end.out, "Numa Node"), numa);
  EXPECT_EQ(numa_nodes_of(end.out, "Numa Affinity"), numa);
  compare_with_golden(std::string(GetParam().name) + ".showtopo", end.out);
}

INSTANTIATE_TEST_SUITE_P(Emulator, Topology, testing::ValuesIn(machines),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(TopologyVariant, XnackIsWhatTheRuntimeAsksFor) {
  BERTH_REQUIRE_ROCM();
  const auto on = emulate({}, {"env", "HSA_XNACK=1", "rocminfo"});
  EXPECT_THAT(on.out, testing::HasSubstr("gfx90a:sramecc+:xnack+"));
  // An MI100 cannot switch it for a process.
  const auto refused = emulate({"--machine", "mi100"}, {"env", "HSA_XNACK=1", "rocminfo"});
  EXPECT_THAT(refused.out, testing::HasSubstr("gfx908:sramecc+:xnack-"));
}

}  // namespace
}  // namespace berth::test
