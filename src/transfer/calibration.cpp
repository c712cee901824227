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
constexpr std::chrono::milliseconds time_limit_again{60};
constexpr bytes_t largest_trial = 32 * mib;
constexpr int rounds_to_win = 3;
constexpr int rounds_to_lose = 12;
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

using nanoseconds = std::chrono::nanoseconds;

template <typename Body>
result<nanoseconds> timed(runtime::driver& gpu, const Body& body) {
  const auto begin = gpu.now();
  const result<void> done = body();
  return done ? result<nanoseconds>(gpu.now() - begin) : done.error();
}

class comparison {
public:
  comparison(runtime::driver& gpu, runtime::stream_handle stream, const staged_trial& stage,
             trial_memory& memory, nanoseconds limit)
      : gpu_(gpu), stream_(stream), stage_(stage), memory_(memory), end_(gpu.now() + limit) {}

  // Takes the rule out if it loses. `losses`: of the processes before.
  [[nodiscard]] result<void> judge(direction way, staging_rule& rule, unsigned losses) {
    const bytes_t bytes = rule.from + rule.from / 2;
    if (bytes > largest_trial || gpu_.now() > end_) {
      return {};
    }
    const auto wins = is_faster(memory_.ends(way, bytes), way, rule);
    if (!wins) {
      return wins.error();
    }
    if (!*wins) {
      rule.threads = 0;
      rule.losses = losses + 1;
    }
    return {};
  }

private:
  // By the shortest time of each: what else the machine does only makes them longer.
  [[nodiscard]] result<bool> is_faster(const copy_range& ends, direction way,
                                       const staging_rule& rule) {
    auto plain = nanoseconds::max();
    auto staged = nanoseconds::max();
    for (int round = 1; round <= rounds_to_lose; ++round) {
      const auto one = timed(gpu_, [&] { return copy_plainly(ends); });
      const auto other = one ? timed(gpu_, [&] { return stage_(ends, way, rule); }) : one;
      if (!other) {
        return other.error();
      }
      plain = std::min(plain, *one);
      staged = std::min(staged, *other);
      const bool wins =
          static_cast<double>(staged.count()) * least_gain <= static_cast<double>(plain.count());
      if (round >= rounds_to_win && (wins || gpu_.now() > end_)) {
        return wins;
      }
    }
    return false;
  }

  [[nodiscard]] result<void> copy_plainly(const copy_range& ends) {
    auto queued = gpu_.copy_async(ends.dst, ends.src, ends.bytes, stream_);
    return queued ? gpu_.synchronize_stream(stream_) : queued;
  }

  runtime::driver& gpu_;
  runtime::stream_handle stream_;
  const staged_trial& stage_;
  trial_memory& memory_;
  nanoseconds end_;
};

bool is_doubtful(const staging_rule& one) noexcept {
  return one.losses > 0 && one.losses < losses_to_believe;
}

const staging_rule* of_size(const std::vector<staging_rule>& rules, bytes_t from) noexcept {
  const auto found = std::ranges::find(rules, from, &staging_rule::from);
  return found == rules.end() ? nullptr : &*found;
}

result<void> judge_all(comparison& compare, direction way, std::vector<staging_rule>& rules,
                       const std::vector<staging_rule>* earlier) {
  for (auto& rule : rules) {
    const auto* const known = earlier == nullptr ? nullptr : of_size(*earlier, rule.from);
    if (known != nullptr && !is_doubtful(*known)) {
      rule = *known;
    } else if (rule.threads > 0) {
      if (auto judged = compare.judge(way, rule, known == nullptr ? 0 : known->losses); !judged) {
        return judged;
      }
    }
  }
  return {};
}

}  // namespace

std::string machine_key(const runtime::driver& gpu, int device, unsigned threads) {
  const auto& info = gpu.info();
  const auto& one = gpu.devices()[static_cast<std::size_t>(device)];
  return fmt::format("{}-{}-{}-{}threads", one.name, one.pci_address.value_or("nowhere"),
                     to_string(info.version), threads);
}

bool is_in_doubt(const copy_profile& saved) noexcept {
  return std::ranges::any_of(saved.to_device, is_doubtful) ||
         std::ranges::any_of(saved.to_host, is_doubtful);
}

result<copy_profile> calibrate(runtime::driver& gpu, int device, runtime::stream_handle stream,
                               copy_profile rules, const copy_profile* earlier,
                               const staged_trial& stage) {
  auto memory = trial_memory::make(gpu, device);
  if (!memory) {
    return memory.error();
  }
  const bool again = earlier != nullptr;
  comparison compare(gpu, stream, stage, **memory, again ? time_limit_again : time_limit);
  auto judged = judge_all(compare, direction::host_to_device, rules.to_device,
                          again ? &earlier->to_device : nullptr);
  if (judged) {
    judged = judge_all(compare, direction::device_to_host, rules.to_host,
                       again ? &earlier->to_host : nullptr);
  }
  if (!judged) {
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
  const auto saved =
      path && options.profile != calibration::fresh ? load_profile(*path) : std::nullopt;
  const bool may_measure = options.profile != calibration::never;
  if (saved && !(may_measure && is_in_doubt(*saved))) {
    return *saved;
  }
  if (!may_measure) {
    return empty_profile();
  }
  auto measured = calibrate(gpu, options.device, stream, nominal_profile(threads),
                            saved ? &*saved : nullptr, stage);
  if (!measured) {
    return saved ? *saved : empty_profile();
  }
  if (path) {
    save_profile(*path, *measured);
  }
  return std::move(*measured);
}

}  // namespace berth::transfer
