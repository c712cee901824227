// SPDX-License-Identifier: Apache-2.0
// Setting a simulated runtime up, and what it says of itself.
#include <filesystem>
#include <fstream>

#include "machine/catalogue.hpp"
#include "sim_support.hpp"

namespace berth::test {
namespace {

using runtime::capability;
using runtime::sim::options;

TEST(sim_options, are_read_from_text) {
  const auto how =
      options::parse("mi250x,xnack=on,clock=wall,devices=2,seed=7,schedule=random,slowdown=50")
          .value();
  EXPECT_EQ(how.model, "mi250x");
  EXPECT_EQ(how.pages_migrate, runtime::sim::migration::on);
  EXPECT_EQ(how.clock, runtime::sim::clock_kind::wall);
  EXPECT_EQ(how.devices, 2U);
  EXPECT_EQ(how.seed, 7U);
  EXPECT_EQ(how.order, runtime::sim::schedule::random);
  EXPECT_EQ(how.wall_slowdown, 50);
  EXPECT_EQ(options::parse("h200").value().model, "h200");
  EXPECT_EQ(options::parse("").value().model, "");
}

TEST(sim_options, that_make_no_sense_are_refused_with_those_that_do) {
  for (const auto* const text : {"h200,", "h200,fast", "h200,seed=x", "h200,devices=0",
                                 "h200,schedule=never", "h200,slowdown=-1", "h200,seed=1,,"}) {
    const auto refused = options::parse(text);
    ASSERT_FALSE(refused) << text;
    expect_error(refused.error(), errc::usage);
    EXPECT_NE(refused.error().hint().find("schedule="), std::string::npos);
  }
}

TEST(sim_driver_entry, an_unknown_model_names_those_that_are_known) {
  const auto refused = runtime::make_sim_driver("mi999");
  ASSERT_FALSE(refused);
  expect_error(refused.error(), errc::usage);
  EXPECT_NE(refused.error().to_string().find("mi300x"), std::string::npos);
}

TEST(sim_driver_entry, a_bad_machine_file_is_told_with_its_place) {
  const auto missing = runtime::make_sim_driver("/no/such/machine.json");
  ASSERT_FALSE(missing);
  expect_error(missing.error(), errc::file_unreadable);
  const auto file = std::filesystem::path(testing::TempDir()) / "broken.json";
  std::ofstream(file) << "{\n  \"schema\": 3\n}";
  const auto broken = runtime::make_sim_driver(file.string());
  ASSERT_FALSE(broken);
  expect_error(broken.error(), errc::input_malformed);
  EXPECT_NE(broken.error().where().find("broken.json"), std::string::npos);
}

TEST(sim_driver_entry, every_model_with_a_gpu_can_be_opened_and_used) {
  for (const auto& model : machine::catalogue()) {
    if (model.hardware.gpus.empty()) {
      expect_error(runtime::make_sim_driver(model.name).error(), errc::usage);
      continue;
    }
    const auto gpu = open_sim(model.name + ",pages=resident");
    auto source = bytes::pattern(mib, 1);
    bytes back(mib);
    auto* const device = gpu->allocate_device(0, mib).value();
    gpu->copy(device, source.data(), mib).value();
    gpu->copy(back.data(), device, mib).value();
    EXPECT_EQ(back.mismatches(1), 0U) << model.name;
    EXPECT_GT(gpu->now(), 0ns);
    gpu->free_device(device).value();
  }
}

TEST(sim_driver_entry, says_what_it_is) {
  const auto amd = open_sim("mi250x");
  EXPECT_EQ(amd->info().kind, runtime::runtime_kind::sim);
  EXPECT_EQ(amd->info().library, "sim:mi250x");
  EXPECT_EQ(amd->info().timing, provenance::modelled);
  EXPECT_TRUE(amd->info().capabilities.has(capability::host_coherence));
  EXPECT_EQ(amd->devices()[0].architecture, "gfx90a");
  EXPECT_NE(amd->devices()[0].name.find("simulated"), std::string::npos);
  const auto nvidia = open_sim("h200,devices=3");
  EXPECT_EQ(nvidia->devices().size(), 3U);
  EXPECT_FALSE(nvidia->info().capabilities.has(capability::host_coherence));
  EXPECT_FALSE(nvidia->info().capabilities.has(capability::tells_registered));
}

TEST(sim_driver_entry, a_capability_that_is_switched_off_is_refused) {
  options how{.model = "mi250x"};
  how.without.add(capability::managed);
  how.without.add(capability::kernels);
  const auto gpu = open_sim(how);
  expect_error(gpu->allocate_managed(0, 64).error(), errc::gpu_not_supported);
  expect_error(gpu->free_managed(nullptr).error(), errc::gpu_not_supported);
  expect_error(gpu->prepare_kernels(0).error(), errc::gpu_not_supported);
  EXPECT_FALSE(*gpu->devices()[0].managed_memory);
}

}  // namespace
}  // namespace berth::test
