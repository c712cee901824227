// SPDX-License-Identifier: Apache-2.0
// Machines that nobody has, as folders of the files that a kernel would show: a table says what the
// machine consists of, and `synthetic_machine` writes /proc and /sys from it.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace berth::test {

// A folder that goes with the object, and files below it.
class machine_folder {
public:
  machine_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "berth-machine-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  machine_folder(const machine_folder&) = delete;
  machine_folder& operator=(const machine_folder&) = delete;
  machine_folder(machine_folder&&) = delete;
  machine_folder& operator=(machine_folder&&) = delete;
  ~machine_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

  void write(std::string_view path, std::string_view text) const {
    std::ofstream(place(path), std::ios::binary) << text;
  }
  void make_folder(std::string_view path) const {
    std::filesystem::create_directories(place(path));
  }
  void link(std::string_view path, std::string_view target) const {
    std::filesystem::create_symlink(target, place(path));
  }
  void remove(std::string_view path) const { std::filesystem::remove_all(root_ / path.substr(1)); }

private:
  [[nodiscard]] std::filesystem::path place(std::string_view path) const {
    const auto at = root_ / path.substr(1);
    std::filesystem::create_directories(at.parent_path());
    return at;
  }

  std::filesystem::path root_;
};

struct synthetic_numa {
  std::string cpus;
  std::uint64_t gibibytes = 256;
};

struct synthetic_link {
  std::string_view speed = "16.0 GT/s PCIe";
  unsigned width = 16;
};

// A bridge, from the GPU up: ports of switches, then the root port.
struct synthetic_bridge {
  std::string_view address;
  unsigned vendor = 0x1022;
  synthetic_link trained = {};
  synthetic_link capable = {};
};

struct synthetic_gpu {
  std::string_view address;
  unsigned vendor = 0x1002;
  unsigned device = 0x740f;
  unsigned kind = 0x038000;  // PCI class
  int numa = 0;
  synthetic_link trained = {};
  synthetic_link capable = {};
  std::vector<synthetic_bridge> bridges = {};
  std::uint64_t mebibytes = 65536;
  std::uint64_t bar_mebibytes = 65536;
  // The compute driver's node; without one (0) it does not know the GPU.
  unsigned gfx = 90010;
  unsigned units = 104;
  std::uint64_t hive = 0;
  std::uint64_t capability = 1U << 27U;
  unsigned partition = 0;
  std::string_view compute_partition = {};
  std::string_view memory_partition = {};
};

struct synthetic_wire {
  unsigned from = 0;  // GPUs, by number
  unsigned to = 0;
  unsigned weight = 15;
  unsigned links = 1;
  unsigned mb_per_s_each = 50000;
};

struct synthetic_machine {
  std::vector<synthetic_numa> numa;
  std::vector<synthetic_gpu> gpus;
  std::vector<synthetic_wire> xgmi = {};
  bool has_kfd = true;
  std::string_view command_line = "BOOT_IMAGE=/vmlinuz root=UUID=1234 iommu=pt";
};

class machine_writer {
public:
  machine_writer(const machine_folder& into, const synthetic_machine& of) : to_(into), of_(of) {}

  void write() const {
    write_numa();
    for (const auto& gpu : of_.gpus) {
      write_pci(gpu);
    }
    if (of_.has_kfd) {
      write_kfd();
    }
    to_.write("/proc/cmdline", fmt::format("{}\n", of_.command_line));
    to_.write("/proc/version", "Linux version 6.8.0-45-generic (builder@secret-host) (gcc)\n");
    to_.write("/proc/cpuinfo", "model name : synthetic\nflags : fpu sse2\n");
    to_.write("/proc/self/limits",
              "Max locked memory         8388608              8388608              bytes\n");
    to_.write("/proc/self/status", "Name:\tberth\nPid:\t4711\nCpus_allowed_list:\t0-7\n");
    to_.write("/proc/sys/kernel/numa_balancing", "0\n");
    to_.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    to_.write("/sys/module/amdgpu/parameters/noretry", "-1\n");
  }

private:
  static std::string node(std::size_t number) {
    return fmt::format("/sys/class/kfd/kfd/topology/nodes/{}", number);
  }
  [[nodiscard]] std::size_t node_of_gpu(std::size_t number) const {
    return of_.numa.size() + number;
  }

  void write_numa() const {
    for (std::size_t id = 0; id < of_.numa.size(); ++id) {
      const auto folder = fmt::format("/sys/devices/system/node/node{}", id);
      to_.write(folder + "/cpulist", of_.numa[id].cpus + "\n");
      to_.write(folder + "/meminfo",
                fmt::format("Node {} MemTotal: {} kB\n", id, of_.numa[id].gibibytes << 20U));
      std::string distances;
      for (std::size_t other = 0; other < of_.numa.size(); ++other) {
        distances += other == id ? "10 " : "32 ";
      }
      to_.write(folder + "/distance", distances + "\n");
    }
  }

  void write_device(const std::string& folder, unsigned vendor, unsigned device, unsigned kind,
                    const synthetic_link& trained, const synthetic_link& capable) const {
    to_.write(folder + "/vendor", fmt::format("{:#06x}\n", vendor));
    to_.write(folder + "/device", fmt::format("{:#06x}\n", device));
    to_.write(folder + "/class", fmt::format("{:#08x}\n", kind));
    to_.write(folder + "/current_link_speed", fmt::format("{}\n", trained.speed));
    to_.write(folder + "/current_link_width", fmt::format("{}\n", trained.width));
    to_.write(folder + "/max_link_speed", fmt::format("{}\n", capable.speed));
    to_.write(folder + "/max_link_width", fmt::format("{}\n", capable.width));
  }

