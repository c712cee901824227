// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/first_calls.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace berth::trace::recording {
namespace {

constexpr std::int64_t ms = 1'000'000;

row add_copy(trace& to, std::int64_t begin, std::int64_t duration, bytes_t bytes,
             timing time = timing::call, direction way = direction::host_to_device) {
  transfer details;
  details.bytes = bytes;
  details.direction = way;
  details.time = time;
  new_event added;
  added.kind = event_kind::copy;
  added.begin = begin;
  added.duration = duration;
  added.transfer = to.add_transfer(details);
  return to.add(added);
}

std::vector<row> add_usual(trace& to, std::int64_t from, timing time = timing::call) {
  std::vector<row> added;
  for (std::int64_t index = 0; index < 4; ++index) {
    added.push_back(add_copy(to, from + index * 10 * ms, 2 * ms, 16 * mib, time));
  }
  return added;
}

TEST(FirstCalls, LoseATimeThatTheOthersGiveNoReasonFor) {
  trace events;
  const row first = add_copy(events, 0, 500 * ms, 16 * mib);
  const auto others = add_usual(events, 1000 * ms);
  leave_out_first_calls(events);
  EXPECT_EQ(events.details(first)->time, timing::unknown);
  for (const row one : others) {
    EXPECT_EQ(events.details(one)->time, timing::call);
  }
  ASSERT_EQ(events.about.notes.size(), 1U);
  EXPECT_NE(events.about.notes[0].find("500 ms"), std::string::npos);
}

TEST(FirstCalls, AreThoseInOrderOfTime) {
  trace events;
  const auto others = add_usual(events, 1000 * ms);
  const row first = add_copy(events, 0, 500 * ms, 16 * mib);
  leave_out_first_calls(events);
  EXPECT_EQ(events.details(first)->time, timing::unknown);
  EXPECT_EQ(events.details(others[0])->time, timing::call);
}

TEST(FirstCalls, KeepATimeThatTheirBytesExplain) {
  trace events;
  const row first = add_copy(events, 0, 130 * ms, gib);
  add_usual(events, 1000 * ms);
  leave_out_first_calls(events);
  EXPECT_EQ(events.details(first)->time, timing::call);
  EXPECT_TRUE(events.about.notes.empty());
}

TEST(FirstCalls, KeepTheirTimeWhereThereIsLittleToCompareWith) {
  trace events;
  const row first = add_copy(events, 0, 500 * ms, 16 * mib);
  add_copy(events, 600 * ms, 2 * ms, 16 * mib);
  leave_out_first_calls(events);
  EXPECT_EQ(events.details(first)->time, timing::call);
}

TEST(FirstCalls, KeepWhatTheDeviceHasTimed) {
  trace events;
  const row first = add_copy(events, 0, 500 * ms, 16 * mib, timing::device);
  add_usual(events, 1000 * ms, timing::device);
  leave_out_first_calls(events);
  EXPECT_EQ(events.details(first)->time, timing::device);
}

TEST(FirstCalls, AreLookedAtByDirection) {
  trace events;
  const row up = add_copy(events, 0, 500 * ms, 16 * mib);
  add_usual(events, 1000 * ms);
  const row down =
      add_copy(events, 2000 * ms, 300 * ms, mib, timing::call, direction::device_to_host);
  for (int index = 0; index < 3; ++index) {
    add_copy(events, (2400 + index) * ms, ms / 2, mib, timing::call, direction::device_to_host);
  }
  leave_out_first_calls(events);
  EXPECT_EQ(events.details(up)->time, timing::unknown);
  EXPECT_EQ(events.details(down)->time, timing::unknown);
}

}  // namespace
}  // namespace berth::trace::recording
