// SPDX-License-Identifier: Apache-2.0
// How fast the copy engine is, beside the runtime's own copies and pinned DMA, in one run.
//
//   copy_bench [--runtime cuda|hip|sim...] [--sizes 4KiB,1MiB...] [--kinds resident,fresh...]
//              [--way host_to_device|device_to_host]
//              [--threads N] [--cpus N] [--profile nominal|cached|fresh|never] [--seconds S]
//              [--apart] [--extras] [--stress COPIES] [--folder DIR] [--json FILE]
//              [--rules THREADS,FIRST,LARGEST,PIECE,STORES,RING,ALERT_US;...]
//
// --apart does not alternate the three: each repeats its copy with nothing in between.
// --extras adds: a batch of scattered small copies, the first copy of a process, a kernel beside
// copies, an idle engine. --stress makes so many random copies from several threads instead, and
// compares every byte. --rules measures staging rules of one's own, for tuning. copy_cases.hpp says
// how it is measured.
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "copy_cases.hpp"
#include "runtime/open.hpp"
#include "support/copy_stress.hpp"
#include "transfer/calibration.hpp"

namespace {

using namespace berth;         // NOLINT: a program, not a header
using namespace berth::bench;  // NOLINT
using json = nlohmann::json;
using steady = std::chrono::steady_clock;

struct settings {
  std::string runtime = "auto";
  std::vector<bytes_t> sizes{4,       64 * kib, 256 * kib, 1 * mib,   2 * mib,
                             4 * mib, 16 * mib, 64 * mib,  256 * mib, 1 * gib};
  std::vector<host_kind> kinds{host_kind::resident,    host_kind::fresh, host_kind::new_mapping,
                               host_kind::mapped_file, host_kind::kept,  host_kind::pinned};
  std::vector<direction> ways{direction::host_to_device, direction::device_to_host};
  unsigned threads = 0;
  unsigned cpus = 0;
  calibration profile = calibration::nominal;
  double seconds = 0.15;
  turn_order order = bench::turn_order::alternating;
  bool extras = false;
  std::uint64_t stress = 0;
  std::vector<std::string> rules;
  std::string folder = "/tmp";
  std::string json;
};

[[noreturn]] void usage(const std::string& why) {
  std::cerr << "copy_bench: " << why << " (see the head of bench/copy_bench.cpp)\n";
  std::exit(2);
}

std::vector<std::string> split(const std::string& text, char at = ',') {
  std::vector<std::string> parts;
  std::istringstream from(text);
  for (std::string part; std::getline(from, part, at);) {
    parts.push_back(part);
  }
  return parts;
}

bytes_t parse_size(const std::string& text) {
  return parse_bytes(text);
}

settings parse(int count, char** words) {
  settings how;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const auto value = [&] { return ++at < count ? std::string(words[at]) : (usage(word), ""); };
    if (word == "--runtime") {
      how.runtime = value();
    } else if (word == "--sizes") {
      how.sizes.clear();
      for (const auto& one : split(value())) {
        how.sizes.push_back(parse_size(one));
      }
    } else if (word == "--kinds") {
      how.kinds.clear();
      for (const auto& one : split(value())) {
        int kind = 0;
        while (kind < 6 && to_string(static_cast<host_kind>(kind)) != one) {
          ++kind;
        }
        kind < 6 ? how.kinds.push_back(static_cast<host_kind>(kind)) : usage("no kind " + one);
      }
    } else if (word == "--way") {
      const auto way = parse_direction(value());
      how.ways = {way ? *way : (usage("no such direction"), direction::unknown)};
    } else if (word == "--threads") {
      how.threads = static_cast<unsigned>(std::stoul(value()));
    } else if (word == "--cpus") {
      how.cpus = static_cast<unsigned>(std::stoul(value()));
    } else if (word == "--profile") {
      const auto which = value();
      how.profile = which == "cached"  ? calibration::cached
                    : which == "fresh" ? calibration::fresh
                    : which == "never" ? calibration::never
                                       : calibration::nominal;
    } else if (word == "--seconds") {
      how.seconds = std::stod(value());
    } else if (word == "--apart") {
      how.order = turn_order::apart;
    } else if (word == "--extras") {
      how.extras = true;
    } else if (word == "--stress") {
      how.stress = std::stoull(value());
    } else if (word == "--rules") {
      how.rules = split(value(), ';');
    } else if (word == "--folder") {
      how.folder = value();
    } else if (word == "--json") {
      how.json = value();
    } else {
      usage("unknown option " + word);
    }
  }
  return how;
}

