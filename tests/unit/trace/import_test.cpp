// SPDX-License-Identifier: Apache-2.0
// What the importer says of files that are damaged, absurd or not traces at all.
#include "trace/import/import.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/units.hpp"
#include "unit/trace/inputs.hpp"

namespace {

using berth::errc;
using berth::test::gzip;
using berth::test::import_text;
using berth::test::source_of;
using berth::test::trace_of;
using berth::test::unmark;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kernel =
    R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1000,"dur":5})";

// A copy with this text in place of one of its members.
std::string copy_with(std::string_view member) {
  return fmt::format(
      R"({{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":5,"dur":1,{}}})",
      member);
}

berth::error failure_of(std::string_view text) {
  auto read = import_text(text);
  EXPECT_FALSE(read) << text.substr(0, 200);
  return read ? berth::error(errc::internal, "it was read") : read.error();
}

TEST(import, names_the_event_that_is_malformed) {
  // '^' marks the byte that the error must name: the event's first.
  for (const auto* inside : {
           R"(^{"ph" "X"})",
           R"(^{"ph":"X" "cat":"kernel"})",
           R"(^{"ph":"X",})",
           R"(^{"ph":"X"])",
           R"(^{ph:"X"})",
           R"(^{"ph":"\q"})",
           R"(^{"ph":"X","name":"\ud800"})",
           R"(^{"args":{"bytes" 1}})",
           R"(^{"args":{"bytes":1]})",
           R"(^{"args":{]})",
       }) {
    const auto [text, position] = unmark(trace_of(fmt::format("{},{},{}", kernel, inside, kernel)));
    const auto failure = failure_of(text);
    EXPECT_EQ(failure.code(), errc::input_malformed) << inside << failure.to_string();
    EXPECT_EQ(failure.where(), fmt::format("test.json at byte {}", position)) << inside;
  }
}

TEST(import, names_the_event_whose_numbers_cannot_be) {
  for (const auto* member : {
           R"("ts":"abc")",
           R"("ts":1e300)",
           R"("ts":true)",
           R"("ts":99999999999999999999)",
           R"("ts":1e15)",  // a thousand years behind the first
           R"("ts":-1e15)",
           R"("dur":-1)",
           R"("dur":-0.001)",
           R"("dur":1e14)",
           R"("dur":"long")",
           R"("dur":{},"dur":"x")",
           R"("args":{"bytes":-1})",
           R"("args":{"bytes":18446744073709551616})",
           R"("args":{"bytes":9223372036854775807})",
           R"("args":{"bytes":1e3})",
           R"("args":{"bytes":1.5})",
           R"("args":{"bytes":"many"})",
       }) {
    const auto [text, position] =
        unmark(trace_of(fmt::format("{},^{}", kernel, copy_with(member))));
    const auto failure = failure_of(text);
    EXPECT_EQ(failure.code(), errc::input_out_of_range) << member;
    EXPECT_EQ(failure.where(), fmt::format("test.json at byte {}", position)) << member;
  }
}

TEST(import, refuses_sums_that_would_not_fit) {
  std::string events;
  for (int repeat = 0; repeat < 40; ++repeat) {
    events += copy_with(R"("dur":3e13)") + ",";
  }
  EXPECT_THAT(failure_of(trace_of(events + std::string(kernel))).message(), HasSubstr("add up"));
  events.clear();
  for (int repeat = 0; repeat < 2000; ++repeat) {
    events += copy_with(R"("args":{"bytes":1125899906842624})") + ",";
  }
  EXPECT_THAT(failure_of(trace_of(events + std::string(kernel))).message(), HasSubstr("add up"));
}

