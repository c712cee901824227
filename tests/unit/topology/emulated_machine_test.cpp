// SPDX-License-Identifier: Apache-2.0
// The files of each machine that can be emulated, read back: they must give the model they were
// made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/topology/overlay.hpp"
#include "machine/catalogue.hpp"
#include "topology/live.hpp"

namespace berth::topology {
namespace {

using machine::setting_state;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> emulated_models() {
  std::vector<std::string> names;
  for (const auto& model : machine::catalogue()) {
    if (emulator::plan_machine(model, std::nullopt)) {
      names.push_back(model.name);
    }
  }
  return names;
}

class EmulatedMachine : public testing::TestWithParam<std::string> {};

void expect_same(const machine::gpu& seen, const machine::gpu& model) {
  EXPECT_EQ(seen.made_by, machine::vendor::amd);
  EXPECT_EQ(seen.isa, model.isa);
  EXPECT_EQ(seen.pci_device_id, model.pci_device_id);
  EXPECT_EQ(seen.compute_units, model.compute_units);
  // The emulator gives one of the host's own links, which has no PCIe, the usual values.
  EXPECT_EQ(seen.host_link.generation, model.host_link.generation.value_or(4));
  EXPECT_EQ(seen.host_link.width, model.host_link.width.value_or(16));
  EXPECT_EQ(seen.hive, model.hive);
  EXPECT_EQ(seen.xnack_can, model.xnack_can);
  ASSERT_TRUE(seen.memory);
  EXPECT_NEAR(static_cast<double>(*seen.memory), static_cast<double>(*model.memory), 17.0 * mib);
  if (model.bar && *model.bar < *model.memory) {
    EXPECT_EQ(seen.bar, model.bar);
  } else {
    EXPECT_EQ(seen.bar, seen.memory);
  }
}

TEST_P(EmulatedMachine, GivesBackItsModel) {
  const auto& model = *machine::find_by_name(GetParam());
  const auto plan = emulator::plan_machine(model, std::nullopt).value();
  const auto folder = emulator::overlay_folder::create().value();
  emulator::write_overlay(folder, plan, emulator::spec_of(plan)).value();
  const auto seen = read_machine({.root = folder.root()});
  EXPECT_THAT(seen.contradictions, IsEmpty());
  for (const auto& problem : seen.problems) {
    ADD_FAILURE() << problem.source << ": " << problem.what;
  }
  EXPECT_THAT(seen.machine.numa_nodes, SizeIs(plan.nodes.size()));
  ASSERT_THAT(seen.machine.gpus, SizeIs(plan.gpus.size()));
  for (std::size_t index = 0; index < plan.gpus.size(); ++index) {
    SCOPED_TRACE(index);
    expect_same(seen.machine.gpus[index], plan.gpus[index].model);
    EXPECT_EQ(seen.machine.gpus[index].numa_node, plan.gpus[index].numa);
    EXPECT_EQ(seen.machine.gpus[index].pci_address, plan.gpus[index].pci_address());
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EmulatedMachine, testing::ValuesIn(emulated_models()),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace berth::topology
