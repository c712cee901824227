// SPDX-License-Identifier: Apache-2.0
// What an allocation from a pool costs, and whether pooled memory is ever handed out too early.
//
//   pool_bench [--runtime cuda|hip|sim...] [--seconds N] [--stress OPERATIONS] [--json FILE]
//
// Method. Pairs: allocate and free one block in a loop, with a kernel pending on the stream all the
// while (it spins until it is released), so that a pool which waits for work would show it; the
// time of a batch of pairs by the steady clock, the median over batches; with 8 threads each thread
// its own stream and its own pending kernel, the mean over threads of their medians. "Other stream"
// frees on one stream and allocates on the next. Mix: log-uniform sizes of 1 B..64 MiB, 128 live
// blocks, random replacement; the first quarter warms up. Stress: threads fill a block by a kernel,
// check it by a kernel and free it, all queued without waiting; a block that meets unordered work
// shows up as a mismatch, counted on the device.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "berth/context.hpp"
#include "berth/pool.hpp"
#include "core/statistics.hpp"
#include "runtime/driver.hpp"
#include "runtime/open.hpp"

namespace {

using namespace berth;  // NOLINT: a program, not a header
using steady = std::chrono::steady_clock;

struct settings {
  std::string runtime = "auto";
  double seconds = 0.2;
  std::uint64_t stress = 100'000;
  std::string json;
};

struct machine {
  std::shared_ptr<runtime::driver> gpu;
  berth::context context;
};

// A kernel that keeps a stream busy until it is released.
class pending_work {
public:
  pending_work(const machine& on, const stream& where) : on_(on), where_(where) {
    flag_ = static_cast<std::uint32_t*>(on.context.pinned().allocate(4));
    *static_cast<volatile std::uint32_t*>(flag_) = 0;
    on.gpu->launch(runtime::kernel_spin{flag_, std::chrono::seconds(8)}, where).value();
  }
  pending_work(const pending_work&) = delete;
  pending_work& operator=(const pending_work&) = delete;
  ~pending_work() {
    *static_cast<volatile std::uint32_t*>(flag_) = 1;
    static_cast<void>(where_.try_synchronize());
    static_cast<void>(on_.context.pinned().try_deallocate(flag_));
  }

private:
  const machine& on_;
  const stream& where_;
  std::uint32_t* flag_;
};

double nanoseconds_since(steady::time_point start) {
  return std::chrono::duration<double, std::nano>(steady::now() - start).count();
}

// Median time of `body` in ns, in batches for about `seconds`.
template <typename Body>
double median_time(double seconds, int batch, Body body) {
  std::vector<double> samples;
  const auto start = steady::now();
  while (nanoseconds_since(start) < seconds * 1e9 || samples.size() < 5) {
    const auto begin = steady::now();
    for (int count = 0; count < batch; ++count) {
      body();
    }
    samples.push_back(nanoseconds_since(begin) / batch);
  }
  return *statistics::median(samples);
}

template <typename Pool>
double pair_time(const machine& on, const Pool& from, bytes_t bytes, int threads, double seconds) {
  std::vector<double> medians(static_cast<std::size_t>(threads));
  std::vector<std::jthread> running;
  for (auto& median : medians) {
    running.emplace_back([&] {
      const auto stream = on.context.create_stream();
      from.deallocate(from.allocate(bytes, stream), stream);
      const pending_work busy(on, stream);
      median = median_time(seconds, 1000,
                           [&] { from.deallocate(from.allocate(bytes, stream), stream); });
    });
  }
  running.clear();
  double sum = 0;
  for (const double median : medians) {
    sum += median;
  }
  return sum / threads;
}

template <typename Pool>
double other_stream_time(const machine& on, const Pool& from, bytes_t bytes, double seconds) {
  const auto one = on.context.create_stream();
  const auto other = on.context.create_stream();
  const pending_work busy(on, one);
  return median_time(seconds, 200,
                     [&] {
                       from.deallocate(from.allocate(bytes, one), one);
                       from.deallocate(from.allocate(bytes, other), other);
                     }) /
         2;
}

struct mix_result {
  double ns_per_operation = 0;
  double waste = 0;
  double held_to_peak = 0;
};

template <typename Resource>
mix_result mix(const machine& on, const Resource& upstream, int steps) {
  const pool from(upstream);
  const auto stream = on.context.create_stream();
  const pending_work busy(on, stream);
  struct live_block {
    void* memory = nullptr;
    bytes_t bytes = 0;
  };
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(0, std::log(64.0 * mib));
  std::vector<std::pair<std::size_t, bytes_t>> plan;
  for (int step = 0; step < steps; ++step) {
    plan.emplace_back(random() % 128, static_cast<bytes_t>(std::exp(exponent(random))));
  }
  std::vector<live_block> live(128);
  bytes_t now = 0;
  bytes_t peak = 0;
  double requested = 0;
  double rounded = 0;
  steady::time_point start;
  double outside = 0;
  for (int step = 0; step < steps; ++step) {
    if (step == steps / 4) {
      start = steady::now();
      outside = 0;
    }
    const auto& [slot, bytes] = plan[static_cast<std::size_t>(step)];
    auto& block = live[slot];
    if (block.memory != nullptr) {
      from.deallocate(block.memory, stream);
      now -= block.bytes;
    }
    block = {from.allocate(bytes, stream), bytes};
    now += bytes;
    peak = std::max(peak, now);
    if (step % 1000 == 0) {
      const auto begin = steady::now();
      const auto numbers = from.statistics();
      requested += static_cast<double>(numbers.requested_bytes);
      rounded += static_cast<double>(numbers.live_bytes);
      outside += nanoseconds_since(begin);
    }
  }
  const double time = nanoseconds_since(start) - outside;
  const auto held = from.statistics().peak_held_bytes;
  for (const auto& block : live) {
    from.deallocate(block.memory, stream);
  }
  return {.ns_per_operation = time / (steps * 0.75 * 2),
          .waste = rounded / requested - 1,
          .held_to_peak = static_cast<double>(held) / static_cast<double>(peak)};
}

// Mismatching bytes; 0 is right.
template <typename Resource>
std::uint64_t stress(const machine& on, const Resource& upstream, std::uint64_t operations) {
  constexpr int thread_count = 8;
  const pool from(upstream, {.limit = 256 * mib, .smallest_growth = 16 * mib});
  const auto counters = on.context.device();
  auto* const mismatches = static_cast<std::uint64_t*>(counters.allocate(8));
  on.gpu->fill(mismatches, std::byte{0}, 8).value();
  std::vector<stream> streams;
  for (int count = 0; count < 4; ++count) {
    streams.push_back(on.context.create_stream());
  }
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < thread_count; ++number) {
      threads.emplace_back([&, number] {
        std::mt19937_64 random(static_cast<std::uint64_t>(number));
        for (std::uint64_t step = 0; step < operations / thread_count; ++step) {
          const auto& stream = streams[random() % streams.size()];
          const bytes_t bytes = 8 * (1 + random() % (random() % 8 == 0 ? 65536 : 1024));
          const auto seed = random();
          auto* const memory = from.allocate(bytes, stream);
          on.gpu->launch(runtime::kernel_fill{memory, bytes, seed}, stream).value();
          on.gpu->launch(runtime::kernel_verify{memory, bytes, seed, 0, mismatches}, stream)
              .value();
          from.deallocate(memory, stream);
        }
      });
    }
  }
  on.gpu->synchronize_device(0).value();
  std::uint64_t seen = ~std::uint64_t{0};
  on.gpu->copy(&seen, mismatches, 8).value();
  counters.deallocate(mismatches);
  return seen;
}

