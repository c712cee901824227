// SPDX-License-Identifier: Apache-2.0
#include "trace/import/event_splitter.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/units.hpp"
#include "unit/trace/inputs.hpp"

namespace {

using berth::errc;
using berth::test::source_of;
using berth::test::unmark;
using berth::trace::event_batch;
using berth::trace::event_splitter;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view wanted[] = {"deviceProperties", "traceName", "a"};

struct outcome {
  std::vector<std::string> events;
  std::vector<std::uint64_t> positions;
  std::optional<berth::error> failure;
  bool cut = false;
  std::uint64_t lost = 0;
  std::vector<berth::trace::top_level_member> members;
};

// The batch is an array too: brackets around events, between which only commas and blanks stand.
void check_array(const event_batch& batch) {
  const auto array = batch.array();
  ASSERT_GE(array.data(), batch.text.data());
  ASSERT_LE(array.data() + array.size() + event_batch::padding,
            batch.text.data() + batch.text.size());
  ASSERT_EQ(array.front(), '[');
  ASSERT_EQ(array.back(), ']');
  std::size_t after = batch.events.front().offset;
  for (const auto& piece : batch.events) {
    const std::string_view between(batch.text.data() + after, piece.offset - after);
    ASSERT_EQ(between.find_first_not_of(" \n,"), std::string_view::npos);
    after = piece.offset + piece.length;
  }
}

outcome split(std::string_view text) {
  event_splitter splitter(source_of(text), wanted);
  outcome found;
  event_batch batch;
  while (true) {
    if (const auto read = splitter.next(batch); !read) {
      found.failure = read.error();
      return found;
    }
    if (batch.events.empty()) {
      break;
    }
    check_array(batch);
    for (const auto& piece : batch.events) {
      found.events.emplace_back(batch.text.data() + piece.offset, piece.length);
      found.positions.push_back(batch.position + piece.offset);
    }
  }
  found.cut = splitter.ended_early();
  found.lost = splitter.lost_bytes();
  found.members = splitter.members();
  return found;
}

TEST(event_splitter, takes_a_bare_array) {
  const auto found = split(R"([{"a":1},{"b":2}])");
  EXPECT_FALSE(found.failure);
  EXPECT_FALSE(found.cut);
  EXPECT_THAT(found.events, ElementsAre(R"({"a":1})", R"({"b":2})"));
  EXPECT_THAT(found.positions, ElementsAre(1, 9));
}

TEST(event_splitter, takes_an_object_with_members_on_both_sides) {
  const auto found = split(
      R"( { "a" : [1,{"b":"]"}] , "other": "}", "traceEvents" : [ {"x":1} , {} ] ,
           "traceName":"n","deviceProperties":[{}] } )");
  EXPECT_FALSE(found.failure);
  EXPECT_FALSE(found.cut);
  EXPECT_THAT(found.events, ElementsAre(R"({"x":1})", "{}"));
  ASSERT_EQ(found.members.size(), 3U);
  EXPECT_EQ(found.members[0].name, "a");
  EXPECT_EQ(found.members[0].text, R"([1,{"b":"]"}])");
  EXPECT_EQ(found.members[1].name, "traceName");
  EXPECT_EQ(found.members[1].text, R"("n")");
  EXPECT_EQ(found.members[2].text, "[{}]");
}

TEST(event_splitter, keeps_the_last_of_members_with_one_name) {
  const auto found = split(R"({"a":1,"traceEvents":[],"a":2})");
  ASSERT_EQ(found.members.size(), 1U);
  EXPECT_EQ(found.members[0].text, "2");
}

TEST(event_splitter, takes_no_events) {
  for (const auto* text : {"[]", " [ ] ", R"({"traceEvents":[]})", "\xEF\xBB\xBF[]"}) {
    const auto found = split(text);
    EXPECT_FALSE(found.failure) << text;
    EXPECT_FALSE(found.cut) << text;
    EXPECT_TRUE(found.events.empty()) << text;
  }
}

TEST(event_splitter, is_not_confused_by_what_strings_hold) {
  const std::vector<std::string> events{R"({"name":"a{b}[c]"})", R"({"name":"\"},{\""})",
                                        R"({"name":"\\"})", R"({"name":"\\\"]}","x":{}})",
                                        R"({"a\"}":[["]"],{"}":"\\"}]})"};
  const auto found = split(fmt::format("[{}]", fmt::join(events, ",")));
  EXPECT_FALSE(found.failure);
  EXPECT_EQ(found.events, events);
}

// One place of the text after the other lies on the border of the reader's buffer.
TEST(event_splitter, finds_the_same_wherever_a_buffer_ends) {
  const std::string tail =
      R"( {"name":"\"}]\\","args":{"x":[1,2]}} , {"b":2} ] , "traceName" : "n\"" , "a" : 12 } )";
  const std::string head = R"({"traceEvents": [{"pad":")";
  constexpr std::size_t buffer = berth::mib;
  for (std::size_t before = 0; before <= tail.size() + 3; ++before) {
    const std::string pad(buffer + 3 - head.size() - before, 'x');
    const auto found = split(head + pad + "\"}," + tail);
    ASSERT_FALSE(found.failure) << before << ": " << found.failure->to_string();
    ASSERT_FALSE(found.cut) << before;
    ASSERT_EQ(found.events.size(), 3U) << before;
    ASSERT_EQ(found.events[1], R"({"name":"\"}]\\","args":{"x":[1,2]}})") << before;
    ASSERT_EQ(found.events[2], R"({"b":2})") << before;
    ASSERT_EQ(found.positions[1], head.size() + pad.size() + 4) << before;
    ASSERT_EQ(found.members.size(), 2U) << before;
    ASSERT_EQ(found.members[0].text, R"("n\"")") << before;
    ASSERT_EQ(found.members[1].text, "12") << before;
  }
}