TEST(import, names_the_event_whose_text_is_not_utf8) {
  for (const std::string_view damage :
       {"\xff", "\xc3(", "\xe2\x82", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80"}) {
    const auto event = fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":1000,"dur":5}})", damage);
    const auto before = fmt::format("{},", kernel);
    for (const auto& text :
         {trace_of(before + event), trace_of(before + event + "," + std::string(kernel))}) {
      const auto failure = failure_of(text);
      EXPECT_EQ(failure.code(), errc::input_encoding);
      EXPECT_EQ(failure.where(), fmt::format("test.json at byte {}", text.find(event)));
    }
  }
}

TEST(import, says_that_positions_are_of_the_decompressed_text) {
  EXPECT_EQ(failure_of(gzip(R"([{"ph":"X"},{"ph" 1}])")).where(),
            "test.json at byte 12 of the decompressed text");
}

TEST(import, refuses_what_is_no_trace) {
  EXPECT_EQ(failure_of("").code(), errc::input_empty);
  EXPECT_EQ(failure_of("\n \n").code(), errc::input_empty);
  EXPECT_EQ(failure_of(gzip("")).code(), errc::input_empty);
  EXPECT_EQ(failure_of("hello").code(), errc::input_unknown_format);
  EXPECT_EQ(failure_of(R"({"nodes":[]})").code(), errc::input_unknown_format);
  // Arrays of objects are common; these are not events.
  EXPECT_EQ(failure_of(R"([{"name":"a"},{"name":"b"}])").code(), errc::input_unknown_format);
  EXPECT_EQ(failure_of(R"({"traceEvents":[{}]})").code(), errc::input_unknown_format);
  const auto absent = berth::trace::try_import("/nonexistent.json");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), errc::file_unreadable);
}

TEST(import, refuses_what_follows_the_end) {
  EXPECT_EQ(failure_of(trace_of(kernel) + "x").code(), errc::input_malformed);
  EXPECT_EQ(failure_of(trace_of(kernel) + trace_of(kernel)).code(), errc::input_malformed);
  EXPECT_EQ(failure_of(trace_of(kernel, R"("traceEvents":[],)")).code(), errc::input_malformed);
}

TEST(import, takes_a_trace_without_events) {
  const auto read = import_text(trace_of("")).value();
  EXPECT_TRUE(read.events.empty());
  EXPECT_FALSE(read.cut);
}

TEST(import, survives_deep_nesting) {
  constexpr std::size_t depth = 400'000;
  const auto deep = std::string(depth, '[') + std::string(depth, ']');
  for (const auto& event : {copy_with(fmt::format(R"("args":{{"x":{}}})", deep)),
                            copy_with(fmt::format(R"("args":{{"bytes":{}}})", deep)),
                            copy_with(fmt::format(R"("args":{})", deep)),
                            copy_with(fmt::format(R"("name":{})", deep))}) {
    const auto read = import_text(trace_of(event));
    if (read) {
      EXPECT_EQ(read->events.size(), 1U);
      EXPECT_EQ(read->events.details(0)->bytes, std::nullopt);
    } else {
      EXPECT_EQ(read.error().code(), errc::input_malformed);
    }
  }
  EXPECT_TRUE(import_text(trace_of(kernel, fmt::format(R"("deviceProperties":{},)", deep))));
  // Brackets that are never closed.
  EXPECT_EQ(failure_of(R"({"traceEvents":[)" + std::string(depth, '{')).code(),
            errc::input_truncated);
}

TEST(import, refuses_an_event_of_absurd_length) {
  const auto failure = failure_of(
      trace_of(copy_with(R"("args":{"x":")" + std::string(65 * berth::mib, 'x') + "\"}")));
  EXPECT_EQ(failure.code(), errc::input_out_of_range);
  EXPECT_THAT(failure.where(), StartsWith("test.json at byte "));
}

TEST(import, takes_a_large_event_whole) {
  const auto read = import_text(trace_of(
      copy_with(R"("args":{"bytes":12,"x":")" + std::string(5 * berth::mib, '{') + "\"}")));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->events.details(0)->bytes, 12U);
}

