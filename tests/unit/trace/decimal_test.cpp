// SPDX-License-Identifier: Apache-2.0
#include "trace/import/decimal.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using berth::trace::nanoseconds_of_microseconds;
using berth::trace::signed_of;
using berth::trace::unsigned_of;

struct time_case {
  const char* text;
  std::optional<std::int64_t> nanoseconds;
};

TEST(nanoseconds_of_microseconds, reads_numbers_as_json_has_them) {
  const time_case cases[] = {
      {"0", 0},
      {"1", 1000},
      {"0.5", 500},
      {"0.001", 1},
      {"12.34", 12340},
      {"5204826544920.552", 5'204'826'544'920'552},
      // Since 1970: a double would be wrong by hundreds of nanoseconds.
      {"1790857026000000.123", 1'790'857'026'000'000'123},
      {"0.0004", 0},
      {"0.0005", 1},
      {"0.0004999", 0},
      {"1.9996", 2000},
      {"1.99949", 1999},
      {"-1.5", -1500},
      {"-0.0005", -1},
      {"1e3", 1'000'000},
      {"1.5E2", 150'000},
      {"25e-1", 2500},
      {"-1e0", -1000},
      {"1e+2", 100'000},
      {"9000000000000000", 9'000'000'000'000'000'000},
  };
  for (const auto& [text, nanoseconds] : cases) {
    EXPECT_EQ(nanoseconds_of_microseconds(text), nanoseconds) << text;
  }
}

TEST(nanoseconds_of_microseconds, refuses_what_is_no_time) {
  for (const auto* text : {"",
                           "-",
                           ".",
                           ".5",
                           "5.",
                           "1.5.5",
                           "1,5",
                           " 1",
                           "1 ",
                           "abc",
                           "1abc",
                           "nan",
                           "inf",
                           "-inf",
                           "0x10",
                           "+1",
                           "--1",
                           "1e",
                           "1e999",
                           "1e17",
                           "-1e17",
                           "99999999999999999999",
                           "9999999999999999",
                           "9223372036854775807",
                           "true",
                           "null",
                           "1us",
                           "\x31\xff"}) {
    EXPECT_EQ(nanoseconds_of_microseconds(text), std::nullopt) << text;
  }
}

TEST(nanoseconds_of_microseconds, leaves_room_for_a_year_behind_the_largest) {
  constexpr std::int64_t year = 366LL * 24 * 3600 * 1'000'000'000;
  for (const auto* text : {"9000000000000000.9999", "9000000000000009.9", "9e15", "9.0000e15"}) {
    const auto largest = nanoseconds_of_microseconds(text);
    if (largest) {
      EXPECT_LE(*largest, std::numeric_limits<std::int64_t>::max() - year) << text;
    }
  }
}

TEST(nanoseconds_of_microseconds, is_the_inverse_of_printing) {
  std::mt19937_64 random(42);
  std::uniform_int_distribution<std::int64_t> any(0, 8'000'000'000'000'000'000);
  for (int repeat = 0; repeat < 10'000; ++repeat) {
    const auto time = any(random) >> (repeat % 60);
    const auto text = fmt::format("{}.{:03}", time / 1000, time % 1000);
    ASSERT_EQ(nanoseconds_of_microseconds(text), time) << text;
  }
}

TEST(unsigned_of, reads_decimal_and_hexadecimal) {
  EXPECT_EQ(unsigned_of("0"), 0U);
  EXPECT_EQ(unsigned_of("2560"), 2560U);
  EXPECT_EQ(unsigned_of("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(unsigned_of("0x7f3a"), 0x7f3aU);
  EXPECT_EQ(unsigned_of("0X7F3A"), 0x7f3aU);
  EXPECT_EQ(unsigned_of("0xffffffffffffffff"), std::numeric_limits<std::uint64_t>::max());
}

TEST(unsigned_of, refuses_everything_else) {
  for (const auto* text : {"", "0x", "-1", "+1", "1.0", "1e3", " 1", "1 ", "18446744073709551616",
                           "0x10000000000000000", "0xg", "0x-1", "seven"}) {
    EXPECT_EQ(unsigned_of(text), std::nullopt) << text;
  }
}

TEST(signed_of, reads_decimal_with_a_sign) {
  EXPECT_EQ(signed_of("-7"), -7);
  EXPECT_EQ(signed_of("7"), 7);
  EXPECT_EQ(signed_of("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const auto* text : {"", "-", "0x7", "7.0", "stream 7", "9223372036854775808"}) {
    EXPECT_EQ(signed_of(text), std::nullopt) << text;
  }
}

}  // namespace