class report {
public:
  void add(const std::string& name, double value, const std::string& unit) {
    std::cout << fmt::format("{:<58}{:>12.2f} {}\n", name, value, unit) << std::flush;
    json_ += fmt::format("{}  {{\"name\": \"{}\", \"value\": {}, \"unit\": \"{}\"}}",
                         json_.empty() ? "" : ",\n", name, value, unit);
  }
  void write(const std::string& path) const {
    if (!path.empty()) {
      std::ofstream(path) << "[\n" << json_ << "\n]\n";
    }
  }

private:
  std::string json_;
};

template <typename Resource>
void measure(const machine& on, const Resource& upstream, const std::string& kind,
             const settings& how, report& out) {
  for (const bytes_t bytes : {4 * kib, mib, 64 * mib}) {
    const pool from(upstream);
    for (const int threads : {1, 8}) {
      out.add(fmt::format("{} pool, pair of {}, {} thread(s)", kind, format_bytes(bytes), threads),
              pair_time(on, from, bytes, threads, how.seconds), "ns");
    }
    out.add(fmt::format("{} pool, pair of {}, other stream", kind, format_bytes(bytes)),
            other_stream_time(on, from, bytes, how.seconds), "ns");
  }
  const auto mixed = mix(on, upstream, 200'000);
  out.add(kind + " pool, mix, per operation", mixed.ns_per_operation, "ns");
  out.add(kind + " pool, mix, internal waste", mixed.waste * 100, "%");
  out.add(kind + " pool, mix, held to peak live", mixed.held_to_peak, "x");
}

settings parse(int argc, char** argv) {
  settings how;
  for (int index = 1; index + 1 < argc; index += 2) {
    const std::string_view name = argv[index];
    const std::string value = argv[index + 1];
    if (name == "--runtime") {
      how.runtime = value;
    } else if (name == "--seconds") {
      how.seconds = std::stod(value);
    } else if (name == "--stress") {
      how.stress = std::stoull(value);
    } else if (name == "--json") {
      how.json = value;
    } else {
      throw_error(error(errc::usage, fmt::format("unknown option {}", name)));
    }
  }
  return how;
}

int run(int argc, char** argv) {
  const auto how = parse(argc, argv);
  const auto request = runtime::open_request::parse(how.runtime, "--runtime").value();
  auto opened = runtime::open(request).value();
  const machine on{opened.gpu, context::on(opened.gpu)};
  std::cout << fmt::format("{} on {}\n", on.context.devices()[0].name,
                           on.context.runtime().library);
  report out;
  measure(on, on.context.pinned(), "pinned", how, out);
  measure(on, on.context.device(), "device", how, out);
  std::uint64_t wrong = 0;
  for (const auto& [kind, mismatches] :
       {std::pair{"device", stress(on, on.context.device(), how.stress)},
        std::pair{"pinned", stress(on, on.context.pinned(), how.stress)}}) {
    out.add(fmt::format("{} pool, stress of {} operations, wrong bytes", kind, how.stress),
            static_cast<double>(mismatches), "B");
    wrong += mismatches;
  }
  out.write(how.json);
  return wrong == 0 ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 3;
  }
}
