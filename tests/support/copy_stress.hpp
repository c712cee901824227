// SPDX-License-Identifier: Apache-2.0
// Random copies through a copy engine, every byte verified: sizes log-uniform, ends misaligned,
// several threads and streams, tickets waited for, dropped or left until the end. The same body
// runs on the simulator (tests) and on real GPUs (bench/copy_bench --stress).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "berth/context.hpp"
#include "berth/copy_engine.hpp"
#include "berth/unique_memory.hpp"
#include "runtime/driver.hpp"
#include "runtime/kernels.hpp"

namespace berth::test {

struct copy_stress {
  std::uint64_t copies = 1000;
  unsigned threads = 2;
  bytes_t largest = 4 * mib;
  std::uint64_t seed = 1;
};

struct stress_outcome {
  std::uint64_t copies = 0;
  std::uint64_t staged = 0;
  std::uint64_t wrong_bytes = 0;
  std::vector<std::string> failures;
};

// One thread's part: round trips host -> device -> host of a pattern, by ways and sizes of chance.
class stress_thread {
public:
  stress_thread(const context& on, copy_engine& engine, const copy_stress& how, unsigned index)
      : engine_(engine),
        how_(how),
        random_(how.seed * 1000 + index),
        stream_(on.create_stream()),
        device_(on.device(), how.largest + 64),
        pinned_(on.pinned(), how.largest + 64),
        source_(how.largest + 64),
        result_(how.largest + 64) {}

  stress_outcome run() {
    for (std::uint64_t done = 0; done < how_.copies / how_.threads; done += 2) {
      round_trip();
    }
    return std::move(outcome_);
  }

private:
  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
  }
  bytes_t size() {
    const double most = std::log2(static_cast<double>(how_.largest));
    const double chosen = std::uniform_real_distribution<double>(0, most)(random_);
    return std::max<bytes_t>(1, static_cast<bytes_t>(std::exp2(chosen)));
  }
  void note(const result<ticket>& made) {
    ++outcome_.copies;
    if (!made) {
      outcome_.failures.push_back(made.error().to_string());
      return;
    }
    const auto path = made->stats().plan.path;
    outcome_.staged += path == copy_path::staged_threaded || path == copy_path::staged_inline;
  }

  // What waits is chance, too: only the last copy's data is looked at after a wait.
  void settle(result<ticket> made) {
    if (made && below(3) == 0) {
      static_cast<void>(made->try_wait());
    }
  }

  void round_trip() {
    const bytes_t bytes = size();
    const auto seed = random_();
    auto* const device = device_.data() + below(64);
    auto* const source = below(8) == 0 ? pinned_.data() + below(64) : source_.data() + below(64);
    auto* const back = result_.data() + below(64);
    runtime::write_pattern(source, bytes, seed);
    std::memset(back, 0x5A, bytes);

    auto up = below(4) == 0 ? by_rows(device, source, bytes)
                            : engine_.try_copy(device, source, bytes, stream_);
    note(up);
    const bool pinned_source = source >= pinned_.data() && source < pinned_.data() + pinned_.size();
    if (pinned_source && up) {
      static_cast<void>(up->try_wait());  // before the source is written again
    }
    settle(std::move(up));
    if (below(4) == 0) {
      stream_.synchronize();
    }
    auto down = engine_.try_copy(back, device, bytes, stream_);
    note(down);
    if (down) {
      if (const auto ended = down->try_wait(); !ended) {
        outcome_.failures.push_back(ended.error().to_string());
        return;
      }
    }
    outcome_.wrong_bytes += runtime::count_mismatches(back, bytes, seed);
  }

  // The same bytes as rows of chance.
  result<ticket> by_rows(std::byte* dst, const std::byte* src, bytes_t bytes) {
    const bytes_t width = 1 + below(bytes);
    const bytes_t rows = bytes / width;
    auto made = engine_.try_copy_2d({.dst = dst,
                                     .dst_pitch = width,
                                     .src = src,
                                     .src_pitch = width,
                                     .width = width,
                                     .rows = rows},
                                    stream_);
    if (made && rows * width < bytes) {
      return engine_.try_copy(dst + rows * width, src + rows * width, bytes - rows * width,
                              stream_);
    }
    return made;
  }

  copy_engine& engine_;
  const copy_stress& how_;
  std::mt19937_64 random_;
  stream stream_;
  unique_memory<std::byte, device_resource> device_;
  unique_memory<std::byte, pinned_resource> pinned_;
  std::vector<std::byte> source_;
  std::vector<std::byte> result_;
  stress_outcome outcome_;
};

inline stress_outcome run_copy_stress(context& on, copy_engine& engine, const copy_stress& how) {
  std::vector<stress_outcome> parts(how.threads);
  {
    std::vector<std::jthread> running;
    for (unsigned index = 0; index < how.threads; ++index) {
      running.emplace_back(
          [&, index] { parts[index] = stress_thread(on, engine, how, index).run(); });
    }
  }
  stress_outcome all;
  for (auto& one : parts) {
    all.copies += one.copies;
    all.staged += one.staged;
    all.wrong_bytes += one.wrong_bytes;
    all.failures.insert(all.failures.end(), one.failures.begin(), one.failures.end());
  }
  return all;
}

}  // namespace berth::test
