// SPDX-License-Identifier: Apache-2.0
#include "trace/import/kineto.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/trace/inputs.hpp"

namespace {

using berth::direction;
using berth::engine;
using berth::memory_kind;
using berth::test::import_text;
using berth::test::trace_of;
using berth::trace::event_kind;
using berth::trace::gpu_api;
using berth::trace::trace;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

trace read(std::string_view events, std::string_view members = "") {
  auto read = import_text(trace_of(events, members)).value();
  EXPECT_FALSE(read.cut);
  return std::move(read.events);
}

// A complete event of a second's length on a thread.
std::string event(std::string_view category, std::string_view name, std::string_view args = "") {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":2,"ts":5,"dur":1,"args":{{{}}}}})",
      category, name, args);
}

TEST(kineto, knows_each_category_in_old_and_new_spelling) {
  struct spelling {
    const char* category;
    const char* name;
    event_kind kind;
  };
  for (const auto& [category, name, kind] : {
           spelling{"gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", event_kind::copy},
           spelling{"Memcpy", "Memcpy HtoD (Pageable -> Device)", event_kind::copy},
           spelling{"memcpy", "CopyHostToDevice", event_kind::copy},
           spelling{"gpu_memset", "Memset (Device)", event_kind::fill},
           spelling{"Memset", "Memset (Device)", event_kind::fill},
           spelling{"memset", "Memset (Device)", event_kind::fill},
           spelling{"kernel", "void f()", event_kind::kernel},
           spelling{"Kernel", "void f()", event_kind::kernel},
           spelling{"gpu_kernel", "void f()", event_kind::kernel},
           spelling{"cuda_runtime", "cudaMemcpyAsync", event_kind::copy_call},
           spelling{"Runtime", "cudaMemcpyAsync", event_kind::copy_call},
           spelling{"hip_runtime", "hipMemcpyAsync", event_kind::copy_call},
           spelling{"cuda_driver", "cuLaunchKernel", event_kind::launch_call},
           spelling{"Driver", "cuLaunchKernel", event_kind::launch_call},
           spelling{"cuda_runtime", "cudaDeviceSynchronize", event_kind::synchronisation},
           spelling{"cuda_runtime", "cudaMalloc", event_kind::allocation},
           spelling{"cuda_runtime", "hipHostFree", event_kind::free},
           spelling{"cuda_runtime", "cudaEventRecord", event_kind::other_call},
           spelling{"cpu_op", "aten::to", event_kind::operator_range},
           spelling{"Operator", "aten::to", event_kind::operator_range},
           spelling{"python_function", "train.py(3): step", event_kind::python_range},
           spelling{"user_annotation", "ProfilerStep#1", event_kind::user_range},
       }) {
    const auto events = read(event(category, name));
    ASSERT_EQ(events.size(), 1U) << category;
    EXPECT_EQ(events.kind(0), kind) << category << ' ' << name;
    EXPECT_EQ(events.name_text(0), name);
  }
}

TEST(kineto, leaves_out_what_says_nothing_new) {
  for (const auto* category : {"ac2g", "fwdbwd", "overhead", "Trace", "gpu_user_annotation",
                               "cpu_instant_event", "", "cuda_sync", "KERNEL"}) {
    EXPECT_TRUE(read(event(category, "x")).empty()) << category;
  }
  for (const auto* phase : {"B", "E", "i", "M", "s", "f", "C", ""}) {
    EXPECT_TRUE(
        read(fmt::format(R"({{"ph":"X"}},{{"ph":"{}","cat":"kernel","name":"k","ts":1,"dur":1}})",
                         phase))
            .empty())
        << phase;
  }
}

