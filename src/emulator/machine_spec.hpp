// SPDX-License-Identifier: Apache-2.0
// What the command tells the preloaded library about the machine to emulate: a small text file in
// the overlay folder. Both sides read and write it here, so there is one format. Standard library
// only, because the preloaded library must load into any program.
//
// Words
//   spec      the machine as the emulated driver needs it: devices, costs, faults, where to trace
//   transfer  what a copy connects, seen from the device whose engine carries it
//   curve     time by size: knots and, beyond the last, a constant rate
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::emulator {

enum class transfer : std::uint8_t { host_to_device, device_to_host, within_device };
enum class carrier : std::uint8_t { dma, kernel };

inline constexpr std::size_t transfer_count = 3;
inline constexpr std::size_t carrier_count = 2;

struct curve_knot {
  std::uint64_t bytes = 0;
  double ns = 0;
};

// Empty: takes no time.
struct cost_curve {
  std::vector<curve_knot> knots;  // ascending; the first at 0 bytes
  double tail_ns_per_byte = 0;

  [[nodiscard]] double nanoseconds(std::uint64_t bytes) const noexcept;
};

struct gpu_spec {
  std::uint32_t kfd_id = 0;    // the driver's id, as in nodes/N/gpu_id
  std::uint32_t kfd_node = 0;  // N of nodes/N
  std::uint32_t render_minor = 0;
  std::uint64_t memory = 0;  // bytes
  std::string title;
  std::array<std::array<cost_curve, carrier_count>, transfer_count> costs;

  [[nodiscard]] const cost_curve& cost(transfer what, carrier by) const noexcept {
    return costs[static_cast<std::size_t>(what)][static_cast<std::size_t>(by)];
  }
  [[nodiscard]] cost_curve& cost(transfer what, carrier by) noexcept {
    return costs[static_cast<std::size_t>(what)][static_cast<std::size_t>(by)];
  }
};

// A copy between two devices, in one direction.
struct peer_spec {
  std::uint32_t from = 0;  // index of the device
  std::uint32_t to = 0;
  cost_curve cost;
};

enum class fault_kind : std::uint8_t {
  allocation_fails,
  queue_fails,
  kernel_faults,
  copy_slow,
  copy_corrupt,
};

// Which occurrence goes wrong, and how. Occurrences are counted in each process.
struct fault_spec {
  fault_kind kind = fault_kind::allocation_fails;
  std::uint64_t nth = 1;       // from 1; 0: each
  std::uint64_t at_least = 0;  // bytes: smaller allocations and copies are not counted
  std::uint64_t delay_ns = 0;  // copy_slow: longer by this much
  std::string only;  // kernel_faults: its name; allocation_fails: the kind of memory; empty: any

  friend bool operator==(const fault_spec&, const fault_spec&) = default;
};

enum class xnack_support : std::uint8_t { unsupported, supported };
enum class xnack_mode : std::uint8_t { off, on };
enum class numa_nodes : std::uint8_t { real, invented };

struct machine_spec {
  std::string name;
  std::vector<gpu_spec> gpus;
  std::vector<peer_spec> peers;
  std::vector<fault_spec> faults;
  std::uint64_t slice_bytes = 0;  // memory that one process can have: see shared_machine.hpp
  std::string memory_file;        // shared by the processes of the machine; empty: none
  std::string trace_file;         // empty: none
  std::string kernel_library;     // host functions for kernels; empty: the program's own only
  xnack_support xnack_can = xnack_support::unsupported;
  xnack_mode xnack = xnack_mode::off;
  numa_nodes numa = numa_nodes::real;
};

// The name of the file in the overlay folder, and of the environment variable that names the
// folder.
inline constexpr std::string_view spec_file_name = "berth-machine";
inline constexpr const char* overlay_variable = "BERTH_EMULATOR";

[[nodiscard]] std::string write_spec(const machine_spec& spec);
// Nothing for text that write_spec has not written.
[[nodiscard]] std::optional<machine_spec> read_spec(std::string_view text);

[[nodiscard]] std::string_view to_string(fault_kind value) noexcept;
[[nodiscard]] std::optional<fault_kind> parse_fault_kind(std::string_view text) noexcept;

}  // namespace berth::emulator
