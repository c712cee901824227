// SPDX-License-Identifier: Apache-2.0
// From recordings to traces: what each call becomes, which kinds its ends have, whose time counts.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/recording_builder.hpp"
#include "trace/import/import.hpp"

namespace berth::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using trace::event_kind;
using trace::timing;

constexpr std::uint64_t device_memory = 0x7f00'0000'0000;
constexpr std::uint64_t pinned_memory = 0x7e00'0000'0000;
constexpr std::uint64_t malloc_memory = 0x5500'0000'0000;
constexpr std::uint64_t size = 1 << 20;
constexpr std::uint64_t to_device = 1;
constexpr std::uint64_t to_host = 2;
constexpr std::uint64_t by_addresses = 0;

result<trace::imported> import_file(std::string_view file) {
  return trace::try_import(
      trace::byte_source::from_memory("test.berth", {file.begin(), file.end()}).value());
}

trace::trace events_of(recording_builder& made) {
  auto read = import_file(made.file()).value();
  return std::move(read.events);
}

std::vector<trace::row> rows_of(const trace::trace& events, event_kind kind) {
  std::vector<trace::row> rows;
  for (trace::row row = 0; row < events.size(); ++row) {
    if (events.kind(row) == kind) {
      rows.push_back(row);
    }
  }
  return rows;
}

const trace::transfer& only(const trace::trace& events, event_kind kind) {
  const auto rows = rows_of(events, kind);
  if (rows.size() != 1 || events.details(rows.front()) == nullptr) {
    throw std::runtime_error("not one event of the kind, or one without details");
  }
  return *events.details(rows.front());
}

recording_builder with_allocations() {
  recording_builder made;
  made.event("hipMalloc", 0, 10, {device_memory, size})
      .event("hipHostMalloc", 20, 10, {pinned_memory, size, 0x40});
  return made;
}

TEST(recording, is_recognised_by_its_first_bytes) {
  const auto read = import_file(with_allocations().end().file());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->events.about.format, "berth recording");
  EXPECT_EQ(read->events.about.file, "test.berth");
  EXPECT_FALSE(read->cut);
}

TEST(recording, a_newer_version_is_refused) {
  auto file = with_allocations().end().file();
  file[8] = 2;
  const auto read = import_file(file);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("version 2"));
}

TEST(recording, calls_become_events_of_their_thread) {
  recording_builder made;
  made.process({{"pid", "4711"}})
      .on_thread(7)
      .event("hipModuleLaunchKernel", 100, 5, {0})
      .event("hipStreamSynchronize", 110, 50, {0})
      .event("hipEventRecord", 170, 1, {9, 0})
      .end();
  const auto events = events_of(made);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_THAT(events.kinds(), ElementsAre(event_kind::launch_call, event_kind::synchronisation,
                                          event_kind::other_call));
  EXPECT_EQ(events.name_text(1), "hipStreamSynchronize");
  EXPECT_EQ(events.begin(1), 110);
  EXPECT_EQ(events.duration(1), 50);
  const auto& thread = events.thread_at(events.thread_of(1).value());
  EXPECT_EQ(thread.process, "4711");
  EXPECT_EQ(thread.id, "7");
}

TEST(recording, events_of_several_threads_are_in_order_of_time) {
  recording_builder made;
  made.on_thread(1).event("hipEventRecord", 100, 1, {0, 0}).event("hipEventRecord", 300, 1, {0, 0});
  made.on_thread(2).event("hipEventRecord", 50, 1, {0, 0}).event("hipEventRecord", 200, 1, {0, 0});
  made.end();
  const auto events = events_of(made);
  ASSERT_EQ(events.size(), 4U);
  for (trace::row row = 1; row < events.size(); ++row) {
    EXPECT_GT(events.begin(row), events.begin(row - 1));
  }
}

TEST(recording, allocations_have_address_bytes_kind_and_flags) {
  auto made = with_allocations();
  const auto events = events_of(made.end());
  const auto rows = rows_of(events, event_kind::allocation);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(events.details(rows[0])->destination_kind, memory_kind::device);
  EXPECT_EQ(events.details(rows[0])->destination_address, device_memory);
  EXPECT_EQ(events.details(rows[0])->bytes, size);
  EXPECT_EQ(events.details(rows[1])->destination_kind, memory_kind::pinned);
  EXPECT_EQ(events.details(rows[1])->flags, 0x40U);
}