TEST(kineto, reads_times_as_numbers_and_as_strings) {
  struct time_case {
    const char* text;
    std::int64_t nanoseconds;
  };
  for (const auto& [text, nanoseconds] :
       {time_case{"5204826544920.552", 5'204'826'544'920'552}, time_case{"7", 7000},
        time_case{R"("7")", 7000},
        time_case{R"("1790857026000000.123")", 1'790'857'026'000'000'123},
        time_case{"1.5e3", 1'500'000}, time_case{R"("1.5E+3")", 1'500'000}, time_case{"0.25", 250},
        time_case{" 12 ", 12'000}, time_case{"-3.5", -3500}}) {
    const auto events =
        read(fmt::format(R"({{"ph":"X","cat":"kernel","name":"k","ts":{0},"dur":2.001}})", text));
    ASSERT_EQ(events.size(), 1U) << text;
    EXPECT_EQ(events.begin(0), nanoseconds) << text;
    EXPECT_EQ(events.duration(0), 2001) << text;
  }
}

TEST(kineto, does_not_depend_on_the_order_of_members) {
  const auto events = read(
      R"json({"args":{"bytes":4096,"x":{"y":[1]},"correlation":9,"stream":7,"device":3},
              "dur":"2","tid":0,"pid":0,"ts":5,"name":"Memcpy DtoH (Device -> Pinned)",
              "cat":"gpu_memcpy","ph":"X"})json");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.begin(0), 5000);
  EXPECT_EQ(events.duration(0), 2000);
  EXPECT_EQ(events.correlation(0), 9U);
  EXPECT_EQ(events.stream_of(0).device, 3U);
  EXPECT_EQ(events.stream_of(0).id, 7);
  EXPECT_EQ(events.details(0)->bytes, 4096U);
  EXPECT_EQ(events.details(0)->direction, direction::device_to_host);
  EXPECT_EQ(events.details(0)->source_kind, memory_kind::device);
  EXPECT_EQ(events.details(0)->destination_kind, memory_kind::pinned);
}

TEST(kineto, finds_a_devices_number_where_old_files_have_it) {
  const auto events = read(
      R"({"ph":"X","cat":"Kernel","name":"k","pid":2,"tid":7,"ts":1,"dur":1},
         {"ph":"X","cat":"Kernel","name":"k","pid":"GPU 2","tid":"stream 7","ts":1,"dur":1,
          "args":{"stream":7}},
         {"ph":"X","cat":"kernel","name":"k","pid":2,"tid":7,"ts":1,"dur":1,
          "args":{"device":5,"stream":"9"}})");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events.stream_of(0).device, 2U);
  EXPECT_EQ(events.stream_of(0).id, 7);
  EXPECT_EQ(events.stream_of(1).device, std::nullopt);
  EXPECT_EQ(events.stream_of(1).id, 7);
  EXPECT_EQ(events.stream_of(2).device, 5U);
  EXPECT_EQ(events.stream_of(2).id, 9);
}

TEST(kineto, tells_threads_apart_by_numbers_and_words) {
  const auto named = [](std::string_view process, std::string_view thread) {
    return fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"o","ts":1,"dur":1,"pid":{},"tid":{}}})",
                       process, thread);
  };
  const auto events =
      read(fmt::format("{},{},{},{},{}", named("1", "2"), named("\"main\"", "2"),
                       named("1", "\"worker \\u00b5\""), named("1", "2"), named("\"1\"", "\"2\"")));
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events.thread_count(), 3U);
  EXPECT_EQ(events.thread_of(0), events.thread_of(3));
  // Some versions quote what others do not.
  EXPECT_EQ(events.thread_of(0), events.thread_of(4));
  EXPECT_EQ(events.thread_at(*events.thread_of(1)).process, "main");
  EXPECT_EQ(events.thread_at(*events.thread_of(2)).id, "worker \xc2\xb5");
}

TEST(kineto, leaves_unknown_what_the_file_does_not_say) {
  const auto events = read(event("gpu_memcpy", "Memcpy HtoD (Host -> Device)") + "," +
                           event("gpu_memcpy", "something", R"("bytes":null,"correlation":null)") +
                           "," + event("gpu_memset", "Memset (Unknown)"));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events.details(0)->bytes, std::nullopt);
  EXPECT_EQ(events.details(0)->source_kind, memory_kind::unknown);
  EXPECT_EQ(events.details(0)->engine, engine::unknown);
  EXPECT_EQ(events.details(0)->source_address, std::nullopt);
  EXPECT_EQ(events.correlation(0), std::nullopt);
  EXPECT_EQ(events.details(1)->direction, direction::unknown);
  EXPECT_EQ(events.details(1)->bytes, std::nullopt);
  EXPECT_EQ(events.details(2)->bytes, std::nullopt);
  EXPECT_EQ(events.about.api, gpu_api::unknown);
  EXPECT_EQ(events.about.api_version, "");
  EXPECT_EQ(events.about.rank, std::nullopt);
  EXPECT_THAT(events.about.devices, IsEmpty());
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("2 of 2 copies lack their bytes")));
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("1 of 1 copies do not say whether")));
  EXPECT_THAT(events.about.notes, Contains(HasSubstr("1 of 2 copies do not say their direction")));
}