void limit_cpus(unsigned cpus) {
  cpu_set_t all;
  cpu_set_t some;
  CPU_ZERO(&some);
  sched_getaffinity(0, sizeof all, &all);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && cpus > 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &some);
      --cpus;
    }
  }
  sched_setaffinity(0, sizeof some, &some);
}

std::string size_words(bytes_t bytes) {
  return bytes >= gib   ? fmt::format("{} GiB", bytes / gib)
         : bytes >= mib ? fmt::format("{} MiB", bytes / mib)
         : bytes >= kib ? fmt::format("{} KiB", bytes / kib)
                        : fmt::format("{} B", bytes);
}

bool applies(const case_of& what) {
  const bool up = what.way == direction::host_to_device;
  switch (what.kind) {
    case host_kind::fresh:
      return !up && what.bytes >= mib;
    case host_kind::new_mapping:
    case host_kind::mapped_file:
      return up && what.bytes >= mib && what.bytes <= gib;
    case host_kind::kept:
      return what.bytes >= mib;
    case host_kind::pinned:
      return what.bytes <= gib;
    case host_kind::resident:
      break;
  }
  return true;
}

// An engine that goes by one rule for all sizes: it stands where the machine's own profile would.
copy_engine engine_by_rule(const std::string& text, bench_machine& on) {
  const auto parts = split(text);
  if (parts.size() != 7) {
    usage("a rule is THREADS,FIRST,LARGEST,PIECE,STORES,RING,ALERT_US");
  }
  const transfer::staging_rule rule{64 * kib,
                                    static_cast<unsigned>(std::stoul(parts[0])),
                                    parse_size(parts[1]),
                                    parse_size(parts[2]),
                                    parse_size(parts[3]),
                                    transfer::parse_slot_store(parts[4]).value()};
  const auto path = transfer::profile_path(transfer::machine_key(on.gpu(), 0, rule.threads));
  if (!path || !transfer::save_profile(*path, {.to_device = {rule},
                                               .to_host = {rule},
                                               .known = provenance::measured,
                                               .source = "--rules"})) {
    usage("the rule cannot be saved");
  }
  auto engine = copy_engine::make(on.context(),
                                  {.most_threads = rule.threads,
                                   .ring_bytes = parse_size(parts[5]),
                                   .profile = calibration::cached,
                                   .alert_for = std::chrono::microseconds(std::stol(parts[6]))});
  engine.prepare();
  static_cast<void>(std::remove(path->c_str()));
  return engine;
}

// Each rule for all sizes and kinds, in few words.
int run_rules(const settings& how, bench_machine& on) {
  bool all_right = true;
  for (const auto& rule : how.rules) {
    auto engine = engine_by_rule(rule, on);
    for (const auto kind : how.kinds) {
      for (const auto way : how.ways) {
        fmt::print("{:<40} {:<6} {:<11}", rule,
                   way == direction::host_to_device ? "to GPU" : "back", to_string(kind));
        for (const bytes_t bytes : how.sizes) {
          const case_of what{bytes, way, kind};
          if (!applies(what)) {
            continue;
          }
          const auto found = on.measure(engine, what, how.seconds, how.order);
          all_right = all_right && found.wrong_bytes == 0;
          fmt::print("  {}: {:.2f}/{:.2f}", size_words(bytes), found.of_pinned(),
                     found.of_runtime());
        }
        fmt::print("\n");
        std::fflush(stdout);
      }
    }
  }
  fmt::print("{}\n", all_right ? "all bytes right" : "WRONG BYTES");
  return all_right ? 0 : 1;
}