  void write_pci(const synthetic_gpu& gpu) const {
    if (gpu.partition != 0) {
      return;  // of a device that stands there already
    }
    std::string folder = "/sys/devices/pci0000:00";
    for (auto bridge = gpu.bridges.rbegin(); bridge != gpu.bridges.rend(); ++bridge) {
      folder += fmt::format("/{}", bridge->address);
      write_device(folder, bridge->vendor, 0x1480, 0x060400, bridge->trained, bridge->capable);
    }
    folder += fmt::format("/{}", gpu.address);
    write_device(folder, gpu.vendor, gpu.device, gpu.kind, gpu.trained, gpu.capable);
    to_.write(folder + "/numa_node", fmt::format("{}\n", gpu.numa));
    to_.write(folder + "/power/runtime_status", "active\n");
    to_.write(folder + "/unique_id", "deadbeefcafe0001\n");
    to_.write(folder + "/dma_mask_bits", "48\n");
    const std::uint64_t start = 0x20000000000;
    to_.write(folder + "/resource", fmt::format("{:#018x} {:#018x} 0x000000000014220c\n", start,
                                                start + (gpu.bar_mebibytes << 20U) - 1));
    if (gpu.vendor == 0x1002) {
      to_.write(folder + "/mem_info_vram_total", fmt::format("{}\n", gpu.mebibytes << 20U));
      to_.write(folder + "/mem_info_vis_vram_total",
                fmt::format("{}\n", std::min(gpu.mebibytes, gpu.bar_mebibytes) << 20U));
    }
    if (!gpu.compute_partition.empty()) {
      to_.write(folder + "/current_compute_partition", fmt::format("{}\n", gpu.compute_partition));
      to_.write(folder + "/current_memory_partition", fmt::format("{}\n", gpu.memory_partition));
    }
    to_.link(fmt::format("/sys/bus/pci/devices/{}", gpu.address), folder);
  }

  void write_kfd() const {
    for (std::size_t id = 0; id < of_.numa.size(); ++id) {
      to_.write(node(id) + "/gpu_id", "0\n");
      to_.write(node(id) + "/properties", "cpu_cores_count 8\nsimd_count 0\n");
      to_.make_folder(node(id) + "/io_links");
    }
    for (std::size_t number = 0; number < of_.gpus.size(); ++number) {
      if (of_.gpus[number].gfx != 0) {
        write_gpu_node(number);
      }
    }
  }

  static unsigned location_of(const synthetic_gpu& gpu) {
    const auto hex = [&](std::size_t at, std::size_t size) {
      return static_cast<unsigned>(
          std::stoul(std::string(gpu.address.substr(at, size)), nullptr, 16));
    };
    return hex(5, 2) << 8U | hex(8, 2) << 3U | hex(11, 1) | gpu.partition << 28U;
  }

  void write_gpu_node(std::size_t number) const {
    const auto& gpu = of_.gpus[number];
    const auto folder = node(node_of_gpu(number));
    to_.write(folder + "/gpu_id", fmt::format("{}\n", 1000 + number));
    to_.write(folder + "/properties",
              fmt::format("cpu_cores_count 0\nsimd_count {}\nsimd_per_cu 4\ncapability {}\n"
                          "vendor_id {}\ndevice_id {}\nlocation_id {}\ndomain 0\nhive_id {}\n"
                          "unique_id 16045690984503098046\nnum_sdma_engines 2\n"
                          "num_sdma_xgmi_engines 3\ngfx_target_version {}\n",
                          gpu.units * 4, gpu.capability, gpu.vendor, gpu.device, location_of(gpu),
                          gpu.hive, gpu.gfx));
    to_.write(folder + "/mem_banks/0/properties",
              fmt::format("heap_type {}\nsize_in_bytes {}\nflags 0\n",
                          gpu.bar_mebibytes >= gpu.mebibytes ? 1 : 2, gpu.mebibytes << 20U));
    std::size_t index = 0;
    if (gpu.numa >= 0) {
      write_link(folder, index++, node_of_gpu(number), static_cast<std::size_t>(gpu.numa), 2, 20, 0,
                 0);
    }
    for (const auto& wire : of_.xgmi) {
      if (wire.from == number || wire.to == number) {
        const auto other = wire.from == number ? wire.to : wire.from;
        write_link(folder, index++, node_of_gpu(number), node_of_gpu(other), 11, wire.weight,
                   wire.mb_per_s_each, wire.mb_per_s_each * wire.links);
      }
    }
  }

  void write_link(const std::string& folder, std::size_t index, std::size_t from, std::size_t to,
                  unsigned type, unsigned weight, unsigned least, unsigned most) const {
    to_.write(fmt::format("{}/io_links/{}/properties", folder, index),
              fmt::format("type {}\nnode_from {}\nnode_to {}\nweight {}\nmin_bandwidth {}\n"
                          "max_bandwidth {}\n",
                          type, from, to, weight, least, most));
  }

  const machine_folder& to_;
  const synthetic_machine& of_;
};

}  // namespace berth::test