TEST(kineto, knows_bytes_under_all_their_names) {
  for (const auto* name : {"bytes", "Bytes", "size", "sizeBytes"}) {
    for (const auto* value : {"4096", "\"4096\"", "\"0x1000\""}) {
      const auto events =
          read(event("gpu_memcpy", "Memcpy HtoD", fmt::format(R"("{}":{})", name, value)));
      EXPECT_EQ(events.details(0)->bytes, 4096U) << name << ' ' << value;
    }
  }
  // Zero bytes are known bytes.
  EXPECT_EQ(read(event("gpu_memset", "Memset", R"("bytes":0)")).details(0)->bytes, 0U);
}

TEST(kineto, takes_bytes_and_addresses_from_hips_calls) {
  const auto events = read(
      event("cuda_runtime", "hipMemcpyWithStream",
            R"("correlation":117,"src":"0x5567","dst":"0x7fda","size":"2560","kind":"1")") +
      "," +
      event("gpu_memcpy", "Memcpy (Host -> Device)", R"("correlation":117,"device":2,"stream":0)") +
      "," +
      event("cuda_runtime", "hipMemsetAsync", R"("correlation":118,"dst":"0x9","size":"64")") +
      "," + event("gpu_memset", "Memset", R"("correlation":118)"));
  ASSERT_EQ(events.size(), 4U);
  const auto& copy = *events.details(1);
  EXPECT_EQ(copy.bytes, 2560U);
  EXPECT_EQ(copy.direction, direction::host_to_device);
  EXPECT_EQ(copy.source_address, 0x5567U);
  EXPECT_EQ(copy.destination_address, 0x7fdaU);
  EXPECT_EQ(copy.source_kind, memory_kind::unknown);
  EXPECT_EQ(events.details(3)->bytes, 64U);
  EXPECT_EQ(events.about.api, gpu_api::hip);
  EXPECT_THAT(events.about.notes, ElementsAre(HasSubstr("1 of 1 copies lack their bytes: taken"),
                                              HasSubstr("1 of 1 copies do not say whether")));
}

TEST(kineto, does_not_overrule_a_copy_with_its_call) {
  const auto events =
      read(event("cuda_runtime", "hipMemcpyAsync", R"("correlation":1,"size":10,"kind":2)") + "," +
           event("gpu_memcpy", "Memcpy HtoD", R"("correlation":1,"bytes":20)"));
  EXPECT_EQ(events.details(1)->bytes, 20U);
  EXPECT_EQ(events.details(1)->direction, direction::host_to_device);
}

TEST(kineto, does_not_choose_between_calls_that_disagree) {
  const auto call = [](int size) {
    return event("cuda_runtime", "hipMemcpyAsync",
                 fmt::format(R"("correlation":1,"size":{},"kind":1)", size));
  };
  const auto copy = event("gpu_memcpy", "Memcpy HtoD", R"("correlation":1)");
  EXPECT_EQ(read(call(10) + "," + call(10) + "," + copy).details(2)->bytes, 10U);
  EXPECT_EQ(read(call(10) + "," + call(20) + "," + copy).details(2)->bytes, std::nullopt);
  EXPECT_EQ(read(call(10) + "," + call(20) + "," + call(10) + "," + copy).details(3)->bytes,
            std::nullopt);
}

TEST(kineto, takes_amds_own_kernels_for_copies_and_fills) {
  const auto events =
      read(event("cuda_runtime", "hipMemcpyAsync", R"("correlation":5,"size":"128","kind":"2")") +
           "," + event("kernel", "__amd_rocclr_copyBuffer", R"("correlation":5,"stream":3)") + "," +
           event("kernel", "__amd_rocclr_fillBufferAligned", R"("correlation":6)") + "," +
           event("kernel", "void fill_kernel()"));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events.kind(1), event_kind::copy);
  EXPECT_EQ(events.details(1)->engine, engine::kernel);
  EXPECT_EQ(events.details(1)->bytes, 128U);
  EXPECT_EQ(events.details(1)->direction, direction::device_to_host);
  EXPECT_EQ(events.stream_of(1).id, 3);
  EXPECT_EQ(events.kind(2), event_kind::fill);
  EXPECT_EQ(events.details(2)->engine, engine::kernel);
  EXPECT_EQ(events.details(2)->bytes, std::nullopt);
  EXPECT_EQ(events.kind(3), event_kind::kernel);
  EXPECT_EQ(events.details(3), nullptr);
}

