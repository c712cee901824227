// SPDX-License-Identifier: Apache-2.0
#include "berth/units.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using berth::bytes_t;
using std::chrono::nanoseconds;

constexpr bytes_t largest = std::numeric_limits<bytes_t>::max();

TEST(gb_per_s, is_bytes_for_each_nanosecond) {
  EXPECT_DOUBLE_EQ(berth::gb_per_s(1'000'000'000, 1s), 1.0);
  EXPECT_DOUBLE_EQ(berth::gb_per_s(55'400, 1us), 55.4);
  EXPECT_DOUBLE_EQ(berth::gb_per_s(0, 1s), 0.0);
}

TEST(gb_per_s, of_no_time_is_zero_and_never_infinite) {
  EXPECT_EQ(berth::gb_per_s(1, 0ns), 0.0);
  EXPECT_EQ(berth::gb_per_s(1, -1ns), 0.0);
}

struct bytes_case {
  bytes_t bytes;
  std::string_view text;
};

TEST(format_bytes, uses_the_largest_unit_that_leaves_at_least_one) {
  for (const auto& [bytes, text] : {
           bytes_case{0, "0 B"},
           bytes_case{1, "1 B"},
           bytes_case{42, "42 B"},
           bytes_case{1023, "1023 B"},
           bytes_case{1024, "1 KiB"},
           bytes_case{1025, "1.00 KiB"},
           bytes_case{1536, "1.50 KiB"},
           bytes_case{4096, "4 KiB"},
           bytes_case{10 * berth::kib + 512, "10.5 KiB"},
           bytes_case{100 * berth::kib + 512, "100 KiB"},
           bytes_case{1023 * berth::kib, "1023 KiB"},
           bytes_case{berth::mib, "1 MiB"},
           bytes_case{berth::gib + berth::gib / 2, "1.50 GiB"},
           bytes_case{64 * berth::gib, "64 GiB"},
           bytes_case{3 * berth::tib, "3 TiB"},
           bytes_case{5000 * berth::tib, "5000 TiB"},
       }) {
    EXPECT_EQ(berth::format_bytes(bytes), text);
  }
}

TEST(format_bytes, never_rounds_to_1024_of_a_unit) {
  EXPECT_EQ(berth::format_bytes(berth::mib - 1), "1.00 MiB");
  EXPECT_EQ(berth::format_bytes(berth::gib - 1), "1.00 GiB");
  EXPECT_EQ(berth::format_bytes(berth::tib - 1), "1.00 TiB");
  EXPECT_EQ(berth::format_bytes(largest), "16777216 TiB");
}

TEST(format_duration, uses_the_largest_unit_that_leaves_at_least_one) {
  EXPECT_EQ(berth::format_duration(0ns), "0 ns");
  EXPECT_EQ(berth::format_duration(928ns), "928 ns");
  EXPECT_EQ(berth::format_duration(1000ns), "1.00 us");
  EXPECT_EQ(berth::format_duration(12'340ns), "12.3 us");
  EXPECT_EQ(berth::format_duration(117'912'345ns), "117.9 ms");
  EXPECT_EQ(berth::format_duration(4360ms), "4.36 s");
  EXPECT_EQ(berth::format_duration(2h), "7200.0 s");
}

TEST(format_duration, never_rounds_to_1000_of_a_unit) {
  EXPECT_EQ(berth::format_duration(999'949ns), "999.9 us");
  EXPECT_EQ(berth::format_duration(999'999ns), "1.00 ms");
  EXPECT_EQ(berth::format_duration(999'999'999ns), "1.00 s");
}

TEST(format_duration, keeps_the_sign) {
  EXPECT_EQ(berth::format_duration(-5ns), "-5 ns");
  EXPECT_EQ(berth::format_duration(-1500us), "-1.50 ms");
  EXPECT_EQ(berth::format_duration(nanoseconds::min()), "-9223372036.9 s");
}

TEST(format_rate, has_three_digits) {
  EXPECT_EQ(berth::format_rate(0), "0.00 GB/s");
  EXPECT_EQ(berth::format_rate(0.14), "0.14 GB/s");
  EXPECT_EQ(berth::format_rate(1.454), "1.45 GB/s");
  EXPECT_EQ(berth::format_rate(55.34), "55.3 GB/s");
  EXPECT_EQ(berth::format_rate(3350), "3350 GB/s");
}

TEST(format_rate, does_not_print_a_slow_copy_as_standing_still) {
  EXPECT_EQ(berth::format_rate(0.0021), "0.002 GB/s");
  EXPECT_EQ(berth::format_rate(0.099), "0.099 GB/s");
  EXPECT_EQ(berth::format_rate(0.0000021), "<0.001 GB/s");
}

TEST(parse_bytes, reads_binary_and_decimal_units_in_any_case) {
  for (const auto& [bytes, text] : {
           bytes_case{0, "0"}, bytes_case{4096, "4096"}, bytes_case{4096, "4096B"},
           bytes_case{4096, "4KiB"}, bytes_case{4096, " 4 kib "}, bytes_case{65536, "64k"},
           bytes_case{65536, "64K"}, bytes_case{2'000'000'000, "2GB"},
           bytes_case{2 * berth::gib, "2G"}, bytes_case{3 * berth::gib / 2, "1.5 GiB"},
           bytes_case{berth::tib, "1TiB"}, bytes_case{1'000'000'000'000, "1tb"},
           bytes_case{1000, "1e3"}, bytes_case{2, "1.5"},  // to the nearest byte
       }) {
    const auto parsed = berth::try_parse_bytes(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(parse_bytes, whole_numbers_are_exact_up_to_the_largest) {
  EXPECT_EQ(berth::parse_bytes("9007199254740993"), 9007199254740993U);  // 2^53 + 1
  EXPECT_EQ(berth::parse_bytes("9007199254740993 B"), 9007199254740993U);
  EXPECT_EQ(berth::parse_bytes("8796093022209KiB"), 8796093022209U * 1024);
  EXPECT_EQ(berth::parse_bytes("18446744073709551615"), largest);
  EXPECT_EQ(berth::parse_bytes("10000000 TiB"), 10'000'000 * berth::tib);
  EXPECT_EQ(berth::parse_bytes("12345678.5TiB"), 12'345'678 * berth::tib + berth::tib / 2);
}

TEST(parse_bytes, refuses_what_is_no_size) {
  for (const std::string_view text : {"",
                                      " ",
                                      "B",
                                      "KiB",
                                      "-1",
                                      "-0",
                                      "+1",
                                      "1 2",
                                      "1.5.2",
                                      "1XiB",
                                      "1 KiB/s",
                                      "0x10",
                                      "nan",
                                      "inf",
                                      "1e400",
                                      "18446744073709551616",
                                      "16777216TiB",
                                      "1e20",
                                      "64kk",
                                      "1,5GiB"}) {
    const auto parsed = berth::try_parse_bytes(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), berth::errc::usage);
    EXPECT_THAT(parsed.error().message(), testing::HasSubstr(text));
    EXPECT_FALSE(parsed.error().hint().empty());
  }
  EXPECT_THROW((void)berth::parse_bytes("much"), berth::usage_error);
}

TEST(parse_bytes, reads_what_format_bytes_prints) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 10'000; ++round) {
    const bytes_t bytes = random() >> (random() % 64);
    const auto parsed = berth::try_parse_bytes(berth::format_bytes(bytes));
    ASSERT_TRUE(parsed.has_value()) << berth::format_bytes(bytes);
    // Three digits: within half a per cent.
    EXPECT_NEAR(static_cast<double>(*parsed), static_cast<double>(bytes),
                0.0051 * static_cast<double>(bytes))
        << berth::format_bytes(bytes);
  }
}

TEST(parse_duration, reads_all_units) {
  EXPECT_EQ(berth::parse_duration("0ns"), 0ns);
  EXPECT_EQ(berth::parse_duration("250ms"), 250ms);
  EXPECT_EQ(berth::parse_duration("1.5 s"), 1500ms);
  EXPECT_EQ(berth::parse_duration("10us"), 10us);
  EXPECT_EQ(berth::parse_duration("10\xc2\xb5s"), 10us);
  EXPECT_EQ(berth::parse_duration("2min"), 2min);
  EXPECT_EQ(berth::parse_duration(" 7 NS "), 7ns);
}

TEST(parse_duration, whole_numbers_are_exact_up_to_the_largest) {
  EXPECT_EQ(berth::parse_duration("9007199254740993ns"), 9007199254740993ns);
  EXPECT_EQ(berth::parse_duration("9223372036854775807ns"), nanoseconds::max());
  EXPECT_EQ(berth::parse_duration("9223372036s"), 9223372036s);
}

TEST(parse_duration, refuses_what_is_no_duration) {
  for (const std::string_view text : {"", "5", "ms", "-1ms", "5 m", "5h", "1e300s", "nan s",
                                      "9223372036854775808ns", "9223372037s", "1 min 2 s"}) {
    const auto parsed = berth::try_parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), berth::errc::usage);
  }
  EXPECT_THROW((void)berth::parse_duration("soon"), berth::usage_error);
}

TEST(parse_duration, reads_what_format_duration_prints) {
  std::mt19937_64 random(20240608);
  for (int round = 0; round < 10'000; ++round) {
    const nanoseconds time(static_cast<std::int64_t>(random() >> (1 + random() % 63)));
    const auto parsed = berth::try_parse_duration(berth::format_duration(time));
    ASSERT_TRUE(parsed.has_value()) << berth::format_duration(time);
    EXPECT_NEAR(static_cast<double>(parsed->count()), static_cast<double>(time.count()),
                0.0051 * static_cast<double>(time.count()))
        << berth::format_duration(time);
  }
}

TEST(parse_rate, keeps_powers_of_1000_and_of_1024_apart) {
  EXPECT_DOUBLE_EQ(berth::parse_rate("55.4GB/s"), 55.4);
  EXPECT_DOUBLE_EQ(berth::parse_rate("25000 MB/s"), 25.0);
  EXPECT_DOUBLE_EQ(berth::parse_rate("32 GiB/s"), 34.359738368);
  EXPECT_DOUBLE_EQ(berth::parse_rate("1024 mib/s"), 1.073741824);
  EXPECT_DOUBLE_EQ(berth::parse_rate("1 TB/s"), 1000.0);
  EXPECT_DOUBLE_EQ(berth::parse_rate("1000000 KiB/s"), 1.024);
  EXPECT_DOUBLE_EQ(berth::parse_rate("5e8 B/s"), 0.5);
}

TEST(parse_rate, refuses_what_is_no_rate) {
  for (const std::string_view text :
       {"", "55", "GB/s", "55 GB", "-1 GB/s", "55 Gb/s/s", "inf GB/s"}) {
    EXPECT_FALSE(berth::try_parse_rate(text).has_value()) << text;
  }
  EXPECT_THROW((void)berth::parse_rate("fast"), berth::usage_error);
}

}  // namespace