TEST(recording, a_free_says_what_the_address_really_was) {
  auto made = with_allocations();
  // The wrong one of the two.
  made.event("hipFree", 50, 5, {pinned_memory}).event("hipFree", 60, 5, {0}).end();
  const auto events = events_of(made);
  const auto rows = rows_of(events, event_kind::free);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(events.name_text(rows[0]), "hipFree");
  EXPECT_EQ(events.details(rows[0])->destination_kind, memory_kind::pinned);
  EXPECT_EQ(events.details(rows[0])->bytes, size);
  EXPECT_EQ(events.details(rows[1])->destination_kind, memory_kind::unknown);
  EXPECT_FALSE(events.details(rows[1])->bytes);
}

TEST(recording, a_synchronous_copy_becomes_a_call_and_an_activity_of_its_time) {
  auto made = with_allocations();
  made.event("hipMemcpy", 100, 40, {device_memory, malloc_memory, size, to_device}).end();
  const auto events = events_of(made);
  const auto call = rows_of(events, event_kind::copy_call).at(0);
  const auto copy = rows_of(events, event_kind::copy).at(0);
  EXPECT_EQ(events.name_text(call), "hipMemcpy");
  EXPECT_TRUE(events.correlation(call));
  EXPECT_EQ(events.correlation(call), events.correlation(copy));
  EXPECT_EQ(events.begin(copy), 100);
  EXPECT_EQ(events.duration(copy), 40);
  EXPECT_EQ(events.name_text(copy), "Memcpy HtoD (Pageable -> Device)");
  const auto& details = *events.details(copy);
  EXPECT_EQ(details.time, timing::call);
  EXPECT_EQ(details.bytes, size);
  EXPECT_EQ(details.direction, direction::host_to_device);
  EXPECT_EQ(details.source_kind, memory_kind::pageable);
  EXPECT_EQ(details.destination_kind, memory_kind::device);
  EXPECT_EQ(details.source_address, malloc_memory);
  EXPECT_EQ(details.destination_address, device_memory);
}

TEST(recording, an_asynchronous_copy_of_pinned_memory_without_a_record_has_no_time) {
  auto made = with_allocations();
  made.event("hipMemcpyAsync", 100, 4, {pinned_memory + 64, device_memory, 4096, to_host, 5}).end();
  const auto events = events_of(made);
  const auto copy = rows_of(events, event_kind::copy).at(0);
  EXPECT_EQ(events.details(copy)->time, timing::unknown);
  EXPECT_EQ(events.duration(copy), 0);
  EXPECT_EQ(events.begin(copy), 100);
  EXPECT_EQ(events.details(copy)->destination_kind, memory_kind::pinned);
  EXPECT_EQ(events.stream_of(copy).id, 5);
}

TEST(recording, an_asynchronous_copy_of_pageable_memory_blocks_its_call) {
  auto made = with_allocations();
  made.event("hipMemcpyAsync", 100, 90, {device_memory, malloc_memory, size, to_device, 5}).end();
  const auto events = events_of(made);
  EXPECT_EQ(only(events, event_kind::copy).time, timing::call);
}

TEST(recording, a_failed_copy_keeps_its_status_and_moves_nothing) {
  auto made = with_allocations();
  made.event("hipMemcpy", 100, 40, {device_memory, malloc_memory, size, to_device}, {}, 1).end();
  const auto events = events_of(made);
  EXPECT_THAT(rows_of(events, event_kind::copy), IsEmpty());
  EXPECT_EQ(events.status(rows_of(events, event_kind::copy_call).at(0)), 1);
}

TEST(recording, a_failed_allocation_gives_no_memory) {
  recording_builder made;
  made.event("hipHostMalloc", 0, 10, {pinned_memory, size, 0}, {}, 2)
      .event("hipMemcpy", 100, 40, {device_memory, pinned_memory, size, to_device})
      .end();
  const auto events = events_of(made);
  EXPECT_EQ(only(events, event_kind::copy).source_kind, memory_kind::pageable);
  EXPECT_EQ(events.status(rows_of(events, event_kind::allocation).at(0)), 2);
}

