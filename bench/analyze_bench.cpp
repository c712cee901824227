// SPDX-License-Identifier: Apache-2.0
// analyze_bench: what `berth analyze` costs on one trace, seen from outside: wall time, processor
// time and peak memory of the whole program, median of several runs.
//
// Usage: analyze_bench BERTH TRACE [RUNS]
// The trace should be in the page cache: one run before the measured ones puts it there.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "berth/units.hpp"
#include "core/statistics.hpp"
#include "trace/import/decimal.hpp"

namespace {

struct cost {
  double wall_s;
  double processor_s;  // user and system
  std::uint64_t peak_bytes;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Runs `berth analyze --format json TRACE` with its output in `target`.
cost run_once(const char* berth, const char* trace, const char* target) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::runtime_error("fork failed");
  }
  if (child == 0) {
    const int out = ::open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::execl(berth, berth, "analyze", "--format", "json", trace, nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("{} analyze {} failed", berth, trace));
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {wall.count(), seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_maxrss) * berth::kib};
}

double median_of(const std::vector<cost>& costs, double (*property)(const cost&)) {
  std::vector<double> samples;
  for (const auto& one : costs) {
    samples.push_back(property(one));
  }
  return berth::statistics::median(samples).value();
}

// Events that the report counts: those that mean something, not flows and metadata.
std::uint64_t events_in(const std::string& report) {
  std::FILE* const file = std::fopen(report.c_str(), "rb");
  if (file == nullptr) {
    throw std::runtime_error("no report in " + report);
  }
  const auto parsed = nlohmann::json::parse(file);
  std::fclose(file);
  return parsed.at("traces").at(0).at("totals").at("events").get<std::uint64_t>();
}

int run(std::span<char*> arguments) {
  const auto runs = arguments.size() > 3 ? berth::trace::unsigned_of(arguments[3]) : 5;
  if (arguments.size() < 3 || !runs || *runs == 0) {
    fmt::print(stderr, "usage: analyze_bench BERTH TRACE [RUNS]\n");
    return 2;
  }
  const auto report =
      std::filesystem::temp_directory_path() / fmt::format("analyze_bench.{}.json", ::getpid());
  const auto measure = [&] { return run_once(arguments[1], arguments[2], report.c_str()); };
  measure();
  std::vector<cost> costs;
  for (std::uint64_t index = 0; index < *runs; ++index) {
    costs.push_back(measure());
    fmt::print("run {}: wall {:.2f} s, processor {:.2f} s, peak {}\n", index + 1,
               costs.back().wall_s, costs.back().processor_s,
               berth::format_bytes(costs.back().peak_bytes));
  }
  const auto events = static_cast<double>(events_in(report));
  std::filesystem::remove(report);
  const auto bytes = static_cast<double>(std::filesystem::file_size(arguments[2]));
  const double wall = median_of(costs, [](const cost& one) { return one.wall_s; });
  const double processor = median_of(costs, [](const cost& one) { return one.processor_s; });
  const double peak =
      median_of(costs, [](const cost& one) { return static_cast<double>(one.peak_bytes); });
  fmt::print("median of {} on {} processors: wall {:.2f} s, processor {:.2f} s, peak {}\n",
             costs.size(), std::thread::hardware_concurrency(), wall, processor,
             berth::format_bytes(static_cast<berth::bytes_t>(peak)));
  fmt::print("{:.0f} MB/s, {:.2f} million events kept, {:.2f} million/s\n", bytes / wall * 1e-6,
             events * 1e-6, events / wall * 1e-6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& failure) {
    fmt::print(stderr, "analyze_bench: {}\n", failure.what());
    return 1;
  }
}
