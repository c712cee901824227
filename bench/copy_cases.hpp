// SPDX-License-Identifier: Apache-2.0
// What copy_bench measures, one case at a time.
//
// Method. A case is a size, a direction and a kind of host memory. The engine's copy, the runtime's
// own copy of the same buffers and a DMA from or to pinned memory alternate, each timed by the
// steady clock from the call to the moment when the data is there on both sides; medians, 5th and
// 95th percentiles. Buffers are touched before; fresh destinations and new mappings are made anew
// for each copy, outside the timing. After each case the engine copies once more, into a
// destination that held something else, and every byte is compared: by a kernel on the device, by
// threads on the host.
//
// In the order `apart` the three do not alternate: each repeats its copy with nothing in between,
// so that the engine's threads are awake and the caches hold what fits. It tells what alternating
// costs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/context.hpp"
#include "berth/copy_engine.hpp"
#include "core/statistics.hpp"
#include "runtime/driver.hpp"

namespace berth::bench {

enum class host_kind : std::uint8_t {
  resident,     // pageable, touched
  fresh,        // pageable, never touched (to the host only)
  new_mapping,  // a page-cached file, mapped anew for each copy (to the device only)
  mapped_file,  // the same, mapped and touched before
  kept,         // under keep()
  pinned,       // from the runtime
};
[[nodiscard]] std::string_view to_string(host_kind kind);

struct case_of {
  bytes_t bytes = 0;
  direction way = direction::host_to_device;
  host_kind kind = host_kind::resident;
};

enum class turn_order : std::uint8_t { alternating, apart };

struct timed {
  statistics::summary seconds{};
  [[nodiscard]] double gb_per_s(bytes_t bytes) const {
    return static_cast<double>(bytes) / seconds.median / 1e9;
  }
};

struct measured {
  case_of what;
  timed engine;
  timed runtime;
  timed pinned;
  copy_stats last;  // of the engine
  std::uint64_t wrong_bytes = 0;
  [[nodiscard]] double of_pinned() const { return pinned.seconds.median / engine.seconds.median; }
  [[nodiscard]] double of_runtime() const { return runtime.seconds.median / engine.seconds.median; }
};

// The GPU, and buffers of the largest size.
class bench_machine {
public:
  bench_machine(std::shared_ptr<runtime::driver> gpu, bytes_t largest, const std::string& folder);
  bench_machine(const bench_machine&) = delete;
  bench_machine& operator=(const bench_machine&) = delete;
  bench_machine(bench_machine&&) = delete;
  bench_machine& operator=(bench_machine&&) = delete;
  ~bench_machine();

  [[nodiscard]] runtime::driver& gpu() { return *gpu_; }
  [[nodiscard]] berth::context& context() { return context_; }
  [[nodiscard]] std::byte* device() const { return device_; }
  [[nodiscard]] std::byte* host() const { return host_; }

  // `seconds`: how long each of the three may take in all; at least five copies each.
  [[nodiscard]] measured measure(copy_engine& engine, const case_of& what, double seconds,
                                 turn_order order = turn_order::alternating);

private:
  struct host_memory;
  [[nodiscard]] std::unique_ptr<host_memory> memory_for(const case_of& what, copy_engine& engine);
  [[nodiscard]] std::uint64_t check(copy_engine& engine, const case_of& what, host_memory& with);
  void fill_host(std::byte* memory, bytes_t bytes, std::uint64_t seed) const;
  [[nodiscard]] std::uint64_t count_host(const std::byte* memory, bytes_t bytes,
                                         std::uint64_t seed) const;

  std::shared_ptr<runtime::driver> gpu_;
  berth::context context_;
  bytes_t largest_;
  bytes_t pinned_bytes_;
  std::string file_;  // empty: none could be made
  std::byte* device_ = nullptr;
  std::byte* host_ = nullptr;
  std::byte* pinned_ = nullptr;
  std::uint64_t* counter_ = nullptr;
  std::uint64_t seed_ = 1;
};

}  // namespace berth::bench