TEST(recording, directions_follow_from_addresses_where_the_call_does_not_say) {
  struct expected {
    std::uint64_t dst;
    std::uint64_t src;
    std::uint64_t way;
    direction result;
  };
  for (const auto& one : std::vector<expected>{
           {device_memory, malloc_memory, by_addresses, direction::host_to_device},
           {malloc_memory, device_memory, by_addresses, direction::device_to_host},
           {device_memory, device_memory + 64, by_addresses, direction::device_to_device},
           {pinned_memory, malloc_memory, by_addresses, direction::host_to_host},
           {malloc_memory, malloc_memory + 64, by_addresses, direction::unknown},
           // A wrong direction: the runtime goes by the addresses, too.
           {pinned_memory, device_memory, to_device, direction::device_to_host},
           {malloc_memory, malloc_memory + 64, to_host, direction::device_to_host}}) {
    auto made = with_allocations();
    made.event("hipMemcpy", 100, 40, {one.dst, one.src, 32, one.way}).end();
    const auto events = events_of(made);
    EXPECT_EQ(only(events, event_kind::copy).direction, one.result)
        << std::hex << one.dst << " from " << one.src;
  }
}

TEST(recording, memory_counts_from_the_end_of_its_allocation_to_the_begin_of_its_free) {
  const auto kind_at = [](std::int64_t time) {
    recording_builder made;
    made.on_thread(1)
        .event("hipHostRegister", 100, 50, {malloc_memory, size, 0})
        .event("hipHostUnregister", 300, 50, {malloc_memory});
    made.on_thread(2).event("hipMemcpy", time, 1,
                            {device_memory, malloc_memory + 8, 64, to_device});
    made.end();
    const auto events = events_of(made);
    return only(events, event_kind::copy).source_kind;
  };
  EXPECT_EQ(kind_at(120), memory_kind::pageable);
  EXPECT_EQ(kind_at(151), memory_kind::registered);
  EXPECT_EQ(kind_at(299), memory_kind::registered);
  EXPECT_EQ(kind_at(301), memory_kind::pageable);
}

TEST(recording, an_address_that_is_used_again_has_the_kind_of_its_time) {
  recording_builder made;
  made.event("hipHostMalloc", 0, 10, {pinned_memory, size, 0})
      .event("hipMemcpy", 20, 1, {device_memory, pinned_memory, 64, to_device})
      .event("hipHostFree", 30, 10, {pinned_memory})
      .event("hipMallocManaged", 50, 10, {pinned_memory, size, 1})
      .event("hipMemcpy", 70, 1, {device_memory, pinned_memory, 64, to_device})
      .end();
  const auto events = events_of(made);
  const auto copies = rows_of(events, event_kind::copy);
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(events.details(copies[0])->source_kind, memory_kind::pinned);
  EXPECT_EQ(events.details(copies[1])->source_kind, memory_kind::managed);
}

TEST(recording, lost_events_make_unknown_what_would_be_pageable) {
  auto made = with_allocations();
  made.event("hipMemcpy", 100, 40, {device_memory, malloc_memory, size, to_device})
      .dropped(1, 12, 50, 60)
      .end();
  const auto events = events_of(made);
  EXPECT_EQ(only(events, event_kind::copy).source_kind, memory_kind::unknown);
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("12 events found no room")));
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("the kind is not guessed")));
}

TEST(recording, extras_come_with_the_copy) {
  auto made = with_allocations();
  made.event("hipMemcpy", 100, 40, {device_memory, malloc_memory, size, to_device},
             {{"host_pages", 2}, {"host_node", 1}, {"content", 0xabcd}})
      .end();
  const auto events = events_of(made);
  const auto& details = only(events, event_kind::copy);
  EXPECT_EQ(details.pages, trace::host_pages::fresh);
  EXPECT_EQ(details.host_node, 1);
  EXPECT_EQ(details.content, 0xabcdU);
}

TEST(recording, a_device_record_is_the_activity_of_its_call) {
  auto made = with_allocations();
  made.event("hipMemcpyAsync", 100, 4, {device_memory, pinned_memory, size, to_device, 0x77})
      .on_thread(0)
      .event("gpu_copy", 150, 30, {size, to_device, 0, 0, 2, 9}, {{"call_stream", 0x77}})
      .end();
  const auto events = events_of(made);
  const auto copy = rows_of(events, event_kind::copy).at(0);
  const auto call = rows_of(events, event_kind::copy_call).at(0);
  EXPECT_EQ(only(events, event_kind::copy).time, timing::device);
  EXPECT_EQ(events.begin(copy), 150);
  EXPECT_EQ(events.duration(copy), 30);
  EXPECT_EQ(events.stream_of(copy).device, 2U);
  EXPECT_EQ(events.stream_of(copy).id, 9);
  EXPECT_EQ(events.correlation(copy), events.correlation(call));
  EXPECT_TRUE(events.correlation(copy));
  EXPECT_EQ(events.details(copy)->source_kind, memory_kind::pinned);
  EXPECT_EQ(events.details(copy)->source_address, pinned_memory);
}