TEST(event_splitter, takes_events_and_members_larger_than_its_buffer) {
  const std::string long_text(3 * berth::mib, 'x');
  const auto found =
      split(fmt::format(R"({{"a":"{0}","traceEvents":[{{"b":"{0}"}},{{}}]}})", long_text));
  EXPECT_FALSE(found.failure);
  ASSERT_EQ(found.events.size(), 2U);
  EXPECT_EQ(found.events[0].size(), long_text.size() + 8);
  ASSERT_EQ(found.members.size(), 1U);
  EXPECT_EQ(found.members[0].text.size(), long_text.size() + 2);
}

// What is behind the last whole event and its comma.
std::uint64_t expected_lost(std::string_view text, std::size_t after_event) {
  auto at = std::min(text.find_first_not_of(" \n", after_event), text.size());
  if (at < text.size() && text[at] == ',') {
    at = std::min(text.find_first_not_of(" \n", at + 1), text.size());
  }
  return text.size() - at;
}

TEST(event_splitter, says_what_is_lost_wherever_the_text_ends) {
  const std::string before = R"({"a": {"b":[1,"]"]}, "traceEvents": [ )";
  const std::vector<std::string> events{R"({"ph":"X","name":"\"}{"})", R"({"args":{"x":[{},{}]}})",
                                        "{}"};
  const std::string whole =
      before + fmt::format("{}", fmt::join(events, " ,\n ")) + " ], \"traceName\": \"n\" } ";
  const auto end_of_events = whole.find(" ], \"traceName\"") + 2;
  const auto end_of_text = whole.rfind('}') + 1;
  for (std::size_t size = 1; size < end_of_text; ++size) {
    const auto text = std::string_view(whole).substr(0, size);
    const auto found = split(text);
    ASSERT_FALSE(found.failure) << size << ": " << found.failure->to_string();
    ASSERT_TRUE(found.cut) << size;
    std::size_t complete = 0;
    std::size_t after = 0;
    for (std::size_t at = before.size();
         complete < events.size() && at + events[complete].size() <= size; ++complete) {
      after = at + events[complete].size();
      at = after + 4;
    }
    ASSERT_EQ(found.events.size(), complete) << size;
    if (complete > 0 && size < end_of_events) {
      ASSERT_EQ(found.lost, expected_lost(text, after)) << size;
    }
    if (size >= end_of_events) {
      ASSERT_LE(found.lost, size - end_of_events) << size;
    }
  }
  EXPECT_FALSE(split(std::string_view(whole).substr(0, end_of_text)).cut);
}

TEST(event_splitter, names_the_byte_of_what_is_malformed) {
  // '^' marks the byte that the error must name.
  for (const auto* text : {
           R"([^1])",
           R"([^"a"])",
           R"([^,])",
           R"([^[]])",
           R"([^}])",
           R"([{} ^{}])",
           R"([{},^,{}])",
           R"([{}^}])",
           R"([{}] ^x)",
           R"([{}]^])",
           R"([]^{})",
           R"({^a:1})",
           R"({^1:1})",
           R"({^,"a":1})",
           R"({"a"^ 1})",
           R"({"a"^})",
           R"({"a":^})",
           R"({"a":^]})",
           R"({"a":^,"b":1})",
           R"({"a":1 ^"b":2})",
           R"({"a":1,^})",
           R"({"a":1^]})",
           R"({"traceEvents":^{}})",
           R"({"traceEvents":^1})",
           R"({"traceEvents":[]^]})",
           R"({"traceEvents":[] ^"b":1})",
           R"({"traceEvents":[]}^})",
           R"({"traceEvents":[]} ^garbage)",
           R"({"traceEvents":[],"traceEvents":^[]})",
       }) {
    auto [plain, position] = unmark(text);
    // A colon that is expected is missed at the next byte that is not blank.
    position = plain.find_first_not_of(' ', position);
    const auto found = split(plain);
    ASSERT_TRUE(found.failure) << text;
    EXPECT_EQ(found.failure->code(), errc::input_malformed) << text;
    EXPECT_EQ(found.failure->where(), fmt::format("test.json at byte {}", position)) << text;
  }
}

TEST(event_splitter, names_positions_of_decompressed_text_as_such) {
  const auto found = split(berth::test::gzip("[{},1]"));
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->where(), "test.json at byte 4 of the decompressed text");
}

TEST(event_splitter, refuses_what_is_no_trace) {
  for (const auto* text : {"x", "\"traceEvents\"", "12", "<html>", "\x1f", "PK\x03\x04", "}", "]",
                           "Kind,Agent_Id,Queue_Id"}) {
    const auto found = split(text);
    ASSERT_TRUE(found.failure) << text;
    EXPECT_EQ(found.failure->code(), errc::input_unknown_format) << text;
    EXPECT_THAT(found.failure->where(), HasSubstr("test.json at byte 0")) << text;
  }
  const auto other = split(R"({"a":1})");
  ASSERT_TRUE(other.failure);
  EXPECT_EQ(other.failure->code(), errc::input_unknown_format);
  const auto blank = split(" \n\t ");
  ASSERT_TRUE(blank.failure);
  EXPECT_EQ(blank.failure->code(), errc::input_empty);
}

TEST(event_splitter, refuses_an_event_or_member_without_end) {
  const std::string endless(65 * berth::mib, ' ');
  for (const auto* head : {R"([{"a":1},{)", R"({"a":[)"}) {
    const auto found = split(head + endless);
    ASSERT_TRUE(found.failure) << head;
    EXPECT_EQ(found.failure->code(), errc::input_out_of_range) << head;
    EXPECT_THAT(found.failure->message(), HasSubstr("64 MiB")) << head;
  }
}

}  // namespace
