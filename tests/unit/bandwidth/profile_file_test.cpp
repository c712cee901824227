// SPDX-License-Identifier: Apache-2.0
// A saved profile is a machine file that berth itself reads, and says what was measured.
#include "bandwidth/profile_file.hpp"

#include <gtest/gtest.h>

#include "machine/catalogue.hpp"

namespace berth::bandwidth {
namespace {

constexpr machine::path pinned_up{direction::host_to_device, memory_kind::pinned, engine::dma};
constexpr machine::path pageable_up{direction::host_to_device, memory_kind::pageable, engine::dma};
constexpr machine::path within{direction::device_to_device, memory_kind::device, engine::unknown};

machine::bandwidth_figure taken(const machine::path& where, bytes_t bytes, double ns,
                                machine::timed_by clock = machine::timed_by::device_events) {
  machine::bandwidth_figure one{.where = where, .bytes = bytes, .clock = clock};
  one.ns = statistics::summarise(std::vector<double>{ns});
  return one;
}

machine::bandwidth_results measured() {
  machine::bandwidth_results made;
  made.runtime = "cuda 13.0";
  made.library = "libcuda.so.1";
  made.known = provenance::measured;
  made.devices = {{0, "NVIDIA H200", ""}};
  made.figures = {taken(pinned_up, 16 * mib, 400'000), taken(pinned_up, mib, 30'000),
                  taken(pinned_up, 2 * mib, 29'000),  // noise
                  taken(pageable_up, 16 * mib, 2'000'000, machine::timed_by::host_clock),
                  taken(within, 16 * mib, 9'000)};
  return made;
}

machine::model read_back(const machine::bandwidth_results& of) {
  return machine::try_parse_model(to_machine_file(of, 0, "2026-12-01").value(), "saved").value();
}

TEST(ProfileFile, SaysWhatWasMeasuredAndTheModelTheRest) {
  const auto saved = read_back(measured());
  EXPECT_EQ(saved.device_names, std::vector<std::string>{"NVIDIA H200"});
  const auto large = saved.profile.expected_time(pinned_up, 16 * mib).value();
  EXPECT_EQ(large.time.count(), 400'000);
  EXPECT_EQ(large.known, provenance::measured);
  EXPECT_NE(large.source.find("2026-12-01"), std::string::npos);
  EXPECT_EQ(saved.profile.expected_call_time(pageable_up, 16 * mib).value().time.count(),
            2'000'000);
  EXPECT_EQ(saved.profile.expected_time(within, 16 * mib).value().time.count(), 9'000);
  const machine::path down{direction::device_to_host, memory_kind::pinned, engine::dma};
  const auto& model = *machine::find_by_name("h200");
  EXPECT_EQ(saved.profile.expected_time(down, 16 * mib).value().time,
            model.profile.expected_time(down, 16 * mib).value().time);
}

TEST(ProfileFile, LargerCopiesTakeNoLessTime) {
  const auto saved = read_back(measured());
  EXPECT_EQ(saved.profile.expected_time(pinned_up, mib).value().time.count(), 30'000);
  EXPECT_EQ(saved.profile.expected_time(pinned_up, 2 * mib).value().time.count(), 30'000);
}

TEST(ProfileFile, IsRefusedWithoutFiguresDeviceOrModel) {
  EXPECT_FALSE(to_machine_file(measured(), 1, "now"));
  auto nothing = measured();
  for (auto& one : nothing.figures) {
    one.ns.reset();
  }
  EXPECT_FALSE(to_machine_file(nothing, 0, "now"));
  auto unknown = measured();
  unknown.devices.front().name = "Voodoo 2";
  const auto refused = to_machine_file(unknown, 0, "now");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("no model"), std::string::npos);
}

}  // namespace
}  // namespace berth::bandwidth