TEST(recording, a_fixed_copy_is_one_whatever_the_device_did_for_it) {
  auto made = with_allocations();
  made.coverage({{"fix.copies", "1"}, {"fix.bytes", "1048576"}, {"fix.passed.small", "7"}})
      .event("hipMemcpyAsync", 100, 40, {device_memory, malloc_memory, size, to_device, 0x77},
             {{"fixed", 1}})
      .event("hipMemcpyAsync", 300'000, 4,
             {device_memory, pinned_memory, size / 2, to_device, 0x77})
      .on_thread(0)
      .event("gpu_copy", 110, 9, {size / 2, to_device, 0, 2, 2, 9})
      .event("gpu_copy", 145, 9, {size / 2, to_device, 0, 2, 2, 9})
      .event("gpu_copy", 115, 9, {size / 2, to_host, 2, 0, 2, 10})
      .event("gpu_copy", 300'010, 9, {size / 2, to_device, 0, 2, 2, 11}, {{"call_stream", 0x77}})
      .end();
  const auto events = events_of(made);
  const auto copies = rows_of(events, event_kind::copy);
  ASSERT_EQ(copies.size(), 3U);  // the other way's record is somebody else's
  EXPECT_EQ(events.details(copies[0])->by, trace::carrier::copy_engine);
  EXPECT_EQ(events.details(copies[0])->bytes, size);
  EXPECT_EQ(events.details(copies[0])->time, timing::call);
  EXPECT_EQ(events.duration(copies[0]), 40);
  EXPECT_EQ(events.details(copies[1])->direction, direction::device_to_host);
  EXPECT_EQ(events.details(copies[2])->by, trace::carrier::runtime);
  EXPECT_EQ(events.begin(copies[2]), 300'010);
  EXPECT_THAT(events.about.notes,
              Contains(AllOf(HasSubstr("1 copy fixed"), HasSubstr("26214.4 GB/s"),
                             HasSubstr("left to the runtime: 7 small"))));
}

TEST(recording, equal_copies_are_matched_in_order_and_by_stream) {
  auto made = with_allocations();
  for (const std::uint64_t stream : {1U, 2U, 1U}) {
    made.event("hipMemcpyAsync", static_cast<std::int64_t>(100 + 10 * stream), 4,
               {device_memory, pinned_memory + stream, 64, to_device, stream});
  }
  made.on_thread(0)
      .event("gpu_copy", 200, 3, {64, to_device, 0, 0, 0, 20}, {{"call_stream", 2}})
      .event("gpu_copy", 210, 3, {64, to_device, 0, 0, 0, 10}, {{"call_stream", 1}})
      .event("gpu_copy", 220, 3, {64, to_device, 0, 0, 0, 10}, {{"call_stream", 1}})
      .end();
  const auto events = events_of(made);
  const auto copies = rows_of(events, event_kind::copy);
  ASSERT_EQ(copies.size(), 3U);
  EXPECT_EQ(events.details(copies[0])->source_address, pinned_memory + 2);
  EXPECT_EQ(events.details(copies[1])->source_address, pinned_memory + 1);
  EXPECT_EQ(events.details(copies[2])->source_address, pinned_memory + 1);
  EXPECT_NE(events.correlation(copies[1]), events.correlation(copies[2]));
}

TEST(recording, a_record_that_nobody_asked_for_stands_alone) {
  auto made = with_allocations();
  made.event("hipMemcpy", 100, 4, {device_memory, malloc_memory, 64, to_device})
      .on_thread(0)
      .event("gpu_copy", 101, 2, {128, to_device, 3, 1, 0, 1})
      .end();
  const auto events = events_of(made);
  const auto copies = rows_of(events, event_kind::copy);
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(events.details(copies[0])->time, timing::call);
  EXPECT_EQ(events.details(copies[1])->time, timing::device);
  EXPECT_FALSE(events.correlation(copies[1]));
  EXPECT_EQ(events.details(copies[1])->source_kind, memory_kind::pageable);
}

TEST(recording, a_batch_counts_as_its_copies) {
  recording_builder made;
  made.event("hipMemcpyBatchAsync", 0, 9, {1001, 4, to_device, 0}).end();
  const auto events = events_of(made);
  const auto copies = rows_of(events, event_kind::copy);
  ASSERT_EQ(copies.size(), 4U);
  bytes_t sum = 0;
  for (const auto row : copies) {
    sum += events.details(row)->bytes.value();
  }
  EXPECT_EQ(sum, 1001U);
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("even share")));
}

