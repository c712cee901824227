// SPDX-License-Identifier: Apache-2.0
#include "copy_cases.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "runtime/kernels.hpp"
#include "runtime/page_probe.hpp"

namespace berth::bench {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t least_copies = 5;
constexpr std::size_t most_copies = 400;

std::byte* map_anonymous(bytes_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error(fmt::format("no {} bytes of host memory", bytes));
  }
  return static_cast<std::byte*>(memory);
}

std::byte* map_file(const std::string& path, bytes_t bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const memory =
      file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("cannot map " + path);
  }
  return static_cast<std::byte*>(memory);
}

// Parts for as many threads as the machine has.
template <typename Body>
void in_parallel(bytes_t bytes, Body body) {
  constexpr bytes_t part = 8 * mib;
  std::atomic<bytes_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (bytes_t at = next.fetch_add(part); at < bytes; at = next.fetch_add(part)) {
        body(at, std::min(part, bytes - at));
      }
    });
  }
}

template <typename Body>
double seconds_of(Body body) {
  const auto begin = steady::now();
  body();
  return std::chrono::duration<double>(steady::now() - begin).count();
}

}  // namespace

std::string_view to_string(host_kind kind) {
  constexpr std::array<std::string_view, 6> names{"resident",    "fresh", "new_mapping",
                                                  "mapped_file", "kept",  "pinned"};
  return names.at(static_cast<std::size_t>(kind));
}

// Host memory of a kind: given for one copy, and taken back.
struct bench_machine::host_memory {
  std::function<std::byte*()> give;
  std::function<void(std::byte*)> take_back = [](std::byte*) {};
  std::function<void()> end = [] {};
};

bench_machine::bench_machine(std::shared_ptr<runtime::driver> gpu, bytes_t largest,
                             const std::string& folder)
    : gpu_(std::move(gpu)),
      context_(berth::context::on(gpu_, {.pinned_budget = 8 * gib})),
      largest_(largest),
      pinned_bytes_(std::min<bytes_t>(largest, 1 * gib)) {
  device_ = static_cast<std::byte*>(context_.device().allocate(largest_));
  counter_ = static_cast<std::uint64_t*>(context_.device().allocate(sizeof *counter_));
  pinned_ = static_cast<std::byte*>(context_.pinned().allocate(pinned_bytes_));
  host_ = map_anonymous(largest_);
  fill_host(host_, largest_, seed_);
  fill_host(pinned_, pinned_bytes_, seed_);
  if (!folder.empty()) {
    file_ = folder + "/copy_bench_XXXXXX";
    const int file = mkstemp(file_.data());
    bytes_t done = 0;
    while (file >= 0 && done < pinned_bytes_) {
      const auto wrote = write(file, pinned_ + done, std::min<bytes_t>(pinned_bytes_ - done, gib));
      if (wrote <= 0) {
        break;
      }
      done += static_cast<bytes_t>(wrote);
    }
    close(file);
    if (done < pinned_bytes_) {
      unlink(file_.c_str());
      file_.clear();
    }
  }
}

bench_machine::~bench_machine() {
  if (!file_.empty()) {
    unlink(file_.c_str());
  }
  munmap(host_, largest_);
  context_.pinned().deallocate(pinned_);
  context_.device().deallocate(counter_);
  context_.device().deallocate(device_);
}

void bench_machine::fill_host(std::byte* memory, bytes_t bytes, std::uint64_t seed) const {
  in_parallel(bytes, [&](bytes_t at, bytes_t count) {
    runtime::write_pattern(memory + at, count, seed, at);
  });
}

std::uint64_t bench_machine::count_host(const std::byte* memory, bytes_t bytes,
                                        std::uint64_t seed) const {
  std::atomic<std::uint64_t> wrong{0};
  in_parallel(bytes, [&](bytes_t at, bytes_t count) {
    wrong += runtime::count_mismatches(memory + at, count, seed, at);
  });
  return wrong;
}

std::unique_ptr<bench_machine::host_memory> bench_machine::memory_for(const case_of& what,
                                                                      copy_engine& engine) {
  auto made = std::make_unique<host_memory>();
  const bytes_t bytes = what.bytes;
  switch (what.kind) {
    case host_kind::resident:
      made->give = [this] { return host_; };
      break;
    case host_kind::pinned:
      made->give = [this] { return pinned_; };
      break;
    case host_kind::kept:
      engine.keep({host_, bytes});
      made->give = [this] { return host_; };
      made->end = [this, &engine, bytes] { engine.forget({host_, bytes}); };
      break;
    case host_kind::fresh:
      made->give = [bytes] { return map_anonymous(bytes); };
      made->take_back = [bytes](std::byte* memory) { munmap(memory, bytes); };
      break;
    case host_kind::new_mapping:
      made->give = [this, bytes] { return map_file(file_, bytes); };
      made->take_back = [bytes](std::byte* memory) { munmap(memory, bytes); };
      break;
    case host_kind::mapped_file: {
      auto* const memory = map_file(file_, bytes);
      madvise(memory, bytes, runtime::advice_populate_read);
      made->give = [memory] { return memory; };
      made->end = [memory, bytes] { munmap(memory, bytes); };
      break;
    }
  }
  return made;
}

