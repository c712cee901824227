// SPDX-License-Identifier: Apache-2.0
// The values of the runtime contract (driver.hpp): what a runtime and its devices are, how memory
// is asked for, what a pointer turns out to be. Pure values, the same for every runtime.
//
// A thing that the runtime did not tell is std::nullopt or `unknown`, never a guess.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/types.hpp"
#include "berth/units.hpp"

namespace berth::runtime {

enum class runtime_kind : std::uint8_t { hip, cuda, sim };

struct runtime_version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend constexpr auto operator<=>(const runtime_version&, const runtime_version&) = default;
};

// What a driver can do beyond the required operations. An operation whose capability is off returns
// gpu_not_supported and does nothing. What differs from device to device is in device_info instead.
enum class capability : std::uint8_t {
  managed,              // allocate_managed
  advise,               // advise
  prefetch,             // prefetch_async
  coarse_grain_advice,  // advice::set_coarse_grain and unset_coarse_grain
  peer_access,          // can_access_peer, enable_peer_access, disable_peer_access, copy_peer_async
  per_thread_stream,    // per_thread_stream is a stream
  stream_priority,      // stream_options::priority has an effect
  host_callback,        // call_host
  stream_capture,       // capture_status tells, exchange_capture_mode has an effect
  kernels,              // launch, prepare_kernels
  fine_grained_device,  // allocate_device with coherence::fine gives fine-grained memory
  host_coherence,       // pinned_options::grain is honoured; off: all pinned memory is fine-grained
  host_numa,            // pinned_options::numa_node is honoured
  system_release,       // event_options::release matters; off: every event makes all memory visible
  tells_registered,     // classify tells `registered` from `pinned`; off: both are `pinned`
  tells_range,          // classify gives base and bytes
};
inline constexpr unsigned capability_count = static_cast<unsigned>(capability::tells_range) + 1;

// A set of capabilities.
class capability_set {
public:
  constexpr capability_set() = default;

  [[nodiscard]] constexpr bool has(capability which) const noexcept {
    return (bits_ & bit(which)) != 0;
  }
  constexpr void add(capability which) noexcept { bits_ |= bit(which); }
  constexpr void remove(capability which) noexcept { bits_ &= ~bit(which); }
  friend constexpr bool operator==(capability_set, capability_set) = default;

private:
  static constexpr std::uint32_t bit(capability which) noexcept {
    return std::uint32_t{1} << static_cast<unsigned>(which);
  }
  std::uint32_t bits_ = 0;
};

struct runtime_info {
  runtime_kind kind = runtime_kind::sim;
  runtime_version version;  // HIP: hipRuntimeGetVersion; CUDA: cuDriverGetVersion; sim: berth's
  std::string library;      // path of the library, or the model ("sim:mi250x")
  provenance timing = provenance::unknown;  // what now() and elapsed() give: measured or modelled
  capability_set capabilities;
  std::vector<std::string> missing_symbols;  // optional calls that this library lacks
};

// What is known of one device. Constant while the driver lives.
struct device_info {
  int index = 0;
  std::string name;
  std::optional<std::string> architecture;  // "sm_90", "gfx90a"
  std::optional<std::array<std::byte, 16>> uuid;
  std::optional<std::string> pci_address;  // "0000:c1:00.0", lower case
  std::optional<bytes_t> memory_total;
  std::optional<int> compute_units;  // AMD CUs, NVIDIA SMs
  std::optional<int> copy_engines;   // as the runtime counts them
  std::optional<int> wave_size;      // threads that run in step
  std::optional<int> memory_clock_khz;
  std::optional<int> memory_bus_bits;
  std::optional<bytes_t> l2_bytes;
  std::optional<int> numa_node;    // of the host memory nearest, if the runtime tells
  std::optional<bool> integrated;  // shares the host's memory
  std::optional<bool> unified_addressing;
  std::optional<bool> managed_memory;
  // On AMD true even with XNACK off: pageable_access is the test for migration.
  std::optional<bool> concurrent_managed_access;
  std::optional<bool> direct_managed_access_from_host;
  std::optional<bool> pageable_access;  // kernels may use malloc'ed memory
  std::optional<bool> pageable_uses_host_page_tables;
  std::optional<bool> host_native_atomics;
  std::optional<bool> can_map_host_memory;
  std::optional<bool> host_register_supported;
  std::optional<bool> fine_grained_memory;  // allocate_device can give coherence::fine
  std::optional<bool> large_bar;            // the host can address all of device memory
};

struct memory_amounts {
  bytes_t free = 0;
  bytes_t total = 0;
};

// How far a write is visible while a kernel runs: `fine` to all, `coarse` at kernel boundaries
// only.
enum class coherence : std::uint8_t { unknown, fine, coarse };