TEST(recording, a_batch_of_absurd_size_counts_as_one) {
  recording_builder made;
  made.event("hipMemcpyBatchAsync", 0, 9, {1001, std::uint64_t{1} << 60, to_device, 0}).end();
  const auto events = events_of(made);
  EXPECT_EQ(rows_of(events, event_kind::copy).size(), 1U);
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("impossibly many")));
}

TEST(recording, copies_of_a_batch_are_matched) {
  recording_builder made;
  made.event("hipMemcpyBatchAsync", 0, 9, {300, 2, to_device, 0})
      .on_thread(0)
      .event("gpu_copy", 20, 3, {100, to_device, 0, 0, 0, 1})
      .event("gpu_copy", 30, 3, {200, to_device, 0, 0, 0, 1})
      .end();
  const auto events = events_of(made);
  const auto copies = rows_of(events, event_kind::copy);
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_TRUE(events.correlation(copies[0]));
  EXPECT_EQ(events.correlation(copies[0]), events.correlation(copies[1]));
}

TEST(recording, kernels_have_names_and_those_of_the_runtime_are_copies) {
  recording_builder made;
  made.string(1, "_Z5scalePfi")
      .string(2, "__amd_rocclr_copyBuffer")
      .on_thread(0)
      .event("gpu_kernel", 10, 5, {1, 0, 0})
      .event("gpu_kernel", 20, 5, {2, 0, 0})
      .event("gpu_kernel", 30, 5, {99, 0, 0})
      .end();
  const auto events = events_of(made);
  EXPECT_THAT(events.kinds(),
              ElementsAre(event_kind::kernel, event_kind::copy, event_kind::kernel));
  EXPECT_EQ(events.name_text(0), "scale");
  EXPECT_EQ(events.details(1)->engine, engine::kernel);
  EXPECT_EQ(events.name_text(2), "kernel");
}

TEST(recording, prefetches_fills_and_migrations_have_details) {
  recording_builder made;
  made.event("hipMallocManaged", 0, 5, {pinned_memory, size, 1})
      .event("hipMemPrefetchAsync", 10, 2, {pinned_memory, size, ~std::uint64_t{0}, 0})
      .event("hipMemsetAsync", 20, 2, {pinned_memory, 512, 0})
      .on_thread(0)
      .event("gpu_migration", 30, 2, {pinned_memory, 4096, to_host, 0, 0})
      .end();
  const auto events = events_of(made);
  const auto& prefetch = only(events, event_kind::other_call);
  EXPECT_EQ(prefetch.direction, direction::device_to_host);
  EXPECT_EQ(prefetch.destination_kind, memory_kind::managed);
  EXPECT_EQ(only(events, event_kind::fill).destination_kind, memory_kind::managed);
  EXPECT_EQ(only(events, event_kind::fill).bytes, 512U);
  EXPECT_EQ(only(events, event_kind::migration).direction, direction::device_to_host);
}

TEST(recording, asking_for_a_device_address_names_the_memory) {
  recording_builder made;
  made.declare({"hipHostGetDevicePointer", "hip", "device_address", {"memory", "flags"}})
      .event("hipHostMalloc", 0, 10, {pinned_memory, size, 0})
      .event("hipHostGetDevicePointer", 20, 1, {pinned_memory, 0})
      .end();
  const auto events = events_of(made);
  const auto& asked = only(events, event_kind::other_call);
  EXPECT_EQ(asked.destination_address, pinned_memory);
  EXPECT_EQ(asked.destination_kind, memory_kind::pinned);
}

