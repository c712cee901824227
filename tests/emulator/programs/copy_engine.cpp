// SPDX-License-Identifier: Apache-2.0
// berth's copy engine over HIP: random copies of two threads, rows, a batch each way, and memory
// that is kept. Every byte is checked; ends with 0 only if none was wrong and no call has failed.
// Needs berth_kernels.cpp (`emulate --kernels`): batches are spread and collected by a kernel.
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "berth/context.hpp"
#include "berth/copy_engine.hpp"
#include "berth/unique_memory.hpp"
#include "runtime/kernels.hpp"
#include "support/copy_stress.hpp"

namespace {

using berth::bytes_t;
using berth::copy_path;
using berth::mib;

std::vector<std::byte> pattern(bytes_t bytes, std::uint64_t seed) {
  std::vector<std::byte> made(bytes);
  berth::runtime::write_pattern(made.data(), bytes, seed);
  return made;
}

std::uint64_t count_differences(const std::vector<std::byte>& one,
                                const std::vector<std::byte>& other) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    count += one[i] != other[i] ? 1U : 0U;
  }
  return count;
}

class trial {
public:
  // More threads than a small machine has CPUs: with fewer than three the nominal profile leaves
  // copies of these sizes to the runtime.
  trial()
      : context_(berth::context::open({.runtime = "hip"})),
        engine_(berth::copy_engine::make(
            context_,
            {.most_threads = 4, .ring_bytes = 4 * mib, .profile = berth::calibration::nominal})),
        stream_(context_.create_stream()),
        device_(context_.device(), 8 * mib) {
    engine_.prepare();
  }

  int run() {
    stress();
    rows();
    batch(600, 9000);
    batch(20'000, 16);  // more bytes of tables than of data
    kept();
    fmt::print("{} wrong bytes, {} failures\n", wrong_bytes_, failures_);
    return wrong_bytes_ == 0 && failures_ == 0 ? 0 : 1;
  }

private:
  void require(bool fine, std::string_view what) {
    if (!fine) {
      fmt::print("FAILED: {}\n", what);
      ++failures_;
    }
  }
  void say(std::string_view what, std::uint64_t wrong) {
    fmt::print("{}: {} wrong bytes\n", what, wrong);
    wrong_bytes_ += wrong;
  }

  void stress() {
    const auto outcome = berth::test::run_copy_stress(
        context_, engine_, {.copies = 400, .threads = 2, .largest = 4 * mib, .seed = 17});
    for (const auto& one : outcome.failures) {
      require(false, one);
    }
    require(outcome.staged > 0, "no copy was staged");
    say(fmt::format("stress of {} copies, {} of them staged", outcome.copies, outcome.staged),
        outcome.wrong_bytes);
  }

  // Pitched on both sides; what lies between the rows on the way back stays.
  void rows() {
    constexpr std::size_t width = 5000;
    constexpr std::size_t count = 800;
    constexpr std::size_t host_pitch = 5003;
    constexpr std::size_t device_pitch = 5120;
    const auto source = pattern(host_pitch * count, 1);
    auto back = pattern(host_pitch * count, 2);
    auto expected = back;
    for (std::size_t row = 0; row < count; ++row) {
      const auto from = source.begin() + static_cast<std::ptrdiff_t>(row * host_pitch);
      std::copy_n(from, width, expected.begin() + static_cast<std::ptrdiff_t>(row * host_pitch));
    }
    engine_.copy_2d({.dst = device_.data(),
                     .dst_pitch = device_pitch,
                     .src = source.data(),
                     .src_pitch = host_pitch,
                     .width = width,
                     .rows = count},
                    stream_);
    auto down = engine_.copy_2d({.dst = back.data(),
                                 .dst_pitch = host_pitch,
                                 .src = device_.data(),
                                 .src_pitch = device_pitch,
                                 .width = width,
                                 .rows = count},
                                stream_);
    const auto stats = down.wait();
    say(fmt::format("{} rows, back by {}", count, to_string(stats.plan.path)),
        count_differences(back, expected));
  }

  // Of 0 to `largest` bytes, each at a place of its own in the device's memory, of any alignment.
  void batch(std::size_t count, bytes_t largest) {
    std::vector<std::vector<std::byte>> sources;
    std::vector<std::vector<std::byte>> results;
    std::vector<berth::copy_range> up;
    std::vector<berth::copy_range> down;
    bytes_t at = 1;
    for (std::size_t i = 0; i < count; ++i) {
      const bytes_t bytes = i * 997 % (largest + 1);
      sources.push_back(pattern(bytes, i));
      results.emplace_back(bytes);
      up.push_back({device_.data() + at, sources.back().data(), bytes});
      down.push_back({results.back().data(), device_.data() + at, bytes});
      at += bytes + 1 + i % 16;
    }
    engine_.copy_batch(up, stream_);
    engine_.copy_batch(down, stream_).wait();
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      wrong += count_differences(sources[i], results[i]);
    }
    say(fmt::format("batches of {} ranges of at most {} bytes", count, largest), wrong);
  }

  void kept() {
    auto memory = pattern(3 * mib + 5, 5);
    const auto expected = memory;
    engine_.keep(memory);
    auto up = engine_.copy(device_.data(), memory.data(), memory.size(), stream_);
    require(up.stats().plan.path == copy_path::kept, "a kept range was not copied as one");
    up.wait();
    std::fill(memory.begin(), memory.end(), std::byte{0});
    const auto down = engine_.copy(memory.data(), device_.data(), memory.size(), stream_).wait();
    require(down.plan.path == copy_path::kept, "a kept range was not copied back as one");
    const auto wrong = count_differences(memory, expected);
    engine_.forget(memory);
    require(!engine_.try_forget(memory), "a range was forgotten twice");
    const auto after = engine_.plan(device_.data(), memory.data(), memory.size());
    require(after.path != copy_path::kept, "a range is kept that was forgotten");
    engine_.copy(device_.data(), memory.data(), memory.size(), stream_).wait();
    std::fill(memory.begin(), memory.end(), std::byte{0});
    engine_.copy_and_wait(memory.data(), device_.data(), memory.size(), stream_);
    say("a kept and forgotten range", wrong + count_differences(memory, expected));
  }

  berth::context context_;
  berth::copy_engine engine_;
  berth::stream stream_;
  berth::unique_memory<std::byte, berth::device_resource> device_;
  std::uint64_t wrong_bytes_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace

int main() {
  try {
    return trial().run();
  } catch (const std::exception& failure) {
    fmt::print("FAILED: {}\n", failure.what());
    return 1;
  }
}
