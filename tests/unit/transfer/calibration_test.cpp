// SPDX-License-Identifier: Apache-2.0
// Whether staging wins on a machine: what a measurement concludes, also on one that is busy, and
// how a wrong conclusion heals.
#include "transfer/calibration.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "transfer_fixture.hpp"

namespace berth::transfer {
namespace {

constexpr bytes_t small_size = 4 * mib;
constexpr bytes_t large_size = 8 * mib;

copy_profile both_rules() {
  const staging_rule small{.from = small_size,
                           .threads = 4,
                           .first_block = 64 * kib,
                           .largest_block = 1 * mib,
                           .piece = 64 * kib};
  auto large = small;
  large.from = large_size;
  return {.to_device = {small, large}, .to_host = {small, large}, .known = {}, .source = "test"};
}

// A simulated GPU with a "staged" copy that takes a share of the runtime's time.
class Calibration : public testing::Test {
protected:
  // How long a trial takes, as a share of the runtime's copy; may depend on which trial it is.
  using share = std::function<double(const staging_rule& rule, int trial)>;

  [[nodiscard]] copy_profile measure(const share& of, const copy_profile* earlier = nullptr) {
    trials_ = 0;
    const auto stage = [&](const copy_range& ends, direction /*way*/,
                           const staging_rule& rule) -> result<void> {
      const auto part = static_cast<bytes_t>(static_cast<double>(ends.bytes) * of(rule, trials_++));
      for (bytes_t left = part; left > 0;) {
        const auto now = std::min(left, ends.bytes);
        auto copied = gpu_->copy_async(ends.dst, ends.src, now, stream_);
        if (!copied) {
          return copied;
        }
        left -= now;
      }
      return gpu_->synchronize_stream(stream_);
    };
    return calibrate(*gpu_, 0, stream_, both_rules(), earlier, stage).value();
  }

  std::shared_ptr<runtime::sim_driver> gpu_ = test::simulated_engine::make({});
  runtime::stream_handle stream_ = gpu_->create_stream(0, {}).value();
  int trials_ = 0;
};

double always(double share) {
  return share;
}

TEST_F(Calibration, KeepsWhatWins) {
  const auto found = measure([](const auto&, int) { return always(0.5); });
  EXPECT_EQ(found.to_device, both_rules().to_device);
  EXPECT_EQ(found.to_host, both_rules().to_host);
  EXPECT_FALSE(is_in_doubt(found));
  EXPECT_EQ(trials_, 4 * 3);
}

TEST_F(Calibration, LeavesToTheRuntimeWhatLoses) {
  const auto found =
      measure([](const auto& rule, int) { return rule.from == small_size ? 2.0 : 0.5; });
  EXPECT_EQ(found.to_device[0].threads, 0U);
  EXPECT_EQ(found.to_device[0].losses, 1U);
  EXPECT_EQ(found.to_device[1].threads, 4U);
  EXPECT_EQ(found.to_host[0].threads, 0U);
  EXPECT_TRUE(is_in_doubt(found));
}

// Threads that spin beside it take the CPU from most trials.
TEST_F(Calibration, OneGoodTrialOfManyIsEnough) {
  const auto found = measure([](const auto&, int trial) { return trial % 8 == 7 ? 0.5 : 2.0; });
  EXPECT_EQ(found.to_device, both_rules().to_device);
  EXPECT_EQ(found.to_host, both_rules().to_host);
}

TEST_F(Calibration, MeasuresAgainOnlyWhatIsInDoubt) {
  const auto first =
      measure([](const auto& rule, int) { return rule.from == small_size ? 2.0 : 0.5; });
  const auto second = measure([](const auto&, int) { return always(0.5); }, &first);
  EXPECT_EQ(trials_, 2 * 3);  // one size, both directions
  EXPECT_EQ(second.to_device, both_rules().to_device);
  EXPECT_FALSE(is_in_doubt(second));
}

TEST_F(Calibration, BelievesALossThatThreeProcessesFound) {
  auto found = measure([](const auto&, int) { return always(2.0); });
  for (unsigned process = 2; process <= losses_to_believe; ++process) {
    EXPECT_TRUE(is_in_doubt(found));
    found = measure([](const auto&, int) { return always(2.0); }, &found);
  }
  EXPECT_FALSE(is_in_doubt(found));
  const auto later = measure([](const auto&, int) { return always(0.5); }, &found);
  EXPECT_EQ(trials_, 0);
  EXPECT_EQ(later.to_device, found.to_device);
}

TEST_F(Calibration, ASizeWithoutAnEarlierResultIsMeasured) {
  auto earlier = measure([](const auto&, int) { return always(2.0); });
  earlier.to_device.erase(earlier.to_device.begin());
  const auto found = measure([](const auto&, int) { return always(0.5); }, &earlier);
  EXPECT_EQ(found.to_device, both_rules().to_device);
}

}  // namespace
}  // namespace berth::transfer
