// SPDX-License-Identifier: Apache-2.0
// Traces as PyTorch wrote them. The counts were taken from the files with a JSON parser of another
// language; what the events mean is checked by the tests of the diagnosis.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/shared_cases.hpp"
#include "trace/import/import.hpp"

namespace {

using berth::direction;
using berth::memory_kind;
using berth::trace::event_kind;
using berth::trace::gpu_api;
using berth::trace::trace;

struct counts {
  std::size_t kernels;
  std::size_t copies;
  std::size_t fills;
  std::size_t calls;
  std::size_t operators;
  std::size_t user_ranges;

  friend bool operator==(const counts&, const counts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const counts& shown) {
    return out << shown.kernels << " kernels, " << shown.copies << " copies, " << shown.fills
               << " fills, " << shown.calls << " calls, " << shown.operators << " operators, "
               << shown.user_ranges << " user ranges";
  }
};

counts count(const trace& events) {
  counts found{};
  for (const auto kind : events.kinds()) {
    switch (kind) {
      case event_kind::kernel:
        ++found.kernels;
        break;
      case event_kind::copy:
        ++found.copies;
        break;
      case event_kind::fill:
        ++found.fills;
        break;
      case event_kind::operator_range:
        ++found.operators;
        break;
      case event_kind::user_range:
        ++found.user_ranges;
        break;
      default:
        ++found.calls;
        break;
    }
  }
  return found;
}

TEST(real_traces, give_all_their_events) {
  struct file {
    const char* name;
    counts expected;
  };
  for (const auto& [name, expected] : {
           file{"torch_many_small_copies", {30, 2406, 6, 7250, 9648, 0}},
           file{"torch_overlapped", {24, 6, 0, 62, 126, 0}},
           file{"torch_pageable_inference", {24, 6, 0, 44, 144, 0}},
           file{"torch_pingpong", {120, 66, 0, 320, 1014, 0}},
           file{"torch_pinned_inference", {24, 6, 0, 38, 144, 0}},
           file{"torch_train_pinned_loader", {156, 18, 30, 308, 25702, 19}},
       }) {
    const auto path = std::filesystem::path(BERTH_SOURCE_DIR) / "tests/data/traces" /
                      (std::string(name) + ".json.gz");
    const auto read = berth::trace::try_import(path.string());
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_FALSE(read->cut) << name;
    EXPECT_EQ(count(read->events), expected) << name;
    const auto& about = read->events.about;
    EXPECT_EQ(about.api, gpu_api::cuda) << name;
    EXPECT_EQ(about.api_version, "13.0") << name;
    ASSERT_EQ(about.devices.size(), 1U) << name;
    EXPECT_EQ(about.devices[0].name, "NVIDIA H200") << name;
    EXPECT_EQ(about.devices[0].memory, 150109880320U) << name;
    for (berth::trace::row row = 0; row < read->events.size(); ++row) {
      ASSERT_GE(read->events.duration(row), 0) << name;
      if (read->events.kind(row) == event_kind::copy) {
        const auto& details = *read->events.details(row);
        ASSERT_TRUE(details.bytes) << name;
        ASSERT_NE(details.direction, direction::unknown) << name;
        ASSERT_TRUE(read->events.correlation(row)) << name;
        ASSERT_EQ(read->events.stream_of(row).device, 0U) << name;
      }
    }
  }
}

TEST(real_traces, of_rocm_have_their_copies_bytes_in_the_calls) {
  const auto path = berth::test::shared_case("cases/i01_hta_mi250_kineto_trace.json");
  BERTH_REQUIRE_SHARED(path);
  const auto read = berth::trace::try_import(path.string());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_FALSE(read->cut);
  const auto& events = read->events;
  EXPECT_EQ(count(events), (counts{14, 2, 0, 21, 70, 3}));
  EXPECT_EQ(events.about.api, gpu_api::hip);
  EXPECT_EQ(events.about.devices.size(), 4U);
  std::vector<std::uint64_t> sources;
  for (berth::trace::row row = 0; row < events.size(); ++row) {
    if (events.kind(row) != event_kind::copy) {
      continue;
    }
    const auto& details = *events.details(row);
    EXPECT_EQ(details.bytes, 2560U);
    EXPECT_EQ(details.direction, direction::host_to_device);
    EXPECT_EQ(details.source_kind, memory_kind::unknown);
    EXPECT_EQ(events.stream_of(row).device, 2U);
    sources.push_back(details.source_address.value_or(0));
  }
  EXPECT_THAT(sources, testing::ElementsAre(0x55674ecd4180U, 0x55674ecd8840U));
}

}  // namespace