TEST(kineto, keeps_what_allocations_hold) {
  const auto events = read(event("cuda_runtime", "hipMalloc", R"("ptr":"0x1000","size":"4096")") +
                           "," + event("cuda_runtime", "hipFree", R"("ptr":"0x1000")"));
  EXPECT_EQ(events.details(0)->bytes, 4096U);
  EXPECT_EQ(events.details(0)->destination_kind, memory_kind::device);
  EXPECT_EQ(events.details(0)->destination_address, 0x1000U);
  EXPECT_EQ(events.details(1)->bytes, std::nullopt);
  EXPECT_EQ(events.details(1)->destination_address, 0x1000U);
}

TEST(kineto, takes_call_stacks_apart) {
  const auto events =
      read(event("cpu_op", "aten::to",
                 R"("Call stack":"train.py(12): step; torch/nn/f.py(5): linear;;<built-in x>")") +
           "," + event("cpu_op", "aten::to", R"("Call stack":"")"));
  ASSERT_NE(events.site(0), nullptr);
  std::vector<std::string_view> frames;
  for (const auto frame : events.site(0)->frames) {
    frames.push_back(events.text(frame));
  }
  EXPECT_THAT(frames,
              ElementsAre("train.py(12): step", "torch/nn/f.py(5): linear", "<built-in x>"));
  EXPECT_EQ(events.site(1), nullptr);
}

TEST(kineto, reads_escapes_in_names) {
  const auto events = read(event("cpu_op", R"(a\"b\\c\u00b5\n\ud83d\ude00)"));
  EXPECT_EQ(events.name_text(0), "a\"b\\c\xc2\xb5\n\xf0\x9f\x98\x80");
}

TEST(kineto, knows_what_surrounds_the_events) {
  const auto events = read("", R"("deviceProperties":[{"id":0,"name":"NVIDIA H200",
      "totalGlobalMem":150109880320},{"id":1,"name":"Other"}],"distributedInfo":{"rank":3,
      "world_size":8},"cuda_runtime_version":12040,)");
  ASSERT_EQ(events.about.devices.size(), 2U);
  EXPECT_EQ(events.about.devices[0].index, 0U);
  EXPECT_EQ(events.about.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(events.about.devices[0].memory, 150109880320U);
  EXPECT_EQ(events.about.devices[1].index, 1U);
  EXPECT_EQ(events.about.devices[1].memory, std::nullopt);
  EXPECT_EQ(events.about.rank, 3);
  EXPECT_EQ(events.about.api_version, "12.4");
  EXPECT_EQ(events.about.file, "test.json");
  EXPECT_EQ(read("", R"("hip_runtime_version":60241134,)").about.api_version, "6.2");
}

TEST(kineto, believes_no_surroundings_of_another_type) {
  for (const auto* members :
       {R"("deviceProperties":5,"distributedInfo":[],"cuda_runtime_version":"x",)",
        R"("deviceProperties":[5,null,"a",[],{}],"distributedInfo":{"rank":"3"},)",
        R"("deviceProperties":[{"id":"0","name":"a"},{"id":-1},{"id":1e3},{"id":4294967295}],)",
        R"("deviceProperties":{"id":0},"distributedInfo":{"rank":1.5},"hip_runtime_version":-5,)",
        R"("deviceProperties":[{]},"distributedInfo":tru,"cuda_runtime_version":1e9,)"}) {
    const auto events = read("", members);
    EXPECT_THAT(events.about.devices, IsEmpty()) << members;
    EXPECT_EQ(events.about.rank, std::nullopt) << members;
    EXPECT_EQ(events.about.api_version, "") << members;
  }
  const auto odd = read("", R"("deviceProperties":[{"id":0,"name":7,"totalGlobalMem":-1}],)");
  ASSERT_EQ(odd.about.devices.size(), 1U);
  EXPECT_EQ(odd.about.devices[0].name, "");
  EXPECT_EQ(odd.about.devices[0].memory, std::nullopt);
}

TEST(kineto, says_how_many_events_have_no_duration) {
  const auto events = read(R"({"ph":"X","cat":"kernel","name":"k","ts":1},
                              {"ph":"X","cat":"kernel","name":"k","ts":1,"dur":null},)" +
                           event("kernel", "k"));
  EXPECT_EQ(events.size(), 1U);
  EXPECT_THAT(events.about.notes, ElementsAre("2 events without a duration are left out"));
}

}  // namespace
