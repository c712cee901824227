// SPDX-License-Identifier: Apache-2.0
// Exported traces: valid JSON with exact times, tracks, arrows and counters.
#include "trace/export/chrome.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inputs.hpp"
#include "support/trace_builder.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

std::string exported_text(const trace::trace& events) {
  std::string text;
  trace::write_chrome(events, [&](std::string_view part) { text += part; });
  return text;
}

// Elements of the exported trace with this phase.
std::vector<json> exported(const trace::trace& events, std::string_view phase) {
  std::vector<json> found;
  const auto whole = json::parse(exported_text(events));
  for (const auto& element : whole["traceEvents"]) {
    if (element["ph"] == phase) {
      found.push_back(element);
    }
  }
  return found;
}

TEST(chrome_export, an_empty_trace_is_an_empty_list) {
  const trace::trace events;
  const auto whole = json::parse(exported_text(events));
  EXPECT_TRUE(whole["traceEvents"].empty());
  EXPECT_EQ(whole["displayTimeUnit"], "ns");
}

TEST(chrome_export, times_are_exact_to_the_nanosecond) {
  trace_builder made;
  made.kernel(1234567890123456789ns, 1ns).kernel(-1500ns, 20ns);
  const auto events = made.build();
  const auto text = exported_text(events);
  EXPECT_THAT(text, HasSubstr("\"ts\":1234567890123456.789,\"dur\":0.001"));
  EXPECT_THAT(text, HasSubstr("\"ts\":-1.500,\"dur\":0.020"));
}

TEST(chrome_export, a_copy_has_its_facts_and_an_arrow_from_its_call) {
  trace_builder made;
  made.on(0, 7).on_thread("42").h2d(10ms, 2ms, 50 * mb).host_address(0xabc000).called(9ms, 4ms);
  const auto events = made.build();
  const auto slices = exported(events, "X");
  ASSERT_EQ(slices.size(), 2U);
  const auto& call = slices[0];
  const auto& copy = slices[1];
  EXPECT_EQ(copy["args"]["bytes"], 50 * mb);
  EXPECT_EQ(copy["args"]["GB/s"], 25.0);
  EXPECT_EQ(copy["args"]["direction"], "host_to_device");
  EXPECT_EQ(copy["args"]["source_kind"], "pageable");
  EXPECT_EQ(copy["args"]["source"], "0xabc000");
  EXPECT_EQ(copy["args"]["time"], "device");
  const auto starts = exported(events, "s");
  const auto ends = exported(events, "f");
  ASSERT_EQ(starts.size(), 1U);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(starts[0]["id"], ends[0]["id"]);
  EXPECT_EQ(starts[0]["ts"], call["ts"]);
  EXPECT_EQ(starts[0]["tid"], call["tid"]);
  EXPECT_EQ(ends[0]["ts"], copy["ts"]);
  EXPECT_EQ(ends[0]["pid"], copy["pid"]);
  EXPECT_EQ(ends[0]["bp"], "e");
}

TEST(chrome_export, processes_threads_and_streams_have_names) {
  trace_builder made;
  made.gpu("AMD Instinct MI210").on(0, 7).on_thread("42").kernel(0ms, 1ms).synchronised(0ms, 1ms);
  const auto events = made.build();
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  for (const auto& element : exported(events, "M")) {
    if (element["name"] == "process_name") {
      processes[element["pid"]] = element["args"]["name"];
    } else {
      threads[{element["pid"], element["tid"]}] = element["args"]["name"];
    }
  }
  for (const auto& slice : exported(events, "X")) {
    const bool is_kernel = slice["cat"] == "kernel";
    EXPECT_EQ(processes.at(slice["pid"]),
              is_kernel ? "GPU 0: AMD Instinct MI210" : "process process");
    EXPECT_EQ(threads.at({slice["pid"], slice["tid"]}), is_kernel ? "stream 7" : "thread 42");
  }
}

TEST(chrome_export, what_overlaps_on_one_stream_lies_on_tracks_side_by_side) {
  trace_builder made;
  made.on(0, 1).kernel(0ms, 10ms).kernel(5ms, 10ms).kernel(10ms, 1ms);
  const auto events = made.build();
  const auto slices = exported(events, "X");
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_NE(slices[0]["tid"], slices[1]["tid"]);
  EXPECT_EQ(slices[0]["tid"], slices[2]["tid"]);
}

TEST(chrome_export, allocated_bytes_are_counted_by_kind) {
  trace::trace events;
  const auto change = [&](trace::event_kind kind, std::int64_t begin, std::uint64_t address,
                          memory_kind memory, std::optional<bytes_t> bytes) {
    trace::transfer details;
    details.bytes = bytes;
    details.destination_kind = memory;
    details.destination_address = address;
    trace::new_event made;
    made.kind = kind;
    made.begin = begin;
    made.duration = 10;
    made.thread = events.intern_thread("1", "1");
    made.transfer = events.add_transfer(details);
    events.add(made);
  };
  change(trace::event_kind::allocation, 0, 0x1000, memory_kind::device, 64);
  change(trace::event_kind::allocation, 100, 0x2000, memory_kind::pinned, 32);
  change(trace::event_kind::free, 200, 0x1000, memory_kind::device, 64);
  change(trace::event_kind::free, 300, 0x9000, memory_kind::unknown, std::nullopt);
  const auto counters = exported(events, "C");
  ASSERT_EQ(counters.size(), 3U);
  EXPECT_EQ(counters[0]["ts"], 0.01);
  EXPECT_EQ(counters[0]["args"]["device"], 64);
  EXPECT_EQ(counters[1]["args"]["pinned"], 32);
  EXPECT_EQ(counters[2]["args"]["device"], 0);
  EXPECT_EQ(counters[2]["args"]["pinned"], 32);
}

TEST(chrome_export, odd_names_stay_json) {
  trace::trace events;
  trace::new_event made;
  made.name = events.intern("\"\\\n\xff</script>");
  made.thread = events.intern_thread("\"", "\xfe");
  events.add(made);
  EXPECT_EQ(exported(events, "X").size(), 1U);
}

TEST(chrome_export, an_unknown_time_gives_no_rate) {
  trace_builder made;
  made.h2d(0ms, 0ms, mb).timed_by(trace::timing::unknown);
  const auto events = made.build();
  const auto slices = exported(events, "X");
  EXPECT_FALSE(slices[0]["args"].contains("GB/s"));
  EXPECT_EQ(slices[0]["args"]["time"], "unknown");
}

TEST(chrome_export, is_refused_kindly_by_the_importer) {
  trace_builder made;
  made.h2d(0ms, 1ms, mb).called(0ms, 1ms);
  const auto events = made.build();
  const auto read = import_text(exported_text(events));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), errc::input_unknown_format);
  EXPECT_THAT(read.error().message(), HasSubstr("berth export"));
  EXPECT_THAT(read.error().hint(), HasSubstr("the trace that it was made from"));
}

}  // namespace
}  // namespace berth::test
