// SPDX-License-Identifier: Apache-2.0
#include "transfer/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace berth::transfer {
namespace {

constexpr std::chrono::milliseconds time_limit{200};
constexpr bytes_t largest_trial = 32 * mib;
constexpr int repetitions = 3;
// Staging costs CPU time that the runtime's copy does not: it must win by a margin.
constexpr double least_gain = 1.03;

// Device and host memory for trials.
class trial_memory {
public:
  static result<std::unique_ptr<trial_memory>> make(runtime::driver& gpu, int device) {
    std::unique_ptr<trial_memory> made(new trial_memory(gpu));
    auto memory = gpu.allocate_device(device, largest_trial);
    if (!memory) {
      return memory.error();
    }
    made->device_ = *memory;
    return made;
  }
  trial_memory(const trial_memory&) = delete;
  trial_memory& operator=(const trial_memory&) = delete;
  trial_memory(trial_memory&&) = delete;
  trial_memory& operator=(trial_memory&&) = delete;
  ~trial_memory() { static_cast<void>(gpu_.free_device(device_)); }

  [[nodiscard]] copy_range ends(direction way, bytes_t bytes) {
    return way == direction::host_to_device ? copy_range{device_, host_.data(), bytes}
                                            : copy_range{host_.data(), device_, bytes};
  }

private:
  explicit trial_memory(runtime::driver& gpu) : gpu_(gpu), host_(largest_trial, std::byte{1}) {}

  runtime::driver& gpu_;
  void* device_ = nullptr;
  std::vector<std::byte> host_;
};

// The shortest of some times: what else the machine does only makes them longer.
template <typename Body>
result<std::chrono::nanoseconds> shortest(runtime::driver& gpu, Body body) {
  auto best = std::chrono::nanoseconds::max();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const auto begin = gpu.now();
    if (const result<void> done = body(); !done) {
      return done.error();
    }
    best = std::min(best, gpu.now() - begin);
  }
  return best;
}

class comparison {
public:
  comparison(runtime::driver& gpu, runtime::stream_handle stream, const staged_trial& stage,
             trial_memory& memory)
      : gpu_(gpu), stream_(stream), stage_(stage), memory_(memory), begun_(gpu.now()) {}

  [[nodiscard]] result<void> judge(direction way, std::vector<staging_rule>& rules) {
    for (auto& rule : rules) {
      const bytes_t bytes = rule.from + rule.from / 2;
      if (bytes > largest_trial || gpu_.now() - begun_ > time_limit) {
        continue;
      }
      const auto ends = memory_.ends(way, bytes);
      const auto plain = shortest(gpu_, [&]() -> result<void> {
        auto queued = gpu_.copy_async(ends.dst, ends.src, ends.bytes, stream_);
        return queued ? gpu_.synchronize_stream(stream_) : queued;
      });
      if (!plain) {
        return plain.error();
      }
      const auto staged = shortest(gpu_, [&] { return stage_(ends, way, rule); });
      if (!staged) {
        return staged.error();
      }
      if (static_cast<double>(staged->count()) * least_gain > static_cast<double>(plain->count())) {
        rule.threads = 0;
      }
    }
    return {};
  }

private:
  runtime::driver& gpu_;
  runtime::stream_handle stream_;
  const staged_trial& stage_;
  trial_memory& memory_;
  std::chrono::nanoseconds begun_;
};

}  // namespace

std::string machine_key(const runtime::driver& gpu, int device, unsigned threads) {
  const auto& info = gpu.info();
  const auto& one = gpu.devices()[static_cast<std::size_t>(device)];
  return fmt::format("{}-{}-{}-{}threads", one.name, one.pci_address.value_or("nowhere"),
                     to_string(info.version), threads);
}

result<copy_profile> calibrate(runtime::driver& gpu, int device, runtime::stream_handle stream,
                               copy_profile rules, const staged_trial& stage) {
  auto memory = trial_memory::make(gpu, device);
  if (!memory) {
    return memory.error();
  }
  comparison compare(gpu, stream, stage, **memory);
  if (auto judged = compare.judge(direction::host_to_device, rules.to_device); !judged) {
    return judged.error();
  }
  if (auto judged = compare.judge(direction::device_to_host, rules.to_host); !judged) {
    return judged.error();
  }
  rules.known = provenance::measured;
  rules.source = fmt::format("calibrated on this machine, from: {}", rules.source);
  return rules;
}

copy_profile find_profile(runtime::driver& gpu, const copy_engine_options& options,
                          unsigned threads, runtime::stream_handle stream,
                          const staged_trial& stage) {
  // A simulated machine's times are the model's: there is nothing to measure.
  const bool simulated = gpu.info().kind == runtime::runtime_kind::sim;
  if (options.profile == calibration::nominal || simulated) {
    return nominal_profile(threads);
  }
  const auto path = profile_path(machine_key(gpu, options.device, threads));
  if (path && options.profile != calibration::fresh) {
    if (auto saved = load_profile(*path)) {
      return std::move(*saved);
    }
  }
  if (options.profile == calibration::never) {
    return empty_profile();
  }
  auto measured = calibrate(gpu, options.device, stream, nominal_profile(threads), stage);
  if (!measured) {
    return empty_profile();
  }
  if (path) {
    save_profile(*path, *measured);
  }
  return std::move(*measured);
}

}  // namespace berth::transfer
