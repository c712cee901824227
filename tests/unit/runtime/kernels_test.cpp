// SPDX-License-Identifier: Apache-2.0
// The test pattern on the host, and plans of launches.
#include "runtime/kernels.hpp"

#include <array>
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/launch_plan.hpp"

namespace berth::runtime {
namespace {

using ::testing::HasSubstr;

TEST(pattern, is_the_splitmix64_sequence) {
  // The first outputs for seed 0 and 1234567, as published with the generator.
  EXPECT_EQ(pattern_word(0, 0), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(pattern_word(0, 1), 0x6E789E6AA1B965F4U);
  EXPECT_EQ(pattern_word(1234567, 0), 6457827717110365317U);
  EXPECT_EQ(pattern_word(1234567, 1), 3203168211198807973U);
}

TEST(pattern, of_any_part_agrees_with_the_whole) {
  std::vector<std::byte> whole(1000);
  write_pattern(whole.data(), whole.size(), 42);
  for (const bytes_t offset : {0U, 1U, 7U, 8U, 13U, 64U}) {
    for (const bytes_t bytes : {0U, 1U, 5U, 8U, 9U, 17U, 300U}) {
      std::vector<std::byte> part(bytes);
      write_pattern(part.data(), bytes, 42, offset);
      EXPECT_TRUE(
          std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)))
          << offset << " " << bytes;
      EXPECT_EQ(count_mismatches(whole.data() + offset, bytes, 42, offset), 0U);
    }
  }
}

TEST(pattern, counts_bytes_that_differ) {
  std::vector<std::byte> data(100);
  write_pattern(data.data(), data.size(), 7, 3);
  for (const std::size_t index : {0U, 6U, 50U, 51U, 99U}) {
    data[index] ^= std::byte{1};
  }
  EXPECT_EQ(count_mismatches(data.data(), data.size(), 7, 3), 5U);
  EXPECT_GT(count_mismatches(data.data(), data.size(), 8, 3), 80U);
}

class plans : public ::testing::Test {
protected:
  static launch_plan plan(const kernel_request& request, launch_shape shape = {}) {
    auto made = plan_launch(request, shape, {.compute_units = 10, .clock_khz = 100'000});
    EXPECT_TRUE(made) << made.error().to_string();
    EXPECT_TRUE(made->has_value());
    return **made;
  }
  static std::string refusal(const kernel_request& request, launch_shape shape = {}) {
    const auto made = plan_launch(request, shape, {});
    EXPECT_FALSE(made);
    return made ? "" : made.error().to_string();
  }

  alignas(16) std::array<std::byte, 4096> data_{};
  std::array<scatter_entry, 3> table_{};
  std::uint64_t wrong_ = 0;
};

TEST_F(plans, take_no_more_blocks_than_are_of_use) {
  EXPECT_EQ(plan(kernel_copy{data_.data(), data_.data(), 16}).blocks, 1U);
  EXPECT_EQ(plan(kernel_copy{data_.data(), data_.data(), bytes_t{16} * 512 * 3}).blocks, 3U);
  EXPECT_EQ(plan(kernel_copy{data_.data(), data_.data(), gib}).blocks, 40U);
  EXPECT_EQ(plan(kernel_copy{data_.data(), data_.data(), 1}).blocks, 1U);
  const auto shaped =
      plan(kernel_copy{data_.data(), data_.data(), 16}, {.blocks = 7, .threads = 64});
  EXPECT_EQ(shaped.blocks, 7U);
  EXPECT_EQ(shaped.threads, 64U);
}

TEST_F(plans, of_a_scatter_have_64_threads_for_each_entry) {
  const auto blocks_for = [&](std::uint64_t entries) {
    return plan(kernel_scatter{.packed = data_.data(), .table = table_.data(), .entries = entries})
        .blocks;
  };
  EXPECT_EQ(blocks_for(1), 1U);
  EXPECT_EQ(blocks_for(8), 1U);
  EXPECT_EQ(blocks_for(9), 2U);
  EXPECT_EQ(blocks_for(100'000), 40U);
}

TEST_F(plans, hold_the_parameters_in_the_kernels_order) {
  const auto address = reinterpret_cast<std::uintptr_t>(data_.data());
  const auto fill = plan(kernel_fill{.dst = data_.data(), .bytes = 100, .seed = 5, .offset = 16});
  EXPECT_THAT(fill.parameters, ::testing::ElementsAre(address, 100, 5, 2, 0));
  const auto touch = plan(kernel_touch{
      .first = data_.data(), .bytes = 100, .stride = 10, .access = touch_access::write});
  EXPECT_THAT(touch.parameters, ::testing::ElementsAre(address, 100, 10, 1, 0));
  const auto verify = plan(kernel_verify{
      .data = data_.data(), .bytes = 100, .seed = 5, .offset = 8, .mismatches = &wrong_});
  EXPECT_THAT(verify.parameters, ::testing::ElementsAre(address, 100, 5, 1,
                                                        reinterpret_cast<std::uintptr_t>(&wrong_)));
  EXPECT_EQ(verify.kernel, builtin_kernel::verify);
  const auto table = reinterpret_cast<std::uintptr_t>(table_.data());
  const auto spread =
      plan(kernel_scatter{.packed = data_.data(), .table = table_.data(), .entries = 3});
  EXPECT_THAT(spread.parameters, ::testing::ElementsAre(address, table, 3, 0, 0));
  EXPECT_EQ(spread.kernel, builtin_kernel::scatter);
  const auto collect = plan(kernel_scatter{
      .packed = data_.data(), .table = table_.data(), .entries = 3, .way = scatter_way::collect});
  EXPECT_THAT(collect.parameters, ::testing::ElementsAre(address, table, 3, 1, 0));
}

TEST_F(plans, count_time_in_ticks_of_the_devices_clock) {
  EXPECT_EQ(plan(kernel_spin{nullptr, std::chrono::milliseconds(3)}).parameters[1], 300'000U);
  EXPECT_EQ(plan(kernel_spin{nullptr, std::chrono::nanoseconds(1)}).parameters[1], 100U);
  EXPECT_EQ(plan(kernel_spin{nullptr, std::chrono::seconds(10)}).parameters[1], 1'000'000'000U);
}

TEST_F(plans, of_nothing_are_nothing) {
  for (const kernel_request& request :
       {kernel_request(kernel_copy{}), kernel_request(kernel_fill{}),
        kernel_request(kernel_touch{}), kernel_request(kernel_verify{}),
        kernel_request(kernel_scatter{})}) {
    const auto made = plan_launch(request, {}, {});
    ASSERT_TRUE(made);
    EXPECT_FALSE(made->has_value());
  }
}

TEST_F(plans, refuse_what_the_requests_exclude) {
  EXPECT_THAT(refusal(kernel_copy{nullptr, data_.data(), 1}), HasSubstr("null"));
  EXPECT_THAT(refusal(kernel_fill{.dst = data_.data() + 1, .bytes = 8}),
              HasSubstr("multiples of 8"));
  EXPECT_THAT(refusal(kernel_fill{.dst = data_.data(), .bytes = 8, .offset = 4}),
              HasSubstr("multiples of 8"));
  EXPECT_THAT(refusal(kernel_touch{.first = data_.data(), .bytes = 8, .stride = 0}),
              HasSubstr("stride"));
  EXPECT_THAT(refusal(kernel_spin{nullptr, std::chrono::seconds(0)}), HasSubstr("at_most"));
  EXPECT_THAT(refusal(kernel_spin{nullptr, std::chrono::seconds(11)}), HasSubstr("at_most"));
  EXPECT_THAT(refusal(kernel_verify{.data = data_.data(), .bytes = 8}), HasSubstr("mismatches"));
  EXPECT_THAT(refusal(kernel_scatter{nullptr, table_.data(), 1}), HasSubstr("null"));
  EXPECT_THAT(refusal(kernel_scatter{data_.data(), nullptr, 1}), HasSubstr("null"));
  const auto* const odd_table = reinterpret_cast<const scatter_entry*>(data_.data() + 4);
  EXPECT_THAT(refusal(kernel_scatter{data_.data(), odd_table, 1}), HasSubstr("8-byte aligned"));
  EXPECT_THAT(refusal(kernel_copy{}, {.threads = 100}), HasSubstr("64"));
  EXPECT_THAT(refusal(kernel_copy{}, {.threads = 2048}), HasSubstr("1024"));
  EXPECT_THAT(refusal(kernel_copy{}, {.blocks = 1U << 31U}), HasSubstr("blocks"));
}

}  // namespace
}  // namespace berth::runtime
