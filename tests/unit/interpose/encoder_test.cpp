// SPDX-License-Identifier: Apache-2.0
// Events of every recorded call, written and read again.
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "interpose/capture/event_encoder.hpp"
#include "interpose/capture/trace_file.hpp"
#include "support/recorded_file.hpp"
#include "support/scratch.hpp"

namespace berth::interpose {
namespace {

using test::recorded_file;
using trace::recording::block_type;

std::uint64_t any_value(std::mt19937_64& random) {
  const auto value = random();
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return value % 256;
    case 2:
      return ~std::uint64_t{0} - value % 3;
    default:
      return value;
  }
}

raw_event any_event(std::mt19937_64& random, call_id call) {
  raw_event event;
  event.begin = random() >> (random() % 64);
  event.duration = random() >> (random() % 64);
  event.call = call;
  event.pages = static_cast<host_pages>(random() % 4);
  event.host_node = static_cast<std::int32_t>(random() % 4) - 1;
  event.is_fixed = random() % 2 == 0;
  event.has_content = random() % 2 == 0;
  event.content = event.has_content ? random() : 0;
  event.stack = random() % 2 == 0 ? static_cast<std::uint32_t>(random()) : 0;
  event.status = random() % 2 == 0 ? 0 : static_cast<std::int32_t>(random());
  for (auto& value : event.values) {
    value = any_value(random);
  }
  return event;
}

void expect_same(const raw_event& written, const test::recorded_event& read) {
  const auto& row = row_of(written.call);
  EXPECT_EQ(read.call, row.name);
  EXPECT_EQ(read.operation, row.operation);
  EXPECT_EQ(read.begin, written.begin) << row.name;
  EXPECT_EQ(read.duration, written.duration) << row.name;
  EXPECT_EQ(read.status, written.status) << row.name;
  const auto extra = [&](const char* name) {
    const auto found = read.extras.find(name);
    return found == read.extras.end() ? 0 : found->second;
  };
  EXPECT_EQ(extra("stack"), written.stack) << row.name;
  EXPECT_EQ(extra("host_pages"), static_cast<std::uint64_t>(written.pages)) << row.name;
  EXPECT_EQ(read.extras.contains("host_node"), written.host_node >= 0) << row.name;
  EXPECT_EQ(read.extras.contains("content"), written.has_content) << row.name;
  EXPECT_EQ(extra("content"), written.content) << row.name;
  EXPECT_EQ(extra("fixed"), written.is_fixed ? 1U : 0U) << row.name;
  const auto schema = schema_of(written.call);
  EXPECT_EQ(read.values.size(), schema.count) << row.name;
  for (std::size_t at = 0; at < schema.count; ++at) {
    const auto name = std::string(role_names[static_cast<std::size_t>(schema.roles[at])]);
    EXPECT_EQ(read[name], written.values[at]) << row.name << " " << name;
  }
}

TEST(EventEncoder, WritesEveryRecordedCallSoThatItIsReadTheSame) {
  const test::scratch scratch;
  const auto how = test::settings_for(scratch.file("a"));
  trace_file file;
  ASSERT_TRUE(file.create(how));
  auto to = file.payload();
  put_calls(to);
  ASSERT_TRUE(to.fits());
  ASSERT_TRUE(file.write(block_type::calls, to.written()));
  std::mt19937_64 random(1);
  std::vector<raw_event> written;
  for (int round = 0; round < 20; ++round) {
    to = file.payload();
    event_encoder encoder(to, 77, random());
    for (std::size_t index = 1; index < call_count; ++index) {
      if (const auto call = static_cast<call_id>(index); is_recorded(call)) {
        const auto before = to.size();
        written.push_back(any_event(random, call));
        encoder.put(written.back(), written.back().begin, written.back().duration);
        EXPECT_LE(to.size() - before, event_encoder::most_event_bytes);
      }
    }
    ASSERT_TRUE(to.fits());
    ASSERT_TRUE(file.write(block_type::events, to.written()));
  }
  file.close();
  const auto read = recorded_file::read(scratch.file("a"));
  EXPECT_FALSE(read.losses.any());
  EXPECT_TRUE(read.whole_events);
  ASSERT_EQ(read.events.size(), written.size());
  for (std::size_t index = 0; index < written.size(); ++index) {
    EXPECT_EQ(read.events[index].thread, 77U);
    expect_same(written[index], read.events[index]);
  }
}

TEST(EventEncoder, WritesTheLongestEventWithinItsBound) {
  std::array<std::byte, 4096> room{};
  for (std::size_t index = 1; index < call_count; ++index) {
    trace::recording::byte_writer to(room);
    event_encoder encoder(to, ~0U, 0);
    const auto before = to.size();
    raw_event event;
    event.call = static_cast<call_id>(index);
    event.begin = std::uint64_t{1} << 63U;
    event.duration = ~std::uint64_t{0};
    event.status = INT32_MIN;
    event.stack = ~0U;
    event.pages = host_pages::of_file;
    event.host_node = INT32_MAX;
    event.has_content = true;
    event.content = std::uint64_t{1} << 63U;
    event.is_fixed = true;
    event.values.fill(std::uint64_t{1} << 63U);
    encoder.put(event, event.begin, event.duration);
    EXPECT_LE(to.size() - before, event_encoder::most_event_bytes);
  }
}

TEST(EventEncoder, WritesRecordsOfDevices) {
  const test::scratch scratch;
  trace_file file;
  ASSERT_TRUE(file.create(test::settings_for(scratch.file("a"))));
  auto to = file.payload();
  put_calls(to);
  ASSERT_TRUE(file.write(block_type::calls, to.written()));
  to = file.payload();
  event_encoder encoder(to, 0, 500);
  for (std::size_t what = 0; what < record_count - 1; ++what) {
    encoder.put({.what = static_cast<record_id>(what),
                 .begin = 1000 - 100 * what,
                 .end = 1500,
                 .device = 3,
                 .stream = 7,
                 .bytes = 4096,
                 .way = 1,
                 .dst_memory = 3,
                 .src_memory = 2,
                 .name = 9,
                 .correlation = 11});
  }
  encoder.put({.what = record_id::device_fill, .begin = 20, .end = 10});
  encoder.put_window(30, window_edge::begin);
  ASSERT_TRUE(file.write(block_type::events, to.written()));
  file.close();
  const auto read = recorded_file::read(scratch.file("a"));
  ASSERT_EQ(read.events.size(), record_count + 1);
  EXPECT_EQ(read.events[0].operation, "copy");
  EXPECT_EQ(read.events[0]["src_memory"], 2U);
  EXPECT_EQ(read.events[0]["correlation"], 11U);
  EXPECT_EQ(read.events[0].duration, 500U);
  EXPECT_EQ(read.events[2].operation, "kernel");
  EXPECT_EQ(read.events[2]["name"], 9U);
  EXPECT_EQ(read.events[3]["bytes"], 4096U);
  EXPECT_EQ(read.events[4].duration, 0U) << "an end before the beginning";
  EXPECT_EQ(read.events[5].operation, "window");
  EXPECT_EQ(read.events[5]["value"], 1U);
}

}  // namespace
}  // namespace berth::interpose
