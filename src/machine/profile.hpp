// SPDX-License-Identifier: Apache-2.0
// A machine profile: what each path and each memory operation of one machine costs, and the limits
// that several of them share. Measured by `berth bandwidth`, or nominal from the data of a model.
// A value: copied freely, never changes once built.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/cost_model.hpp"

namespace berth::machine {

// Memory operations that are no copies of the program, with a cost by size.
enum class operation : std::uint8_t {
  host_register,  // pin pageable memory in place
  host_unregister,
  pinned_alloc,  // page-locked memory from the runtime
  pinned_free,
  device_alloc,
  device_free,
  stream_ordered_alloc_free,  // one pair of the runtime's own stream-ordered pool
  host_populate,              // one CPU thread touches fresh pages
  managed_touch_by_device,    // a kernel touches pages that are on the host: they migrate
  managed_touch_by_host,      // the CPU touches pages that are on the device: they migrate back
  managed_prefetch_to_device,
  managed_prefetch_to_host,
  managed_resident_copy,  // a kernel copies managed memory that is on the device
  managed_remote_read,    // no migration (XNACK off): a kernel reads managed memory in place
  managed_remote_write,   // no migration (XNACK off): a kernel writes managed memory in place
  zero_copy_read,         // a kernel reads pinned host memory over the link
  zero_copy_write,        // a kernel writes pinned host memory over the link
};

// Numbers without a size. The name of each states its unit.
enum class quantity : std::uint8_t {
  memory_gb_per_s,              // the device's memory, read and write together
  kernel_memory_gb_per_s,       // the same as a plain kernel reaches it
  host_link_gb_per_s,           // nominal rate of the host link, one direction
  host_bidirectional_gb_per_s,  // both directions of the host link together
  peer_bidirectional_gb_per_s,  // both directions of one peer link together
  copy_engines_per_direction,
  kernel_slowdown_beside_dma,          // factor on a kernel's time while a DMA copy runs
  kernel_slowdown_beside_kernel_copy,  // the same beside a kernel copy of the size given in source
  host_access_latency_ns,              // a kernel's load from pinned host memory
  small_copy_call_ns,                  // host clock around a synchronous copy of 4 KiB
  submit_ns,                           // host time to submit an asynchronous copy
  launch_ns,                           // host time to launch a kernel
};

[[nodiscard]] std::string_view to_string(operation value) noexcept;
[[nodiscard]] std::string_view to_string(quantity value) noexcept;
[[nodiscard]] std::optional<operation> parse_operation(std::string_view text) noexcept;
[[nodiscard]] std::optional<quantity> parse_quantity(std::string_view text) noexcept;

struct path_cost {
  path where;
  cost device_time;
  provenance known;
  std::string source;
  // Host time of a synchronous call beyond the device time, in ns. Nothing: unknown.
  std::optional<figure> call_overhead_ns;
};

struct operation_cost {
  operation what;
  trait_set traits;
  cost time;
  provenance known;
  std::string source;
};

struct named_quantity {
  quantity what = quantity::memory_gb_per_s;
  figure number;
};

// An expected time. `answered` is what the profile knew: where it differs from what was asked, the
// estimate is `modelled`.
struct estimate {
  std::chrono::nanoseconds time;
  provenance known;
  std::string source;
  trait_set dropped;  // asked for, unknown to the profile, left out
};

struct rate_estimate {
  double gb_per_s;
  provenance known;
  std::string source;
  trait_set dropped;
};

// A path's cost as found, after any fall back.
struct path_match {
  path answered;
  cost device_time;
  provenance known;
  std::string source;
  std::optional<figure> call_overhead_ns;
  trait_set dropped;
};

class machine_profile {
public:
  machine_profile() = default;
  machine_profile(std::string name, std::vector<path_cost> paths,
                  std::vector<operation_cost> operations, std::vector<named_quantity> quantities);

  // "h200", or what the user called the machine.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::span<const path_cost> paths() const noexcept { return paths_; }
  [[nodiscard]] std::span<const operation_cost> operations() const noexcept { return operations_; }
  [[nodiscard]] std::span<const named_quantity> quantities() const noexcept { return quantities_; }

  // What a path costs. In this order, and the first that the profile has:
  // 1. exactly this path; without a wanted count, the row without one or with the largest;
  // 2. with a word that says the same: `unknown` engine is the one that the runtime would take
  //    (dma, else kernel; cpu between host ends), registered memory costs what pinned does and the
  //    other way round, between host ends all kinds cost what pageable memory does;
  // 3. with more or fewer blocks, threads or links: on the line between the two known counts
  //    around it; in proportion below the smallest; as the largest above that;
  // 4. both directions busy: the one-way cost slowed to the limit of the two together, where that
  //    limit is known;
  // 5. with fewer traits, the weakest left out first (`dropped` names them).
  // What 3 to 5 computed is `modelled`. An unknown direction or host kind is never replaced: the
  // answer is nothing. Dropping a trait can make the answer too fast by far (fresh_pages is worth a
  // factor of ten): whoever compares a measured time with it looks at `dropped` first.
  [[nodiscard]] std::optional<path_match> lookup(const path& wanted) const;

  // Device time of a copy. Nothing where lookup finds nothing.
  [[nodiscard]] std::optional<estimate> expected_time(const path& wanted, bytes_t bytes) const;
  // Device time and call overhead: what a host clock sees around a synchronous call. Nothing where
  // either is unknown.
  [[nodiscard]] std::optional<estimate> expected_call_time(const path& wanted, bytes_t bytes) const;
  // The rate of the device time at that size.
  [[nodiscard]] std::optional<rate_estimate> expected_rate(const path& wanted, bytes_t bytes) const;

  // Time of a memory operation; traits that are unknown are left out, the weakest first.
  [[nodiscard]] std::optional<estimate> expected_time(operation what, bytes_t bytes,
                                                      trait_set traits = {}) const;
  // Nothing where unknown.
  [[nodiscard]] std::optional<figure> find(quantity what) const;

private:
  std::string name_;
  std::vector<path_cost> paths_;
  std::vector<operation_cost> operations_;
  std::vector<named_quantity> quantities_;
};

}  // namespace berth::machine