void print(const measured& one) {
  const bytes_t bytes = one.what.bytes;
  const auto& s = one.engine.seconds;
  fmt::print(
      "{:>8}  {:<6} {:<12} {:>8.2f} {:>8.2f} {:>8.2f}   {:>5.2f} {:>6.2f}  {:>9.1f} us "
      "[{:.1f}..{:.1f}, n {}]  {} t{} b{} fill {} link {} us{}\n",
      size_words(bytes), one.what.way == direction::host_to_device ? "to GPU" : "back",
      to_string(one.what.kind), one.engine.gb_per_s(bytes), one.runtime.gb_per_s(bytes),
      one.pinned.gb_per_s(bytes), one.of_pinned(), one.of_runtime(), s.median * 1e6, s.p5 * 1e6,
      s.p95 * 1e6, s.count, to_string(one.last.plan.path), one.last.plan.threads, one.last.blocks,
      one.last.waiting_for_fill.count() / 1000, one.last.waiting_for_link.count() / 1000,
      one.wrong_bytes > 0 ? fmt::format("  WRONG BYTES: {}", one.wrong_bytes) : "");
  std::fflush(stdout);
}

json to_json(const timed& one) {
  return {{"median_s", one.seconds.median},
          {"p5_s", one.seconds.p5},
          {"p95_s", one.seconds.p95},
          {"count", one.seconds.count}};
}

json to_json(const measured& one) {
  return {{"bytes", one.what.bytes},
          {"direction", to_string(one.what.way)},
          {"host_memory", to_string(one.what.kind)},
          {"engine", to_json(one.engine)},
          {"runtime", to_json(one.runtime)},
          {"pinned", to_json(one.pinned)},
          {"of_pinned", one.of_pinned()},
          {"of_runtime", one.of_runtime()},
          {"path", to_string(one.last.plan.path)},
          {"threads", one.last.plan.threads},
          {"wrong_bytes", one.wrong_bytes}};
}

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

double median_of(std::vector<double> samples) {
  return *statistics::median(samples);
}

// Ranges whose two ends differ, read back by the runtime's own copies.
std::size_t count_differing(bench_machine& on, const std::vector<copy_range>& ranges) {
  std::size_t wrong = 0;
  std::vector<std::byte> seen(ranges.front().bytes);
  for (const auto& one : ranges) {
    const bool up = on.gpu().classify(one.dst)->kind == memory_kind::device;
    on.gpu().copy(seen.data(), up ? one.dst : one.src, one.bytes).value();
    wrong += std::memcmp(seen.data(), up ? one.src : one.dst, one.bytes) != 0 ? 1U : 0U;
  }
  return wrong;
}

// 10,000 copies of 4 KiB from and to scattered places: one batch, and a loop of runtime calls.
json measure_batch(bench_machine& on, copy_engine& engine) {
  constexpr std::size_t count = 10'000;
  constexpr bytes_t bytes = 4 * kib;
  std::vector<std::uint32_t> places(2 * count);
  std::iota(places.begin(), places.end(), 0U);
  std::mt19937_64 random(7);  // NOLINT: the same places each time
  const auto stream = on.context().create_stream();
  json all;
  for (const bool up : {true, false}) {
    std::shuffle(places.begin(), places.end(), random);
    std::vector<copy_range> ranges;
    for (std::size_t i = 0; i < count; ++i) {
      auto* const host = on.host() + bytes * i;
      auto* const device = on.device() + bytes * places[i];
      ranges.push_back(up ? copy_range{device, host, bytes} : copy_range{host, device, bytes});
    }
    std::vector<double> batch;
    std::vector<double> loop;
    for (int round = 0; round < 7; ++round) {
      auto begin = steady::now();
      engine.copy_batch(ranges, stream).wait();
      stream.synchronize();
      batch.push_back(seconds_since(begin));
      begin = steady::now();
      for (const auto& one : ranges) {
        on.gpu().copy_async(one.dst, one.src, one.bytes, stream).value();
      }
      stream.synchronize();
      loop.push_back(seconds_since(begin));
    }
    if (up) {
      on.gpu().fill(on.device(), std::byte{0}, 2 * count * bytes).value();
    } else {
      std::memset(on.host(), 0, count * bytes);
    }
    engine.copy_batch(ranges, stream).wait();
    stream.synchronize();
    const auto wrong = count_differing(on, ranges);
    const double ratio = median_of(loop) / median_of(batch);
    fmt::print(
        "batch of {} x 4 KiB {}: {:.2f} ms, a loop of runtime calls {:.2f} ms: {:.1f} x, {} "
        "wrong\n",
        count, up ? "to GPU" : "back", median_of(batch) * 1e3, median_of(loop) * 1e3, ratio, wrong);
    all.push_back({{"direction", up ? "host_to_device" : "device_to_host"},
                   {"batch_s", median_of(batch)},
                   {"loop_s", median_of(loop)},
                   {"ratio", ratio},
                   {"wrong_ranges", wrong}});
  }
  return all;
}

