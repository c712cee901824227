// SPDX-License-Identifier: Apache-2.0
#include "berth/result.hpp"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace {

using berth::errc;
using berth::error;
using berth::result;

result<int> half(int number) {
  if (number % 2 != 0) {
    return error(errc::usage, "odd");
  }
  return number / 2;
}

TEST(result, holds_a_value) {
  const auto answer = half(84);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(static_cast<bool>(answer));
  EXPECT_EQ(*answer, 42);
  EXPECT_EQ(answer.value(), 42);
}

TEST(result, holds_an_error_and_throws_it_when_the_value_is_asked_for) {
  auto answer = half(3);
  ASSERT_FALSE(answer.has_value());
  EXPECT_FALSE(static_cast<bool>(answer));
  EXPECT_EQ(answer.error().message(), "odd");
  EXPECT_THROW((void)answer.value(), berth::usage_error);
  EXPECT_THROW((void)std::as_const(answer).value(), berth::usage_error);
  EXPECT_THROW((void)std::move(answer).value(), berth::usage_error);
}

TEST(result, value_can_be_changed_in_place) {
  result<std::string> word("be");
  word.value() += "rth";
  EXPECT_EQ(*word, "berth");
  EXPECT_EQ(word->size(), 5U);
  *word = "x";
  EXPECT_EQ(word.value(), "x");
}

TEST(result, takes_and_gives_what_can_only_be_moved) {
  result<std::unique_ptr<int>> owner(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = std::move(owner).value();
  EXPECT_EQ(*taken, 7);
}

TEST(result, a_value_of_its_own_that_looks_like_an_error_is_still_a_value) {
  const result<std::string> word("BTH-1001: not an error");
  EXPECT_TRUE(word.has_value());
}

TEST(result, of_nothing_is_success_unless_told_otherwise) {
  const result<void> fine;
  EXPECT_TRUE(fine.has_value());
  EXPECT_TRUE(static_cast<bool>(fine));
  EXPECT_NO_THROW(fine.value());

  const result<void> bad(error(errc::file_unwritable, "disk full"));
  EXPECT_FALSE(bad.has_value());
  EXPECT_FALSE(static_cast<bool>(bad));
  EXPECT_EQ(bad.error().code(), errc::file_unwritable);
  EXPECT_THROW(bad.value(), berth::input_error);
}

}  // namespace