enum class host_caching : std::uint8_t { cached, write_combined };
enum class host_mapping : std::uint8_t { mapped, unmapped };
enum class host_reach : std::uint8_t { portable, one_device };
enum class host_access : std::uint8_t { read_write, read_only };

// Page-locked host memory. The defaults are what a copy buffer wants.
struct pinned_options {
  int device = 0;  // near which device; with one_device, for which
  coherence grain = coherence::fine;
  host_caching caching = host_caching::cached;  // write_combined: slow to read by the CPU
  host_mapping mapping = host_mapping::mapped;  // into the address space of devices
  host_reach reach = host_reach::portable;      // page-locked for all devices
  std::optional<int> numa_node = std::nullopt;  // nothing: where the runtime puts it
};

struct register_options {
  int device = 0;
  host_mapping mapping = host_mapping::mapped;
  host_reach reach = host_reach::portable;
  host_access access = host_access::read_write;  // by devices
};

// A place for managed pages.
struct memory_location {
  berth::side where = side::device;
  int device = 0;  // meaningless for the host
};

enum class advice : std::uint8_t {
  set_read_mostly,
  unset_read_mostly,
  set_preferred_location,
  unset_preferred_location,
  set_accessed_by,
  unset_accessed_by,
  set_coarse_grain,
  unset_coarse_grain,
};

// What the runtime knows of an address.
struct pointer_info {
  // `pageable`: not known to the runtime (heap, stack, mapped file). `unknown`: null, or memory of
  // a sort that the contract has no word for (arrays).
  memory_kind kind = memory_kind::unknown;
  std::optional<int> device;       // owner; for host memory the device it was asked for
  void* base = nullptr;            // start of the allocation; null where not told
  std::optional<bytes_t> bytes;    // of the whole allocation
  void* host_address = nullptr;    // null where the host cannot address it
  void* device_address = nullptr;  // null where devices cannot address it
  coherence grain = coherence::unknown;
};

// A runtime's own handle, as it is. The runtime that made it says what the bits mean.
template <typename Tag>
struct handle {
  std::uintptr_t bits = 0;
  friend constexpr bool operator==(handle, handle) = default;
};
using stream_handle = handle<struct stream_tag>;
using event_handle = handle<struct event_tag>;

// The legacy default stream of the current device: waits for earlier work of all blocking streams
// of the device, and their later work waits for it. The same value in every runtime.
inline constexpr stream_handle default_stream{0};
// The calling thread's own default stream of the current device; it blocks with default_stream.
// Needs capability::per_thread_stream. The same value in every runtime.
inline constexpr stream_handle per_thread_stream{2};

enum class stream_ordering : std::uint8_t {
  non_blocking,  // independent of the default stream
  blocking,      // ordered with the default stream
};
enum class stream_priority : std::uint8_t { low, normal, high };

struct stream_options {
  stream_ordering ordering = stream_ordering::non_blocking;
  stream_priority priority = stream_priority::normal;
};

enum class event_timing : std::uint8_t { none, enabled };
enum class event_wait : std::uint8_t { spin, block };  // what the host does in synchronize
enum class event_release : std::uint8_t {
  standard,  // coarse-grained host memory may be stale for the host after the event
  system,    // all memory is visible to the host after the event
};

struct event_options {
  event_timing timing = event_timing::none;
  event_wait wait = event_wait::spin;
  event_release release = event_release::system;
};

enum class progress : std::uint8_t { complete, pending };

enum class capture_status : std::uint8_t {
  none,
  active,
  invalidated,  // the capture has failed and not been ended yet
};

// Which calls of this thread are refused while any stream of the process captures.
enum class capture_mode : std::uint8_t { global, this_thread, relaxed };

// Rows of a pitched copy. Pitches are bytes from row to row, at least `width`.
struct copy_2d {
  void* dst = nullptr;
  std::size_t dst_pitch = 0;
  const void* src = nullptr;
  std::size_t src_pitch = 0;
  std::size_t width = 0;  // bytes of a row that are copied
  std::size_t rows = 0;
};

// What the calling thread does on the CPU, for a driver with a clock of its own (driver::charge).
enum class host_work_kind : std::uint8_t { copy, fill, fault, wait, compute };

struct host_work {
  host_work_kind kind = host_work_kind::compute;
  bytes_t bytes = 0;                     // copied, filled or faulted in
  std::chrono::nanoseconds duration{0};  // for wait and compute
  const void* src = nullptr;             // of a copy: decides NUMA distance and page state
  void* dst = nullptr;                   // of a copy, a fill or a fault
};

std::string_view to_string(runtime_kind value) noexcept;
std::string_view to_string(capability value) noexcept;
std::string_view to_string(coherence value) noexcept;
std::string_view to_string(progress value) noexcept;
// "5.2.21153"
std::string to_string(const runtime_version& value);

}  // namespace berth::runtime