// At every byte: what is whole is used and the loss is stated, or there is an error.
TEST(import, uses_what_is_whole_of_a_file_that_ends_early) {
  const auto whole = trace_of(fmt::format(R"({},{{"ph":"M","args":{{"name":"}}]\""}}}},{})", kernel,
                                          copy_with(R"("x":[{}])")),
                              R"("deviceProperties":[{"id":0,"name":"NVIDIA H200"}],)");
  std::uint64_t cuts = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto read = import_text(std::string_view(whole).substr(0, size));
    if (!read) {
      ASSERT_EQ(read.error().code(), size == 0 ? errc::input_empty : errc::input_truncated) << size;
      ASSERT_THAT(read.error().where(), StartsWith("test.json")) << size;
      ASSERT_LE(size, whole.find(kernel) + kernel.size()) << size;
      continue;
    }
    ++cuts;
    ASSERT_TRUE(read->cut) << size;
    ASSERT_EQ(read->cut->why.code(), errc::input_truncated);
    ASSERT_THAT(read->cut->why.message(), HasSubstr(fmt::format("ends at byte {}", size)));
    ASSERT_GE(read->cut->whole_events, read->events.size()) << size;
    ASSERT_EQ(read->events.kind(0), berth::trace::event_kind::kernel);
    ASSERT_EQ(read->events.about.devices.size(), 1U);
  }
  EXPECT_EQ(cuts, whole.size() - whole.find(kernel) - kernel.size());
  EXPECT_FALSE(import_text(whole).value().cut);
}

TEST(import, uses_what_is_whole_of_gzip_that_ends_early) {
  std::string events(kernel);
  for (int number = 0; number < 300; ++number) {
    events += "," + copy_with(fmt::format(R"("args":{{"bytes":{},"correlation":{}}})",
                                          number * 7919 % 1000, number * 104729 % 10007));
  }
  const auto packed = gzip(trace_of(events));
  std::uint64_t before = 0;
  for (std::size_t size = 2; size < packed.size(); ++size) {
    const auto read = import_text(std::string_view(packed).substr(0, size));
    if (!read) {
      ASSERT_EQ(read.error().code(), errc::input_truncated) << size << read.error().to_string();
      ASSERT_EQ(before, 0U) << size;
      continue;
    }
    ASSERT_TRUE(read->cut) << size;
    ASSERT_GE(read->cut->whole_events, before) << size;
    ASSERT_EQ(read->cut->whole_events, read->events.size()) << size;
    before = read->cut->whole_events;
  }
  // The last bytes are the check sum alone: nothing is lost, and the file is still not whole.
  EXPECT_EQ(before, 301U);
}

TEST(import, reports_progress_within_the_file) {
  std::string events(kernel);
  while (events.size() < 3 * berth::mib) {
    events += "," + std::string(kernel);
  }
  const auto text = trace_of(events);
  std::uint64_t calls = 0;
  std::uint64_t last = 0;
  const auto read = berth::trace::try_import(
      source_of(text), {.progress = [&](std::uint64_t done, std::uint64_t total) {
        ++calls;
        EXPECT_GE(done, last);
        EXPECT_LE(done, total);
        EXPECT_EQ(total, text.size());
        last = done;
      }});
  EXPECT_TRUE(read);
  EXPECT_GE(calls, 3U);
}

// The reading thread waits for room while the parsing one gives up: it must not wait for ever.
TEST(import, lets_an_exception_of_the_progress_through) {
  std::string events(kernel);
  while (events.size() < 10 * berth::mib) {
    events += "," + std::string(kernel);
  }
  EXPECT_THROW(
      static_cast<void>(berth::trace::try_import(
          source_of(trace_of(events)),
          {.progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); }})),
      std::runtime_error);
  // The same with an error in the first batch.
  EXPECT_EQ(failure_of(trace_of(R"({"ph" 1},)" + events)).code(), errc::input_malformed);
}

}  // namespace