TEST(recording, copies_that_cupti_saw_are_of_a_copy_engine) {
  const auto engine_of = [](std::string_view source) {
    recording_builder made;
    made.coverage({{"device_times", std::string(source)}})
        .event("gpu_copy", 20, 5, {64, to_device, 0, 0, 0, 7})
        .end();
    return only(events_of(made), event_kind::copy).engine;
  };
  EXPECT_EQ(engine_of("cupti"), engine::dma);
  EXPECT_EQ(engine_of("none: no profiler interface"), engine::unknown);
}

TEST(recording, facts_rank_devices_and_framework_are_taken) {
  recording_builder made;
  made.process({{"pid", "12"},
                {"rank", "3"},
                {"program", "/usr/bin/train"},
                {"environment.HSA_XNACK", "1"}})
      .coverage({{"device.0.name", "AMD Instinct MI210"},
                 {"device.0.memory", "68702699520"},
                 {"device_times", "none: no profiler interface"},
                 {"runtime.0.version", "6.2"}})
      .coverage({{"device_times", "cupti"}})
      .module(0x1000, 0x1000, 0, "/opt/lib/libtorch_hip.so", "")
      .event("hipMalloc", 0, 10, {device_memory, size})
      .end({{"reason", "exit"}});
  const auto events = events_of(made);
  const auto& about = events.about;
  EXPECT_EQ(about.rank, 3);
  EXPECT_EQ(about.framework, "PyTorch");
  EXPECT_EQ(about.api, trace::gpu_api::hip);
  EXPECT_EQ(about.api_version, "6.2");
  ASSERT_EQ(about.devices.size(), 1U);
  EXPECT_EQ(about.devices[0].name, "AMD Instinct MI210");
  EXPECT_EQ(about.devices[0].memory, 68702699520U);
  EXPECT_EQ(about.facts.at("process.program"), "/usr/bin/train");
  EXPECT_EQ(about.facts.at("coverage.device_times"), "cupti");
  EXPECT_EQ(about.facts.at("environment.HSA_XNACK"), "1");
  EXPECT_EQ(about.facts.at("end.reason"), "exit");
}

TEST(recording, an_unseen_runtime_is_noted) {
  recording_builder made;
  made.coverage({{"runtime.0.path", "/lib/libcuda.so.1"}, {"runtime.0.how", "unseen"}}).end();
  const auto events = events_of(made);
  EXPECT_THAT(events.about.notes,
              Contains(HasSubstr("/lib/libcuda.so.1 was mapped, but none of its calls")));
}

TEST(recording, unknown_calls_blocks_and_roles_are_passed_over_and_counted) {
  recording_builder made;
  made.declare({"hipNew", "hip", "invent_something", {"memory", "novelty", "bytes"}})
      .declare({"vkNew", "vulkan", "copy", {"bytes"}})
      .event("hipNew", 10, 1, {1, 2, 3})
      .event("vkNew", 20, 1, {4})
      .event("hipMemcpy", 30, 1, {device_memory, malloc_memory, 77, to_device})
      .block(static_cast<recording_builder::type>(77), [](auto& to) { to.put_text("new"); })
      .end();
  const auto events = events_of(made);
  EXPECT_THAT(events.kinds(),
              ElementsAre(event_kind::other_call, event_kind::copy_call, event_kind::copy));
  EXPECT_EQ(only(events, event_kind::copy).bytes, 77U);
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("1 event of interfaces")));
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("1 block of types")));
}

TEST(recording, an_event_of_a_call_without_a_name_ends_its_block) {
  recording_builder made;
  made.event("hipEventRecord", 1, 1, {0, 0})
      .block(recording_builder::type::events,
             [](auto& to) {
               to.put_varint(1);
               to.put_signed(0);
               to.put_varint(4000);
               to.put_text("whatever");
             })
      .event("hipEventRecord", 9, 1, {0, 0})
      .end();
  const auto events = events_of(made);
  EXPECT_EQ(events.size(), 2U);
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("a call that the file does not name")));
}

TEST(recording, without_an_end_it_is_cut) {
  const auto read = import_file(with_allocations().file());
  ASSERT_TRUE(read);
  ASSERT_TRUE(read->cut);
  EXPECT_EQ(read->cut->why.code(), errc::input_truncated);
  EXPECT_EQ(read->cut->whole_events, 2U);
  EXPECT_EQ(read->cut->lost_bytes, 0U);
}

TEST(recording, an_end_for_want_of_disk_is_a_cut) {
  const auto read = import_file(with_allocations().end({{"reason", "disk: no space left"}}).file());
  ASSERT_TRUE(read && read->cut);
  EXPECT_THAT(read->cut->why.message(), HasSubstr("disk: no space left"));
}

