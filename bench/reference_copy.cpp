// SPDX-License-Identifier: Apache-2.0
// Copies of page-locked memory with nothing of berth: what `berth bandwidth` is held to.
// bench/bandwidth_bars.py runs both in turns.
//
//   reference_copy [--runtime cuda|hip] [--device N] [--samples N] [SIZE_MIB...]
//
// A sample is one copy between two events, queued behind a host function that holds the stream; the
// first two are not counted. As in berth, the destination is cleared before all of them and
// compared after: nothing but the copies touches the memory between, so that the CPU's caches are
// as there. Both directions at once are two streams behind one gate: "both-h2d" and "both-d2h" are
// the rates of each between its own events, "both-span" is what both have moved from the first
// event to the last. Prints a JSON object a line: what, bytes, gb_per_s (of the median), samples.
// Exit status: 0 done, 2 wrong usage, 3 the runtime does not allow it, 4 wrong data.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "reference_runtime.hpp"

namespace {

using reference::event_t;
using reference::gpu_runtime;
using reference::stream_t;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr int warm_up = 2;
constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;

struct options {
  std::string_view runtime = "cuda";
  int device = 0;
  int samples = 9;
  std::vector<std::size_t> sizes = {};
};

enum class way { up, down };

// One direction: a source with a pattern, a destination, and a stream with its events.
struct lane {
  way direction = way::up;
  void* host = nullptr;
  void* device = nullptr;
  stream_t stream = nullptr;
  event_t begin = nullptr;
  event_t end = nullptr;
};

void fill(void* memory, std::size_t bytes, std::uint64_t seed) {
  auto* const words = static_cast<std::uint64_t*>(memory);
  for (std::size_t index = 0; index < bytes / sizeof *words; ++index) {
    words[index] = (index + seed) * odd;
  }
}

bool has_pattern(const void* memory, std::size_t bytes, std::uint64_t seed) {
  const auto* const words = static_cast<const std::uint64_t*>(memory);
  for (std::size_t index = 0; index < bytes / sizeof *words; ++index) {
    if (words[index] != (index + seed) * odd) {
      return false;
    }
  }
  return true;
}

class bench {
public:
  bench(gpu_runtime& gpu, std::size_t bytes, int samples)
      : gpu_(gpu), bytes_(bytes), samples_(samples), holder_(gpu.stream()), held_(gpu.event()) {
    for (auto& one : lanes_) {
      one.direction = &one == lanes_ ? way::up : way::down;
      one.host = gpu.pinned_memory(bytes);
      one.device = gpu.device_memory(bytes);
      one.stream = gpu.stream();
      one.begin = gpu.event();
      one.end = gpu.event();
      fill(one.host, bytes, seed(one));
      if (one.direction == way::down) {
        copy(one, way::up);
        gpu.synchronize(one.stream);
      }
    }
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;
  bench(bench&&) = delete;
  bench& operator=(bench&&) = delete;
  ~bench() {
    for (const auto& one : lanes_) {
      gpu_.free_pinned_memory(one.host);
      gpu_.free_device_memory(one.device);
    }
  }

  // False: wrong data.
  bool run() {
    const std::vector<lane*> up{&lanes_[0]};
    const std::vector<lane*> down{&lanes_[1]};
    const std::vector<lane*> both{&lanes_[0], &lanes_[1]};
    return measure(up, {"h2d", nullptr}) && measure(down, {"d2h", nullptr}) &&
           measure(both, {"both-h2d", "both-d2h"});
  }

private:
  static std::uint64_t seed(const lane& one) { return one.direction == way::up ? 1 : 2; }

  void copy(const lane& one, way direction) {
    if (direction == way::up) {
      gpu_.to_device(one.device, one.host, bytes_, one.stream);
    } else {
      gpu_.to_host(one.host, one.device, bytes_, one.stream);
    }
  }

  void pass(const std::vector<lane*>& lanes) {
    std::atomic<bool> is_open{false};
    gpu_.hold(holder_, is_open);
    gpu_.record(held_, holder_);
    for (auto* const one : lanes) {
      gpu_.wait(one->stream, held_);
      gpu_.record(one->begin, one->stream);
    }
    for (auto* const one : lanes) {
      copy(*one, one->direction);
    }
    for (auto* const one : lanes) {
      gpu_.record(one->end, one->stream);
    }
    is_open.store(true);
    gpu_.synchronize(holder_);
    for (auto* const one : lanes) {
      gpu_.synchronize(one->stream);
    }
  }

  double span_ns(const std::vector<lane*>& lanes) {
    double first = 0;
    double last = 0;
    for (const auto* const one : lanes) {
      first = std::min(first, gpu_.elapsed_ns(lanes[0]->begin, one->begin));
      last = std::max(last, gpu_.elapsed_ns(lanes[0]->begin, one->end));
    }
    return last - first;
  }

  bool measure(const std::vector<lane*>& lanes, std::vector<const char*> names) {
    std::vector<std::vector<double>> times(lanes.size());
    std::vector<double> spans;
    for (const auto* const one : lanes) {
      clear_destination(*one);
    }
    for (int sample = 0; sample < warm_up + samples_; ++sample) {
      pass(lanes);
      for (std::size_t index = 0; index < lanes.size() && sample >= warm_up; ++index) {
        times[index].push_back(gpu_.elapsed_ns(lanes[index]->begin, lanes[index]->end));
      }
      if (sample >= warm_up) {
        spans.push_back(span_ns(lanes));
      }
    }
    for (std::size_t index = 0; index < lanes.size(); ++index) {
      print(names[index], times[index], bytes_);
    }
    if (lanes.size() > 1) {
      print("both-span", spans, bytes_ * lanes.size());
    }
    return std::all_of(lanes.begin(), lanes.end(), [&](lane* one) { return arrived(*one); });
  }

  void clear_destination(const lane& one) {
    if (one.direction == way::down) {
      std::memset(one.host, 0, bytes_);
      return;
    }
    gpu_.clear(one.device, bytes_, one.stream);
    gpu_.synchronize(one.stream);
  }

  bool arrived(lane& one) {
    if (one.direction == way::up) {
      std::memset(one.host, 0, bytes_);
      copy(one, way::down);
      gpu_.synchronize(one.stream);
    }
    return has_pattern(one.host, bytes_, seed(one));
  }

  void print(const char* what, std::vector<double>& ns, std::size_t moved) const {
    std::sort(ns.begin(), ns.end());
    const auto middle = ns.size() / 2;
    const double median = ns.size() % 2 == 1 ? ns[middle] : (ns[middle - 1] + ns[middle]) / 2;
    if (median <= 0) {
      reference::give_up("the runtime's events show no time");
    }
    std::printf("{\"what\": \"%s\", \"bytes\": %zu, \"gb_per_s\": %.4f, \"samples\": %zu}\n", what,
                bytes_, static_cast<double>(moved) / median, ns.size());
    std::fflush(stdout);
  }

  gpu_runtime& gpu_;
  std::size_t bytes_;
  int samples_;
  stream_t holder_;
  event_t held_;
  lane lanes_[2];
};

bool read_number(std::string_view text, int least, int& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size() && value >= least;
}

bool read_option(std::string_view name, std::string_view value, options& wanted) {
  if (name == "--runtime") {
    wanted.runtime = value;
    return value == "cuda" || value == "hip";
  }
  return (name == "--device" && read_number(value, 0, wanted.device)) ||
         (name == "--samples" && read_number(value, 1, wanted.samples));
}

bool read(const std::vector<std::string_view>& words, options& wanted) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto word = words[at];
    const auto next = at + 1 < words.size() ? words[at + 1] : std::string_view();
    int size = 0;
    if (read_number(word, 1, size)) {
      wanted.sizes.push_back(static_cast<std::size_t>(size) * mib);
    } else if (read_option(word, next, wanted)) {
      ++at;
    } else {
      std::fprintf(stderr, "reference_copy: \"%.*s %.*s\" is not understood\n",
                   static_cast<int>(word.size()), word.data(), static_cast<int>(next.size()),
                   next.data());
      return false;
    }
  }
  if (wanted.sizes.empty()) {
    wanted.sizes = {64 * mib, 512 * mib};
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  options wanted;
  if (!read({argv + 1, argv + argc}, wanted)) {
    return 2;
  }
  const auto gpu = wanted.runtime == "cuda" ? reference::open_cuda(wanted.device)
                                            : reference::open_hip(wanted.device);
  for (const auto bytes : wanted.sizes) {
    if (!bench(*gpu, bytes, wanted.samples).run()) {
      std::fprintf(stderr, "reference_copy: a copy of %zu bytes has not arrived\n", bytes);
      return 4;
    }
  }
  return 0;
}
