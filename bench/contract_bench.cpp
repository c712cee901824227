// SPDX-License-Identifier: Apache-2.0
// What does a call through the runtime contract cost, against the bare function pointer?
//
// Both call the same function of the same library, which does nothing and was found by the real
// loader. A batch of bare calls and a batch through the contract alternate, so that a machine that
// changes its speed changes both; figures are medians of batches.
//
// At the end a table: ns for each, and the difference. Exit status 1 if one costs more than the bar
// of 5 ns, unless --bar=NS says another.
#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "runtime/cuda/abi.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/hip/abi.hpp"
#include "runtime/hip/driver.hpp"

namespace {

using namespace berth;
using runtime::default_stream;
using runtime::event_handle;

constexpr int calls_in_batch = 2000;

struct figures {
  std::string name;
  double bare_ns = 0;
  double contract_ns = 0;
};

std::vector<figures>& measured() {
  static std::vector<figures> all;
  return all;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Call>
double ns_per_call(Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_in_batch; ++i) {
    benchmark::DoNotOptimize(call());
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  return time.count() / calls_in_batch;
}

template <typename Bare, typename Contract>
void compare(const std::string& name, Bare bare, Contract contract) {
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) mutable {
        std::vector<double> bare_ns;
        std::vector<double> contract_ns;
        for (auto _ : state) {
          bare_ns.push_back(ns_per_call(bare));
          contract_ns.push_back(ns_per_call(contract));
          state.SetIterationTime((bare_ns.back() + contract_ns.back()) * 1e-9 * calls_in_batch);
        }
        const figures result{name, median(bare_ns), median(contract_ns)};
        state.counters["bare_ns"] = result.bare_ns;
        state.counters["contract_ns"] = result.contract_ns;
        state.counters["extra_ns"] = result.contract_ns - result.bare_ns;
        measured().push_back(result);
      })
      ->UseManualTime()
      ->Iterations(2000);
}

// The system's linker, but for the one variable that names the library.
runtime::linker linker_for(std::string_view variable, std::string path) {
  auto with = runtime::system_linker();
  with.environment = [variable, path = std::move(path)](const char* name) {
    return name == variable ? path : std::string();
  };
  return with;
}

// A call of the library as the loader would find it. Volatile: a compiler must not see through it.
template <typename Function>
Function bare(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  volatile auto found = reinterpret_cast<Function>(dlsym(handle, name));
  return found;
}

void add_cuda(const std::shared_ptr<runtime::driver>& gpu) {
  using runtime::cuda::api;
  constexpr auto library = BERTH_FAKE_CUDA;
  auto* const host = new std::byte[64];
  auto* const query = bare<decltype(api::cuStreamQuery)>(library, "cuStreamQuery");
  auto* const record = bare<decltype(api::cuEventRecord)>(library, "cuEventRecord");
  auto* const copy = bare<decltype(api::cuMemcpyAsync)>(library, "cuMemcpyAsync");
  const auto address = reinterpret_cast<runtime::cuda::address_t>(host);
  compare(
      "cuda/query_stream", [=] { return query(nullptr); },
      [=] { return gpu->query_stream(default_stream); });
  compare(
      "cuda/record_event", [=] { return record(nullptr, nullptr); },
      [=] { return gpu->record_event(event_handle{}, default_stream); });
  compare(
      "cuda/copy_async", [=] { return copy(address, address + 32, 32, nullptr); },
      [=] { return gpu->copy_async(host, host + 32, 32, default_stream); });
}

void add_hip(const std::shared_ptr<runtime::driver>& gpu) {
  using runtime::hip::api;
  constexpr auto library = BERTH_FAKE_HIP;
  auto* const host = new std::byte[64];
  auto* const query = bare<decltype(api::hipStreamQuery)>(library, "hipStreamQuery");
  auto* const record = bare<decltype(api::hipEventRecord)>(library, "hipEventRecord");
  auto* const copy = bare<decltype(api::hipMemcpyAsync)>(library, "hipMemcpyAsync");
  compare(
      "hip/query_stream", [=] { return query(nullptr); },
      [=] { return gpu->query_stream(default_stream); });
  compare(
      "hip/record_event", [=] { return record(nullptr, nullptr); },
      [=] { return gpu->record_event(event_handle{}, default_stream); });
  compare(
      "hip/copy_async", [=] { return copy(host, host + 32, 32, 4, nullptr); },
      [=] { return gpu->copy_async(host, host + 32, 32, default_stream); });
}

// The table; whether all are within the bar.
bool show(double bar_ns) {
  bool within = true;
  fmt::print("\n{:<20} {:>10} {:>12} {:>10}\n", "operation", "bare, ns", "contract, ns",
             "extra, ns");
  for (const auto& one : measured()) {
    const double extra = one.contract_ns - one.bare_ns;
    within = within && extra <= bar_ns;
    fmt::print("{:<20} {:>10.2f} {:>12.2f} {:>10.2f}{}\n", one.name, one.bare_ns, one.contract_ns,
               extra, extra > bar_ns ? "  over the bar" : "");
  }
  fmt::print("bar: {:.1f} ns extra\n", bar_ns);
  return within;
}

// The value of --bar=NS, which is taken out of the arguments.
double bar_of(int& count, char** arguments) {
  constexpr std::string_view option = "--bar=";
  double bar_ns = 5;
  const auto end = std::remove_if(arguments + 1, arguments + count, [&](const char* argument) {
    const std::string_view text = argument;
    if (!text.starts_with(option)) {
      return false;
    }
    std::from_chars(text.data() + option.size(), text.data() + text.size(), bar_ns);
    return true;
  });
  count = static_cast<int>(end - arguments);
  return bar_ns;
}

int run(int count, char** arguments) {
  const double bar_ns = bar_of(count, arguments);
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) {
    return 2;
  }
  runtime::candidate seen;
  const auto cuda =
      runtime::cuda::open_driver(linker_for("BERTH_CUDA_LIBRARY", BERTH_FAKE_CUDA), seen);
  const auto hip = runtime::hip::open_driver(linker_for("BERTH_HIP_LIBRARY", BERTH_FAKE_HIP), seen);
  for (const auto* opened : {&cuda, &hip}) {
    if (!*opened) {
      fmt::print(stderr, "{}\n", opened->error().to_string());
      return 2;
    }
  }
  add_cuda(*cuda);
  add_hip(*hip);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return show(bar_ns) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv);
}