measured bench_machine::measure(copy_engine& engine, const case_of& what, double seconds,
                                turn_order order) {
  const bool up = what.way == direction::host_to_device;
  const auto memory = memory_for(what, engine);
  const bytes_t pinned_bytes = std::min(what.bytes, pinned_bytes_);
  measured found;
  found.what = what;
  if (!up) {
    gpu_->launch(runtime::kernel_fill{device_, what.bytes / 8 * 8, seed_}, runtime::default_stream)
        .value();
    gpu_->synchronize_device(0).value();
  }
  std::array<std::vector<double>, 3> samples;
  const auto on_memory = [&](const auto& body) {
    auto* const host = memory->give();
    const double took = seconds_of([&] { body(up ? device_ : host, up ? host : device_); });
    memory->take_back(host);
    return took;
  };
  const auto by_engine = [&] {
    samples[0].push_back(on_memory([&](std::byte* dst, const std::byte* src) {
      found.last = engine.copy_and_wait(dst, src, what.bytes);
      gpu_->synchronize_stream(runtime::default_stream).value();
    }));
  };
  const auto by_runtime = [&] {
    samples[1].push_back(on_memory([&](std::byte* dst, const std::byte* src) {
      gpu_->copy(dst, src, what.bytes).value();
      // The runtime's call may return while the last DMA to the device runs.
      gpu_->synchronize_stream(runtime::default_stream).value();
    }));
  };
  const auto by_pinned = [&] {
    const double pinned = seconds_of([&] {
      auto* const dst = up ? device_ : pinned_;
      gpu_->copy(dst, up ? pinned_ : device_, pinned_bytes).value();
    });
    samples[2].push_back(pinned * static_cast<double>(what.bytes) /
                         static_cast<double>(pinned_bytes));
  };
  const auto repeat = [&](const std::vector<double>& counted, double limit, const auto& turn) {
    const auto begin = steady::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(steady::now() - begin).count();
    };
    while (counted.size() < most_copies && (counted.size() <= least_copies || passed() <= limit)) {
      turn();
    }
  };
  if (order == turn_order::alternating) {
    repeat(samples[0], 3 * seconds, [&] {
      by_engine();
      by_runtime();
      by_pinned();
    });
  } else {
    repeat(samples[0], seconds, by_engine);
    repeat(samples[1], seconds, by_runtime);
    repeat(samples[2], seconds, by_pinned);
  }
  for (auto& one : samples) {
    one.erase(one.begin());  // warm-up
  }
  found.engine.seconds = *statistics::summarise(samples[0]);
  found.runtime.seconds = *statistics::summarise(samples[1]);
  found.pinned.seconds = *statistics::summarise(samples[2]);
  found.wrong_bytes = check(engine, what, *memory);
  memory->end();
  return found;
}

std::uint64_t bench_machine::check(copy_engine& engine, const case_of& what, host_memory& with) {
  const bytes_t whole = what.bytes / 8 * 8;  // the kernels work on words
  auto* const host = with.give();
  std::uint64_t wrong = 0;
  if (what.way == direction::host_to_device) {
    gpu_->fill(device_, std::byte{0x5C}, what.bytes).value();
    engine.copy_and_wait(device_, host, what.bytes);
    gpu_->fill(counter_, std::byte{0}, sizeof *counter_).value();
    gpu_->launch(runtime::kernel_verify{device_, whole, seed_, 0, counter_},
                 runtime::default_stream)
        .value();
    gpu_->copy(&wrong, counter_, sizeof wrong).value();
  } else {
    const std::uint64_t seed = seed_ + 77;  // the destination holds seed_ already
    gpu_->launch(runtime::kernel_fill{device_, whole, seed}, runtime::default_stream).value();
    gpu_->synchronize_device(0).value();
    engine.copy_and_wait(host, device_, what.bytes);
    wrong = count_host(host, whole, seed);
    if (what.kind != host_kind::fresh) {
      fill_host(host, what.bytes, seed_);
    }
  }
  with.take_back(host);
  return wrong;
}

}  // namespace berth::bench
