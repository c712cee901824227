// SPDX-License-Identifier: Apache-2.0
// The PCI devices and their graphics nodes, with the files that rocm_smi_lib reads.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulator/topology/overlay.hpp"

namespace berth::emulator {
namespace {

using file = std::pair<std::string_view, std::string>;

constexpr std::string_view speed_of_generation(std::uint32_t generation) {
  constexpr std::string_view speeds[] = {"",
                                         "2.5 GT/s PCIe",
                                         "5.0 GT/s PCIe",
                                         "8.0 GT/s PCIe",
                                         "16.0 GT/s PCIe",
                                         "32.0 GT/s PCIe",
                                         "64.0 GT/s PCIe"};
  return generation < std::size(speeds) ? speeds[generation] : "";
}

std::string folder_of(const planned_gpu& gpu) {
  return fmt::format("/sys/devices/pci0000:{}/{}", gpu.numa > 0 ? "80" : "00", gpu.pci_address());
}

std::vector<file> pci_files(const planned_gpu& gpu, const machine_plan& plan) {
  const auto vendor = gpu.model.pci_vendor_id.value_or(0x1002);
  const auto device = gpu.model.pci_device_id.value_or(0);
  const auto& cpus = plan.nodes[gpu.numa].cpus;
  const auto speed = speed_of_generation(gpu.model.host_link.generation.value_or(4));
  const auto width = gpu.model.host_link.width.value_or(16);
  return {
      {"vendor", fmt::format("{:#06x}", vendor)},
      {"device", fmt::format("{:#06x}", device)},
      {"subsystem_vendor", fmt::format("{:#06x}", vendor)},
      {"subsystem_device", "0x0c34"},
      {"class", "0x038000"},
      {"revision", "0x02"},
      {"numa_node", fmt::format("{}", gpu.numa)},
      {"local_cpulist", fmt::format("{}", fmt::join(cpus, ","))},
      {"current_link_speed", std::string(speed)},
      {"current_link_width", fmt::format("{}", width)},
      {"max_link_speed", std::string(speed)},
      {"max_link_width", fmt::format("{}", width)},
      {"uevent", fmt::format("DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID={:04X}:{:04X}\n"
                             "PCI_SUBSYS_ID={:04X}:0C34\nPCI_SLOT_NAME={}",
                             vendor, device, vendor, gpu.pci_address())},
  };
}

std::vector<file> driver_files(const planned_gpu& gpu) {
  const auto visible = gpu.model.bar.value_or(gpu.memory);
  return {
      {"mem_info_vram_total", fmt::format("{}", gpu.memory)},
      {"mem_info_vram_used", fmt::format("{}", 10 * mib)},
      {"mem_info_vis_vram_total", fmt::format("{}", std::min(visible, gpu.memory))},
      {"mem_info_vis_vram_used", fmt::format("{}", 10 * mib)},
      {"mem_info_gtt_total", fmt::format("{}", 16 * gib)},
      {"mem_info_gtt_used", "0"},
      {"gpu_busy_percent", "0"},
      {"unique_id", fmt::format("{:016x}", 0x1a2b3c4d5e6f0000U + gpu.index)},
      {"vbios_version", "113-BERTH-000"},
      {"pp_dpm_sclk", fmt::format("0: 500Mhz *\n1: {}Mhz", gpu.made_as->engine_mhz)},
      {"pp_dpm_mclk", fmt::format("0: 400Mhz\n1: {}Mhz *", gpu.made_as->memory_mhz)},
      {"pp_dpm_pcie", "0: 16.0GT/s, x16 *"},
  };
}

// rocm_smi_lib gives up on a device whose monitor lacks the label of the first voltage.
std::vector<file> monitor_files() {
  return {
      {"name", "amdgpu"},       {"temp1_input", "41000"},       {"temp1_label", "edge"},
      {"temp2_input", "43000"}, {"temp2_label", "junction"},    {"temp3_input", "45000"},
      {"temp3_label", "mem"},   {"power1_average", "40000000"}, {"power1_cap", "300000000"},
      {"in0_label", "vddgfx"},  {"in0_input", "800"},
  };
}

void write_all(const file_writer& files, const std::string& folder,
               const std::vector<file>& texts) {
  for (const auto& [name, text] : texts) {
    files.write(fmt::format("{}/{}", folder, name), text + "\n");
  }
}

void write_node(const file_writer& files, const std::string& device, const std::string& name,
                std::uint32_t minor) {
  const auto folder = fmt::format("{}/drm/{}", device, name);
  files.write(folder + "/dev", fmt::format("226:{}\n", minor));
  files.link(folder + "/device", device);
  files.link("/sys/class/drm/" + name, folder);
  files.write("/dev/dri/" + name, "");
}

}  // namespace

void write_device_files(const file_writer& files, const machine_plan& plan) {
  files.write("/proc/modules", "amdgpu 9000000 1 - Live 0x0000000000000000\n");
  files.write("/sys/module/amdgpu/initstate", "live\n");
  files.make_folder("/sys/module/amdgpu/holders");
  files.write("/sys/module/amdgpu/version", "5.16.9.22.20\n");
  files.write("/sys/class/drm/version", "drm 1.1.0 20060810\n");
  for (const auto& gpu : plan.gpus) {
    const auto device = folder_of(gpu);
    write_all(files, device, pci_files(gpu, plan));
    write_all(files, device, driver_files(gpu));
    write_all(files, fmt::format("{}/hwmon/hwmon{}", device, gpu.index), monitor_files());
    write_node(files, device, fmt::format("card{}", gpu.index), gpu.index);
    write_node(files, device, fmt::format("renderD{}", gpu.render_minor), gpu.render_minor);
    files.link("/sys/bus/pci/devices/" + gpu.pci_address(), device);
  }
}

}  // namespace berth::emulator
