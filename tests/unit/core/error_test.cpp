// SPDX-License-Identifier: Apache-2.0
#include "berth/error.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using berth::errc;
using berth::error;

TEST(error_table, ascends_by_number_without_repeating_one) {
  const auto table = berth::error_table();
  ASSERT_FALSE(table.empty());
  const auto not_ascending = std::adjacent_find(
      table.begin(), table.end(), [](const auto& a, const auto& b) { return a.code >= b.code; });
  EXPECT_EQ(not_ascending, table.end());
}

TEST(error_table, names_are_unique_and_made_of_lower_case_words) {
  std::set<std::string_view> names;
  for (const auto& row : berth::error_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_THAT(std::string(row.name), testing::MatchesRegex("[a-z]+(-[a-z]+)*"));
  }
}

TEST(error_table, meanings_are_sentences) {
  for (const auto& row : berth::error_table()) {
    ASSERT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_TRUE(row.meaning.ends_with('.')) << row.name;
  }
}

// The numbers are part of the interface: programs and search engines know them.
TEST(error_table, numbers_never_change) {
  EXPECT_EQ(berth::error_id(errc::usage), "BTH-1001");
  EXPECT_EQ(berth::error_id(errc::file_unreadable), "BTH-1101");
  EXPECT_EQ(berth::error_id(errc::file_unwritable), "BTH-1102");
  EXPECT_EQ(berth::error_id(errc::input_empty), "BTH-1103");
  EXPECT_EQ(berth::error_id(errc::input_unknown_format), "BTH-1104");
  EXPECT_EQ(berth::error_id(errc::input_malformed), "BTH-1105");
  EXPECT_EQ(berth::error_id(errc::input_encoding), "BTH-1106");
  EXPECT_EQ(berth::error_id(errc::input_out_of_range), "BTH-1107");
  EXPECT_EQ(berth::error_id(errc::input_truncated), "BTH-1108");
  EXPECT_EQ(berth::error_id(errc::input_compression), "BTH-1109");
  EXPECT_EQ(berth::error_id(errc::internal), "BTH-1901");
}

TEST(error, carries_what_it_was_given) {
  const error fault(errc::input_malformed, "not JSON", "trace.json at byte 812", "is it gzip?");
  EXPECT_EQ(fault.code(), errc::input_malformed);
  EXPECT_EQ(fault.id(), "BTH-1105");
  EXPECT_EQ(fault.message(), "not JSON");
  EXPECT_EQ(fault.where(), "trace.json at byte 812");
  EXPECT_EQ(fault.hint(), "is it gzip?");
  EXPECT_EQ(fault.scope(), berth::error_scope::call);
}

TEST(error, prints_on_one_line_and_leaves_out_what_is_empty) {
  EXPECT_EQ(error(errc::input_malformed, "not JSON", "a.json", "is it gzip?").to_string(),
            "BTH-1105: a.json: not JSON (is it gzip?)");
  EXPECT_EQ(error(errc::input_malformed, "not JSON", "a.json").to_string(),
            "BTH-1105: a.json: not JSON");
  EXPECT_EQ(error(errc::input_malformed, "not JSON", "", "is it gzip?").to_string(),
            "BTH-1105: not JSON (is it gzip?)");
  EXPECT_EQ(error(errc::input_malformed, "not JSON").to_string(), "BTH-1105: not JSON");
}

TEST(error, each_code_throws_the_type_of_its_group_with_its_details) {
  for (const auto& row : berth::error_table()) {
    const error fault(row.code, "what", "where", "hint");
    try {
      berth::throw_error(fault);
    } catch (const berth::exception& caught) {
      EXPECT_EQ(caught.details().code(), row.code);
      EXPECT_EQ(caught.details().where(), "where");
      EXPECT_EQ(caught.what(), fault.to_string());
      const auto group = static_cast<unsigned>(row.code) / 100;
      EXPECT_EQ(dynamic_cast<const berth::usage_error*>(&caught) != nullptr, group == 10);
      EXPECT_EQ(dynamic_cast<const berth::input_error*>(&caught) != nullptr, group == 11);
    }
  }
}

TEST(error, exceptions_are_standard_runtime_errors) {
  EXPECT_THROW(berth::throw_error(error(errc::usage, "no")), std::runtime_error);
}

}  // namespace
