// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.hpp"

#include <type_traits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using berth::direction;
using berth::memory_kind;
using berth::trace::event_kind;
using berth::trace::new_event;
using berth::trace::trace;
using berth::trace::transfer;

TEST(event_kind, tells_the_gpus_clock_from_the_hosts) {
  for (const auto kind :
       {event_kind::copy, event_kind::fill, event_kind::kernel, event_kind::migration}) {
    EXPECT_TRUE(is_device_activity(kind));
  }
  for (const auto kind :
       {event_kind::allocation, event_kind::free, event_kind::synchronisation,
        event_kind::copy_call, event_kind::launch_call, event_kind::other_call,
        event_kind::operator_range, event_kind::python_range, event_kind::user_range}) {
    EXPECT_FALSE(is_device_activity(kind));
  }
}

TEST(transfer, names_the_kind_of_its_end_on_the_host) {
  transfer details;
  details.source_kind = memory_kind::pageable;
  details.destination_kind = memory_kind::pinned;
  details.direction = direction::host_to_device;
  EXPECT_EQ(details.host_kind(), memory_kind::pageable);
  details.direction = direction::device_to_host;
  EXPECT_EQ(details.host_kind(), memory_kind::pinned);
  for (const auto without :
       {direction::device_to_device, direction::peer_to_peer, direction::unknown}) {
    details.direction = without;
    EXPECT_EQ(details.host_kind(), memory_kind::unknown);
  }
}

// A copy's table of names would point into the names of the other one.
static_assert(!std::is_copy_constructible_v<trace> && !std::is_copy_assignable_v<trace>);

TEST(trace, knows_its_names_again_when_moved) {
  trace events;
  const auto id = events.intern("short");
  trace made(std::move(events));
  EXPECT_EQ(made.intern("short"), id);
  trace assigned;
  assigned = std::move(made);
  EXPECT_EQ(assigned.intern("short"), id);
  EXPECT_EQ(assigned.name_count(), 2U);
}

TEST(trace, is_empty_at_first) {
  const trace events;
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(events.size(), 0U);
  EXPECT_EQ(events.text(0), "");
}

TEST(trace, keeps_all_properties_of_an_event) {
  trace events;
  new_event added;
  added.kind = event_kind::copy;
  added.begin = 1000;
  added.duration = 234;
  added.name = events.intern("Memcpy");
  added.thread = events.intern_thread("1", "main");
  added.stream = events.intern_stream({.device = 2, .id = 7});
  added.correlation = 99;
  transfer details;
  details.bytes = 4096;
  details.direction = direction::host_to_device;
  added.transfer = events.add_transfer(details);
  added.call_site = events.intern_call_site({events.intern("a.py(1): f")});
  const auto row = events.add(added);

  EXPECT_EQ(events.kind(row), event_kind::copy);
  EXPECT_EQ(events.begin(row), 1000);
  EXPECT_EQ(events.duration(row), 234);
  EXPECT_EQ(events.end(row), 1234);
  EXPECT_EQ(events.name_text(row), "Memcpy");
  ASSERT_TRUE(events.thread_of(row).has_value());
  EXPECT_EQ(events.thread_at(*events.thread_of(row)).process, "1");
  EXPECT_EQ(events.thread_at(*events.thread_of(row)).id, "main");
  EXPECT_EQ(events.stream_of(row).device, 2U);
  EXPECT_EQ(events.stream_of(row).id, 7);
  EXPECT_EQ(events.correlation(row), 99U);
  ASSERT_NE(events.details(row), nullptr);
  EXPECT_EQ(events.details(row)->bytes, 4096U);
  EXPECT_EQ(events.details(row)->direction, direction::host_to_device);
  ASSERT_NE(events.site(row), nullptr);
  ASSERT_EQ(events.site(row)->frames.size(), 1U);
  EXPECT_EQ(events.text(events.site(row)->frames[0]), "a.py(1): f");
}

TEST(trace, has_unknown_for_all_that_an_event_lacks) {
  trace events;
  const auto row = events.add({});
  EXPECT_EQ(events.thread_of(row), std::nullopt);
  EXPECT_EQ(events.stream_of(row).device, std::nullopt);
  EXPECT_EQ(events.stream_of(row).id, std::nullopt);
  EXPECT_EQ(events.correlation(row), std::nullopt);
  EXPECT_EQ(events.details(row), nullptr);
  EXPECT_EQ(events.site(row), nullptr);
}

TEST(trace, gives_equal_things_one_id) {
  trace events;
  const auto name = events.intern("name");
  EXPECT_EQ(events.intern("name"), name);
  EXPECT_NE(events.intern("name2"), name);
  EXPECT_EQ(events.intern(""), 0U);

  const auto thread = events.intern_thread("1", "23");
  EXPECT_EQ(events.intern_thread("1", "23"), thread);
  EXPECT_NE(events.intern_thread("12", "3"), thread);
  EXPECT_EQ(events.thread_count(), 2U);

  const auto stream = events.intern_stream({.device = 0, .id = 7});
  EXPECT_EQ(events.intern_stream({.device = 0, .id = 7}), stream);
  EXPECT_NE(events.intern_stream({.device = 1, .id = 7}), stream);
  EXPECT_NE(events.intern_stream({.device = std::nullopt, .id = 7}), stream);

  const auto site = events.intern_call_site({1, 2});
  EXPECT_EQ(events.intern_call_site({1, 2}), site);
  EXPECT_NE(events.intern_call_site({2, 1}), site);
}

TEST(trace, keeps_texts_valid_while_it_grows) {
  trace events;
  const auto first = events.intern("the first");
  const auto text = events.text(first);
  for (int number = 0; number < 10'000; ++number) {
    events.intern(std::to_string(number));
  }
  EXPECT_EQ(text, "the first");
  EXPECT_EQ(events.intern("the first"), first);
  EXPECT_EQ(events.intern("9999"), events.name_count() - 1);
}

}  // namespace
