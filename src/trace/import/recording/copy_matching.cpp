// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/copy_matching.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace berth::trace::recording {
namespace {

// A device's times are converted to the host's clock, which is not exact.
constexpr std::int64_t clock_error_ns = 50'000;
// Calls that one copy is compared with, so that odd inputs don't take for ever.
constexpr std::size_t most_compared = 1024;

bool is_between_devices(direction way) noexcept {
  return way == direction::device_to_device || way == direction::peer_to_peer;
}

bool may_be_same(direction a, direction b) noexcept {
  return a == direction::unknown || b == direction::unknown || a == b ||
         (is_between_devices(a) && is_between_devices(b));
}

template <typename Value>
bool differ(const std::optional<Value>& a, const std::optional<Value>& b) noexcept {
  return a && b && *a != *b;
}

class matcher {
public:
  explicit matcher(const std::vector<asked_copy>& asked) : asked_(asked), left_(asked.size()) {
    for (std::uint32_t index = 0; index < asked.size(); ++index) {
      const auto& call = asked[index];
      left_[index] = {call.count, call.bytes.value_or(std::numeric_limits<bytes_t>::max())};
      if (call.correlation) {
        by_correlation_.try_emplace(*call.correlation, index);
      }
      if (call.count > 1) {
        batches_.waiting.push_back(index);
      } else {
        queues_[{call.what, call.bytes}].waiting.push_back(index);
      }
    }
  }

  std::uint32_t call_of(const made_copy& made) {
    auto found = by_number(made);
    if (found == no_call) {
      found = in_order(made);
    }
    if (found == no_call) {
      found = in_batch(made);
    }
    if (found != no_call) {
      auto& left = left_[found];
      left.count -= left.count > 0 ? 1U : 0U;
      left.bytes -= std::min(left.bytes, made.bytes.value_or(0));
    }
    return found;
  }

private:
  struct queue {
    std::vector<std::uint32_t> waiting;
    std::size_t first = 0;  // all before have their copies
  };
  struct remainder {
    std::uint64_t count = 0;
    bytes_t bytes = 0;
  };

  [[nodiscard]] std::uint32_t by_number(const made_copy& made) const {
    if (!made.correlation) {
      return no_call;
    }
    const auto found = by_correlation_.find(*made.correlation);
    return found != by_correlation_.end() && asked_[found->second].what == made.what ? found->second
                                                                                     : no_call;
  }

  [[nodiscard]] bool fits(std::uint32_t index, const made_copy& made) const {
    const auto& call = asked_[index];
    return left_[index].count > 0 && may_be_same(call.direction, made.direction) &&
           !differ(call.stream, made.stream) && !(call.correlation && made.correlation);
  }

  // A call that waits for its copy had returned before this one began: its own was never recorded,
  // if a later call can have asked for this one.
  [[nodiscard]] bool is_past(std::uint32_t index, const made_copy& made) const {
    const auto& call = asked_[index];
    return call.completion == completion::in_call && call.end + clock_error_ns < made.begin;
  }

  std::uint32_t in_order(const made_copy& made) {
    const auto found = queues_.find({made.what, made.bytes});
    if (found == queues_.end()) {
      return no_call;
    }
    auto& [waiting, first] = found->second;
    while (first < waiting.size() && left_[waiting[first]].count == 0) {
      ++first;
    }
    std::uint32_t past = no_call;
    const auto last = std::min(waiting.size(), first + most_compared);
    for (auto place = first; place < last; ++place) {
      const auto index = waiting[place];
      if (asked_[index].begin > made.begin + clock_error_ns) {
        break;
      }
      if (!fits(index, made)) {
        continue;
      }
      if (!is_past(index, made)) {
        return index;
      }
      past = past == no_call ? index : past;
    }
    return past;
  }

  std::uint32_t in_batch(const made_copy& made) {
    auto& [waiting, first] = batches_;
    while (first < waiting.size() && left_[waiting[first]].count == 0) {
      ++first;
    }
    const auto last = std::min(waiting.size(), first + most_compared);
    for (auto place = first; place < last; ++place) {
      const auto index = waiting[place];
      if (asked_[index].begin > made.begin + clock_error_ns) {
        break;
      }
      if (fits(index, made) && asked_[index].what == made.what && made.bytes &&
          *made.bytes <= left_[index].bytes) {
        return index;
      }
    }
    return no_call;
  }

  const std::vector<asked_copy>& asked_;
  std::vector<remainder> left_;
  std::map<std::pair<carried, std::optional<bytes_t>>, queue> queues_;
  queue batches_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_correlation_;
};

}  // namespace

std::vector<std::uint32_t> match_copies(const std::vector<asked_copy>& asked,
                                        const std::vector<made_copy>& made) {
  matcher calls(asked);
  std::vector<std::uint32_t> found;
  found.reserve(made.size());
  for (const auto& one : made) {
    found.push_back(calls.call_of(one));
  }
  return found;
}

}  // namespace berth::trace::recording