TEST(recording, a_damaged_block_is_skipped_counted_and_said) {
  auto made = with_allocations();
  const auto place = made.position();
  made.event("hipMemcpy", 100, 4, {device_memory, malloc_memory, 64, to_device});
  static_cast<void>(made.position());
  made.event("hipStreamSynchronize", 200, 4, {0}).end();
  auto file = made.file();
  file[place + 30] = static_cast<char>(file[place + 30] ^ 1);
  const auto read = import_file(file);
  ASSERT_TRUE(read && read->cut);
  EXPECT_EQ(read->cut->why.code(), errc::input_malformed);
  EXPECT_GT(read->cut->lost_bytes, 0U);
  EXPECT_THAT(rows_of(read->events, event_kind::copy_call), IsEmpty());
  EXPECT_EQ(rows_of(read->events, event_kind::synchronisation).size(), 1U);
  EXPECT_THAT(read->events.about.notes, Contains(HasSubstr("1 block of the file is missing")));
}

TEST(recording, cut_at_every_byte_it_gives_what_was_whole_or_says_why_not) {
  recording_builder made;
  const auto first_whole = made.process({{"pid", "1"}}).position();
  made.event("hipMalloc", 0, 10, {device_memory, size})
      .event("hipMemcpy", 100, 4, {device_memory, malloc_memory, 64, to_device})
      .string(1, "name")
      .end();
  const auto file = made.file();
  std::size_t most = 0;
  for (std::size_t length = 1; length < file.size(); ++length) {
    const auto read = import_file(std::string_view(file).substr(0, length));
    if (!read) {
      EXPECT_THAT(read.error().where(), HasSubstr("test.berth"));
      EXPECT_LT(length, first_whole);
      continue;
    }
    EXPECT_GE(length, first_whole);
    ASSERT_TRUE(read->cut) << length;
    EXPECT_GE(read->events.size(), most) << length;
    most = std::max(most, read->events.size());
  }
  EXPECT_EQ(most, 3U);
}

TEST(recording, compressed_blocks_say_the_same) {
  const auto write = [](recording_builder made) {
    made.event("hipMalloc", 0, 10, {device_memory, size})
        .event("hipMemcpy", 100, 4, {device_memory, malloc_memory, 64, to_device})
        .end();
    return made.file();
  };
  const auto plain = import_file(write(recording_builder()));
  const auto packed = import_file(write(recording_builder(recording_builder::encoding::zstd)));
  ASSERT_TRUE(plain && packed);
  ASSERT_EQ(plain->events.size(), packed->events.size());
  for (trace::row row = 0; row < plain->events.size(); ++row) {
    EXPECT_EQ(plain->events.name_text(row), packed->events.name_text(row));
    EXPECT_EQ(plain->events.begin(row), packed->events.begin(row));
  }
}

TEST(recording, impossible_times_and_sizes_are_left_out) {
  recording_builder made;
  made.event("hipEventRecord", 1, 1, {0, 0})
      .event("hipEventRecord", 2, ~std::uint64_t{0}, {0, 0})
      .event("hipEventRecord", std::int64_t{1} << 62, 1, {0, 0})
      .event("hipMemcpy", 4, 1, {device_memory, malloc_memory, ~std::uint64_t{0}, to_device})
      .end();
  const auto events = events_of(made);
  EXPECT_EQ(events.size(), 3U);
  EXPECT_FALSE(only(events, event_kind::copy).bytes);
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("2 events at impossible times")));
}

TEST(recording, stacks_become_call_sites) {
  auto made = with_allocations();
  made.module(0x1000, 0x1000, 0x200, "/no/such/libmodel.so", "abcd")
      .stack(5, {0x1234, 0x99})
      .event("hipMemcpy", 100, 4, {device_memory, malloc_memory, 64, to_device}, {{"stack", 5}})
      .end();
  const auto events = events_of(made);
  const auto* const site = events.site(rows_of(events, event_kind::copy_call).at(0));
  ASSERT_NE(site, nullptr);
  ASSERT_EQ(site->frames.size(), 2U);
  EXPECT_EQ(events.text(site->frames[0]), "libmodel.so+0x434");
  EXPECT_EQ(events.text(site->frames[1]), "0x99");
}

}  // namespace
}  // namespace berth::test