// A copy inside the device over and over, by a kernel, alone and beside staged copies.
json measure_beside_kernel(bench_machine& on, copy_engine& engine) {
  constexpr bytes_t half = 128 * mib;
  const auto stream = on.context().create_stream();
  const auto device = on.context().device();
  auto* const scratch = static_cast<std::byte*>(device.allocate(2 * half));
  const auto start = on.gpu().create_event(0, {.timing = runtime::event_timing::enabled}).value();
  const auto end = on.gpu().create_event(0, {.timing = runtime::event_timing::enabled}).value();
  const auto kernel_time = [&] {
    on.gpu().record_event(start, stream).value();
    for (int i = 0; i < 100; ++i) {
      on.gpu().launch(runtime::kernel_copy{scratch + half, scratch, half}, stream).value();
    }
    on.gpu().record_event(end, stream).value();
    on.gpu().synchronize_event(end).value();
    return std::chrono::duration<double>(on.gpu().elapsed(start, end).value()).count();
  };
  std::vector<double> alone;
  std::vector<double> beside;
  for (int round = 0; round < 9; ++round) {
    alone.push_back(kernel_time());
    std::atomic<bool> stop{false};
    std::jthread copies([&] {
      const auto other = on.context().create_stream();
      while (!stop) {
        engine.copy_and_wait(on.device(), on.host(), 256 * mib, other);
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    beside.push_back(kernel_time());
    stop = true;
  }
  static_cast<void>(on.gpu().destroy_event(start));
  static_cast<void>(on.gpu().destroy_event(end));
  device.deallocate(scratch);
  const double slowdown = median_of(beside) / median_of(alone) - 1;
  fmt::print("a kernel beside staged copies: {:.2f} ms, alone {:.2f} ms: {:+.1f} %\n",
             median_of(beside) * 1e3, median_of(alone) * 1e3, slowdown * 100);
  return {{"alone_s", median_of(alone)}, {"beside_s", median_of(beside)}, {"slowdown", slowdown}};
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

json measure_idle() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double share = cpu_seconds() - before;
  fmt::print("an idle engine: {:.2f} % of a CPU\n", share * 100);
  return {{"cpu_share", share}};
}

// In a process of its own: one copy, engine and all, or the runtime's.
double first_copy_seconds(const settings& how, bytes_t bytes, bool up, bool by_engine) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) {
    return 0;
  }
  if (fork() == 0) {
    const auto request = runtime::open_request::parse(how.runtime, "--runtime").value();
    bench_machine on(runtime::open(request).value().gpu, bytes, "");
    on.gpu().copy(on.device(), on.host(), 4 * kib).value();
    const auto begin = steady::now();
    void* const dst = up ? on.device() : on.host();
    const void* const src = up ? on.host() : on.device();
    if (by_engine) {
      auto engine = copy_engine::make(on.context(), {.profile = how.profile});
      engine.copy_and_wait(dst, src, bytes);
      const double took = seconds_since(begin);
      static_cast<void>(!write(pipe_ends[1], &took, sizeof took));
      _exit(0);
    }
    on.gpu().copy(dst, src, bytes).value();
    on.gpu().synchronize_stream(runtime::default_stream).value();
    const double took = seconds_since(begin);
    static_cast<void>(!write(pipe_ends[1], &took, sizeof took));
    _exit(0);
  }
  close(pipe_ends[1]);
  double took = 0;
  static_cast<void>(!read(pipe_ends[0], &took, sizeof took));
  close(pipe_ends[0]);
  wait(nullptr);
  return took;
}

json measure_first_copies(const settings& how) {
  json all;
  for (const bytes_t bytes : {4 * mib, 64 * mib, 512 * mib}) {
    for (const bool up : {true, false}) {
      std::vector<double> engine;
      std::vector<double> runtime;
      for (int round = 0; round < 3; ++round) {
        engine.push_back(first_copy_seconds(how, bytes, up, true));
        runtime.push_back(first_copy_seconds(how, bytes, up, false));
      }
      fmt::print("first copy of a process, {} {}: {:.2f} ms, the runtime's {:.2f} ms\n",
                 size_words(bytes), up ? "to GPU" : "back", median_of(engine) * 1e3,
                 median_of(runtime) * 1e3);
      all.push_back({{"bytes", bytes},
                     {"direction", up ? "host_to_device" : "device_to_host"},
                     {"engine_s", median_of(engine)},
                     {"runtime_s", median_of(runtime)}});
    }
  }
  return all;
}

int run_stress(const settings& how, bench_machine& on, copy_engine& engine) {
  const auto begin = steady::now();
  const auto outcome = test::run_copy_stress(
      on.context(), engine, {.copies = how.stress, .threads = 6, .largest = 32 * mib, .seed = 3});
  fmt::print("stress: {} copies, {} of them staged, in {:.1f} s: {} wrong bytes, {} failures\n",
             outcome.copies, outcome.staged, seconds_since(begin), outcome.wrong_bytes,
             outcome.failures.size());
  for (const auto& one : outcome.failures) {
    fmt::print("  {}\n", one);
  }
  return outcome.wrong_bytes == 0 && outcome.failures.empty() ? 0 : 1;
}

int run(const settings& how) {
  json report{{"runtime", how.runtime}, {"threads", how.threads}, {"cpus", how.cpus}};
  if (how.extras) {
    report["first_copy"] = measure_first_copies(how);  // before this process has a GPU
  }
  if (how.cpus > 0) {
    limit_cpus(how.cpus);
  }
  const auto request = runtime::open_request::parse(how.runtime, "--runtime").value();
  auto gpu = runtime::open(request).value().gpu;
  const auto largest = *std::max_element(how.sizes.begin(), how.sizes.end());
  bench_machine on(gpu, std::max<bytes_t>(largest, 256 * mib), how.folder);
  if (!how.rules.empty()) {
    return run_rules(how, on);
  }
  auto engine =
      copy_engine::make(on.context(), {.most_threads = how.threads, .profile = how.profile});
  engine.prepare();
  if (how.stress > 0) {
    return run_stress(how, on, engine);
  }
  fmt::print("{}, {} CPUs\n", gpu->devices()[0].name, std::thread::hardware_concurrency());
  fmt::print("{:>8}  {:<6} {:<12} {:>8} {:>8} {:>8}   {:>5} {:>6}\n", "size", "way", "host memory",
             "engine", "runtime", "pinned", "/pin", "/run");
  bool all_right = true;
  for (const auto kind : how.kinds) {
    for (const bytes_t bytes : how.sizes) {
      for (const auto way : how.ways) {
        const case_of what{bytes, way, kind};
        if (!applies(what)) {
          continue;
        }
        const auto found = on.measure(engine, what, how.seconds, how.order);
        all_right = all_right && found.wrong_bytes == 0;
        print(found);
        report["cases"].push_back(to_json(found));
      }
    }
  }
  if (how.extras) {
    report["batch"] = measure_batch(on, engine);
    report["beside_kernel"] = measure_beside_kernel(on, engine);
    report["idle"] = measure_idle();
  }
  if (!how.json.empty()) {
    std::ofstream(how.json) << report.dump(1) << "\n";
  }
  fmt::print("{}\n", all_right ? "all bytes right" : "WRONG BYTES");
  return all_right ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(parse(count, words));
  } catch (const std::exception& failed) {
    std::cerr << "copy_bench: " << failed.what() << "\n";
    return 3;
  }
}
