// SPDX-License-Identifier: Apache-2.0
// What recording adds to a call of the GPU runtime.
//
// Method. The program calls a runtime that does nothing (idle_hip.cpp), from 1 to 16 threads, and
// times batches of calls by the steady clock; the median batch counts. It starts itself again and
// again, in turns without the recorder, with it, and with it and call sites of every call; the
// difference of medians is what recording adds. The bytes on disk are the file's size over its
// events.
// Usage: record_bench [--runs N] [--calls N] [--threads 1,4,16]
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace {

using steady = std::chrono::steady_clock;
using copy_call = int (*)(void*, const void*, std::size_t, int, void*);

struct settings {
  int runs = 5;
  int calls = 200'000;
  std::vector<int> threads{1, 2, 4, 8, 16};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// --- The child ----------------------------------------------------------------------------------

// One thread's median time of a call, in nanoseconds. Calls come in bursts, as programs make them:
// a burst fits into the recorder's memory, and a pause lets it be written.
double time_calls(copy_call copy, int calls) {
  constexpr int burst = 400;
  std::vector<double> bursts;
  std::array<char, 64> memory{};
  for (int done = 0; done < calls; done += burst) {
    const auto begin = steady::now();
    for (int index = 0; index < burst; ++index) {
      copy(memory.data(), memory.data() + 32, 16, 1, nullptr);
    }
    bursts.push_back(std::chrono::duration<double, std::nano>(steady::now() - begin).count() /
                     burst);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return median(bursts);
}

int run_child(int threads, int calls) {
  void* const runtime = dlopen(BERTH_IDLE_RUNTIME, RTLD_NOW);
  if (runtime == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto copy = reinterpret_cast<copy_call>(dlsym(runtime, "hipMemcpyAsync"));
  std::vector<double> found(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int index = 0; index < threads; ++index) {
    running.emplace_back(
        [&, index] { found[static_cast<std::size_t>(index)] = time_calls(copy, calls / threads); });
  }
  for (auto& one : running) {
    one.join();
  }
  fmt::print("{}\n", median(found));
  return 0;
}

// --- The parent ---------------------------------------------------------------------------------

struct way {
  std::string name;
  std::string environment;
};

std::string recording_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "berth-bench-XXXXXX").string();
  return mkdtemp(name.data()) == nullptr ? std::string{} : name;
}

double run_once(const std::string& self, const way& how, int threads, int calls) {
  const auto command = fmt::format("{} {} --child {} {}", how.environment, self, threads, calls);
  std::FILE* const pipe = popen(command.c_str(), "r");
  double found = 0;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &found) != 1) {
    std::fprintf(stderr, "cannot run: %s\n", command.c_str());
    std::exit(1);
  }
  pclose(pipe);
  return found;
}

double bytes_per_event(const std::string& folder, int calls) {
  std::uintmax_t bytes = 0;
  int files = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder)) {
    bytes += one.file_size();
    ++files;
  }
  return files == 0 ? 0 : static_cast<double>(bytes) / files / calls;
}

int run_all(const std::string& self, const settings& how) {
  const auto folder = recording_folder();
  const auto recorded =
      fmt::format("LD_PRELOAD={} BERTH_RECORD={}/%p.berth", BERTH_PRELOAD_LIBRARY, folder);
  const std::vector<way> ways{{"plain", ""},
                              {"recorded, no call sites", recorded + " BERTH_RECORD_STACKS=off"},
                              {"recorded", recorded},
                              {"recorded, all call sites", recorded + " BERTH_RECORD_STACKS=all"}};
  fmt::print("{:>7}", "threads");
  for (const auto& one : ways) {
    fmt::print("  {:>26}", one.name);
  }
  fmt::print("   (ns a call; median of {} runs)\n", how.runs);
  for (const int threads : how.threads) {
    std::vector<std::vector<double>> found(ways.size());
    for (int run = 0; run < how.runs; ++run) {
      for (std::size_t index = 0; index < ways.size(); ++index) {
        found[index].push_back(run_once(self, ways[index], threads, how.calls));
      }
    }
    const double plain = median(found[0]);
    fmt::print("{:>7}", threads);
    for (const auto& one : found) {
      fmt::print("  {:>14.1f} ({:+7.1f})", median(one), median(one) - plain);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  fmt::print("on disk: {:.1f} bytes a copy\n", bytes_per_event(folder, how.calls));
  std::filesystem::remove_all(folder);
  return 0;
}

std::vector<int> parse_list(std::string text) {
  std::vector<int> found;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    found.push_back(std::stoi(text.substr(at), &used));
    at += used + 1;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "--child") {
    return run_child(std::stoi(words[1]), std::stoi(words[2]));
  }
  settings how;
  for (std::size_t index = 0; index + 1 < words.size(); index += 2) {
    if (words[index] == "--runs") {
      how.runs = std::stoi(words[index + 1]);
    } else if (words[index] == "--calls") {
      how.calls = std::stoi(words[index + 1]);
    } else if (words[index] == "--threads") {
      how.threads = parse_list(words[index + 1]);
    } else {
      std::fprintf(stderr, "usage: record_bench [--runs N] [--calls N] [--threads 1,4,16]\n");
      return 2;
    }
  }
  return run_all(std::filesystem::canonical("/proc/self/exe").string(), how);
}
