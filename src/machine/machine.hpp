// SPDX-License-Identifier: Apache-2.0
// What a machine consists of: NUMA nodes, GPUs, the links between them, and the settings that
// decide how memory moves. Pure values; src/topology fills them from a live system or from pasted
// tool output, the data files in models/ from published figures. What an input lacks is nothing
// (std::optional) or `unknown`, never a default that looks like an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/units.hpp"

namespace berth::machine {

enum class vendor : std::uint8_t { unknown, amd, nvidia };

// Whether a GPU can retry a faulted access, so that managed pages migrate on touch.
enum class xnack_ability : std::uint8_t {
  unknown,
  none,            // RDNA and later graphics parts; never
  boot_parameter,  // older GFX9: only with amdgpu.noretry=0
  per_process,     // MI200 and later: HSA_XNACK=1
};

// A setting that may not be known. `inapplicable` where the vendor has no such thing.
enum class setting_state : std::uint8_t { unknown, off, on, inapplicable };

enum class link_kind : std::uint8_t { unknown, pcie, xgmi, nvlink, socket };

enum class iommu_mode : std::uint8_t { unknown, off, passthrough, translated };

enum class pci_port : std::uint8_t { unknown, endpoint, upstream, downstream, root_port, bridge };

[[nodiscard]] std::string_view to_string(vendor value) noexcept;
[[nodiscard]] std::string_view to_string(xnack_ability value) noexcept;
[[nodiscard]] std::string_view to_string(setting_state value) noexcept;
[[nodiscard]] std::string_view to_string(link_kind value) noexcept;
[[nodiscard]] std::string_view to_string(iommu_mode value) noexcept;
[[nodiscard]] std::string_view to_string(pci_port value) noexcept;
[[nodiscard]] std::optional<vendor> parse_vendor(std::string_view text) noexcept;
[[nodiscard]] std::optional<xnack_ability> parse_xnack_ability(std::string_view text) noexcept;
[[nodiscard]] std::optional<setting_state> parse_setting_state(std::string_view text) noexcept;
[[nodiscard]] std::optional<link_kind> parse_link_kind(std::string_view text) noexcept;
[[nodiscard]] std::optional<iommu_mode> parse_iommu_mode(std::string_view text) noexcept;

struct numa_distance {
  std::uint32_t to;     // node id
  std::uint32_t value;  // as the firmware tells: 10 is local
};

struct numa_node {
  std::uint32_t id = 0;
  std::vector<std::uint32_t> cpus;  // logical numbers; empty where unknown
  std::optional<bytes_t> memory;
  std::vector<numa_distance> distances;
};

struct pcie_link {
  std::optional<std::uint32_t> generation;  // 1..6
  std::optional<std::uint32_t> width;       // lanes
};

// One PCI device on the way from a GPU to the host.
struct pci_device {
  std::string address;  // "0000:0c:00.0"
  pci_port port = pci_port::unknown;
  std::string title;  // empty where unknown
  std::optional<std::uint32_t> vendor_id;
  std::optional<std::uint32_t> device_id;
  pcie_link capable;  // of this device alone: a slot or its other end may be able to do less
  // What its link towards the host runs at; of a port that faces down (downstream, root port) the
  // link below it, which is that of the device before it on the way up.
  pcie_link trained;
  // Whether the device itself says that its link does less than it could.
  setting_state speed_downgraded = setting_state::unknown;
  setting_state width_downgraded = setting_state::unknown;
  setting_state acs_redirect = setting_state::unknown;  // sends peers' requests to the root port
};

struct gpu {
  std::uint32_t index = 0;
  // Whether `index` is the number that a tool gives the GPU. Off: the order of appearance alone.
  setting_state numbered = setting_state::unknown;
  vendor made_by = vendor::unknown;
  std::string title;        // "AMD Instinct MI210"; empty where unknown
  std::string model;        // short name in the catalogue; empty where none
  std::string isa;          // "gfx90a", "sm_90"; empty where unknown
  std::string pci_address;  // "0000:0c:00.0"; empty where unknown
  std::optional<std::uint32_t> pci_vendor_id;
  std::optional<std::uint32_t> pci_device_id;
  std::optional<bytes_t> memory;
  std::optional<bytes_t> bar;                  // how much of the memory the host can address
  std::optional<std::uint64_t> bar_address;    // where that begins, as the host numbers it
  std::optional<std::uint32_t> dma_bits;       // of the addresses that the GPU can send to
  std::optional<std::uint32_t> compute_units;  // CUs or SMs
  std::optional<std::uint32_t> dma_engines;    // AMD: SDMA engines that face PCIe
  std::optional<std::uint32_t> xgmi_engines;   // AMD: SDMA engines that face peers
  pcie_link host_link;                         // what the device and its slot can do
  pcie_link trained_link;                      // what the link runs at, where observed
  xnack_ability xnack_can = xnack_ability::unknown;
  setting_state xnack = setting_state::unknown;
  setting_state coherent_host_access = setting_state::unknown;  // the CPU caches device memory
  setting_state integrated = setting_state::unknown;            // shares the host's memory
  std::optional<std::uint64_t> hive;       // GPUs with the same id have xGMI or NVLink
  std::optional<std::uint32_t> numa_node;  // the closest
  std::vector<std::uint32_t> near_cpus;    // the closest, where told; their node may be unknown
  // The GPU's own PCI device first, then each bridge up to the root port; empty where unknown.
  std::vector<pci_device> pci_path;
  std::string compute_partition;  // "SPX", "CPX"; empty where unknown or inapplicable
  std::string memory_partition;   // "NPS1"; likewise
  setting_state virtual_function = setting_state::unknown;
  setting_state asleep = setting_state::unknown;  // its links may have slowed down to save power
  setting_state accessible = setting_state::unknown;  // the process that looked may open it
};

enum class place_kind : std::uint8_t { numa_node, gpu };

// One end of a link: a NUMA node by id or a GPU by index.
struct place {
  place_kind kind = place_kind::numa_node;
  std::uint32_t id = 0;
  friend bool operator==(const place&, const place&) noexcept = default;
};

// A connection between two places; both directions, unless a second link says otherwise.
struct link {
  place from;
  place to;
  link_kind kind = link_kind::unknown;
  std::string route;                    // "PIX", "SYS": as nvidia-smi calls it; empty where unknown
  std::optional<std::uint32_t> count;   // parallel physical links
  std::optional<std::uint32_t> weight;  // as the kernel driver tells
  std::optional<std::uint32_t> hops;
  std::optional<double> nominal_gb_per_s;  // one direction, all parallel links together
  pcie_link pcie;
};

struct environment_variable {
  std::string name;
  std::string value;
  friend bool operator==(const environment_variable&, const environment_variable&) = default;
};

struct settings {
  setting_state xnack = setting_state::unknown;    // of the process that looked
  setting_state noretry = setting_state::unknown;  // amdgpu.noretry=1: faults are not retried
  setting_state hmm = setting_state::unknown;      // kernel and driver can migrate pages
  setting_state numa_balancing = setting_state::unknown;
  setting_state sdma = setting_state::unknown;          // off by HSA_ENABLE_SDMA=0
  setting_state acs_redirect = setting_state::unknown;  // peer traffic goes through the root port
  iommu_mode iommu = iommu_mode::unknown;
  std::string transparent_huge_pages;  // "always", "madvise", "never" or empty
  std::string cpu_governor;            // "performance" or empty
  std::string driver_version;
  std::string runtime_version;
  std::string kernel_version;
  std::vector<std::string> kernel_options;  // of its command line, what concerns GPUs or memory
  std::vector<environment_variable> environment;  // what steers GPU runtimes, by name
  std::optional<bytes_t> memlock_limit;           // RLIMIT_MEMLOCK
  std::optional<bytes_t> memory_limit;            // of the control group
  std::vector<std::uint32_t> allowed_cpus;        // of the process that looked; empty where unknown
  setting_state container = setting_state::unknown;
  setting_state virtual_machine = setting_state::unknown;
};

// A whole machine.
struct description {
  std::string name;
  std::vector<numa_node> numa_nodes;
  std::vector<gpu> gpus;
  std::vector<link> links;
  // Seen without knowing which GPU they lead to, if any; without an address where none was told.
  std::vector<pci_device> pci_devices;
  settings set;
};

}  // namespace berth::machine
