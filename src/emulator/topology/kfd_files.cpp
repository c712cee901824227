// SPDX-License-Identifier: Apache-2.0
// The topology that the compute driver publishes, as AMD's libhsakmt and rocm_smi_lib read it.
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "emulator/topology/overlay.hpp"

namespace berth::emulator {
namespace {

constexpr std::string_view topology = "/sys/devices/virtual/kfd/kfd/topology";

// Bits of a GPU node's "capability" (HSA_CAPABILITY).
namespace capability {
constexpr std::uint32_t queue_size_pow2 = 1U << 3U;
constexpr std::uint32_t watch_points = 1U << 7U;
constexpr std::uint32_t watch_points_4 = 2U << 8U;  // as a power of two
constexpr std::uint32_t doorbell_64_bit = 2U << 12U;
constexpr std::uint32_t memory_ecc = 1U << 20U;
constexpr std::uint32_t ras_events = 1U << 21U;
constexpr std::uint32_t sram_ecc = 1U << 26U;
constexpr std::uint32_t svm = 1U << 27U;  // HMM: managed memory of ordinary pages
constexpr std::uint32_t coherent_host_access = 1U << 28U;
}  // namespace capability

constexpr std::uint32_t heap_system = 0;
constexpr std::uint32_t heap_visible = 1;  // the host reaches all of it
constexpr std::uint32_t heap_private = 2;

constexpr std::uint32_t link_enabled = 1;
constexpr std::uint32_t first_simd_id = 0x80001000;

using property = std::pair<std::string_view, std::uint64_t>;

std::string lines_of(std::initializer_list<property> properties) {
  std::string text;
  for (const auto& [name, value] : properties) {
    text += fmt::format("{} {}\n", name, value);
  }
  return text;
}

std::string folder_of(std::uint32_t node) {
  return fmt::format("{}/nodes/{}", topology, node);
}

// rocm_smi_lib stops if one of the folders of links is missing, so they are there even when empty.
void write_links(const file_writer& files, std::uint32_t node, std::string_view kind,
                 const std::vector<planned_link>& links) {
  const auto folder = fmt::format("{}/{}", folder_of(node), kind);
  files.make_folder(folder);
  for (std::size_t index = 0; index < links.size(); ++index) {
    const auto& link = links[index];
    files.write(fmt::format("{}/{}/properties", folder, index),
                lines_of({{"type", static_cast<std::uint32_t>(link.type)},
                          {"version_major", 0},
                          {"version_minor", 0},
                          {"node_from", link.from},
                          {"node_to", link.to},
                          {"weight", link.weight},
                          {"min_latency", 0},
                          {"max_latency", 0},
                          {"min_bandwidth", link.min_mb_per_s},
                          {"max_bandwidth", link.max_mb_per_s},
                          {"recommended_transfer_size", 0},
                          {"flags", link_enabled}}));
  }
}

void write_bank(const file_writer& files, std::uint32_t node, std::uint32_t heap, bytes_t bytes,
                std::uint32_t width, std::uint32_t mhz) {
  files.write(fmt::format("{}/mem_banks/0/properties", folder_of(node)),
              lines_of({{"heap_type", heap},
                        {"size_in_bytes", bytes},
                        {"flags", 0},
                        {"width", width},
                        {"mem_clk_max", mhz}}));
}

void write_host_node(const file_writer& files, const planned_node& node) {
  const auto folder = folder_of(node.index);
  files.write(folder + "/gpu_id", "0\n");
  files.write(folder + "/name", "\n");
  files.write(folder + "/properties", lines_of({{"cpu_cores_count", node.cpus.size()},
                                                {"simd_count", 0},
                                                {"mem_banks_count", 1},
                                                {"caches_count", 0},
                                                {"io_links_count", node.links.size()},
                                                {"p2p_links_count", 0},
                                                {"cpu_core_id_base", node.cpus.front()},
                                                {"simd_id_base", 0},
                                                {"max_waves_per_simd", 0},
                                                {"lds_size_in_kb", 0},
                                                {"gds_size_in_kb", 0},
                                                {"num_gws", 0},
                                                {"wave_front_size", 0},
                                                {"array_count", 0},
                                                {"simd_arrays_per_engine", 0},
                                                {"cu_per_simd_array", 0},
                                                {"simd_per_cu", 0},
                                                {"max_slots_scratch_cu", 0},
                                                {"gfx_target_version", 0},
                                                {"vendor_id", 0},
                                                {"device_id", 0},
                                                {"location_id", 0},
                                                {"domain", 0},
                                                {"drm_render_minor", 0},
                                                {"hive_id", 0},
                                                {"num_sdma_engines", 0},
                                                {"num_sdma_xgmi_engines", 0},
                                                {"num_sdma_queues_per_engine", 0},
                                                {"num_cp_queues", 0},
                                                {"max_engine_clk_ccompute", 3000}}));
  constexpr std::uint32_t ddr_width = 64;
  constexpr std::uint32_t ddr_mhz = 2933;
  write_bank(files, node.index, heap_system, node.memory, ddr_width, ddr_mhz);
  files.make_folder(folder + "/caches");
  write_links(files, node.index, "io_links", node.links);
  write_links(files, node.index, "p2p_links", {});
}

std::uint32_t capabilities_of(const planned_gpu& gpu, bool hmm) {
  using namespace capability;  // NOLINT(google-build-using-namespace)
  std::uint32_t bits = queue_size_pow2 | watch_points | watch_points_4 | doorbell_64_bit;
  bits |=
      gpu.made_as->ecc == memory_ecc::present ? capability::memory_ecc | ras_events | sram_ecc : 0;
  bits |= hmm ? svm : 0;
  bits |= gpu.model.coherent_host_access == machine::setting_state::on ? coherent_host_access : 0;
  return bits;
}

void write_caches(const file_writer& files, const planned_gpu& gpu) {
  struct level {
    std::uint32_t number;
    std::uint32_t kib;
  };
  const auto& chip = *gpu.made_as;
  std::size_t index = 0;
  for (const auto& [number, kib] : {level{1, chip.l1_kib}, {2, chip.l2_kib}, {3, chip.l3_kib}}) {
    if (kib == 0) {
      continue;
    }
    constexpr std::uint32_t line_bytes = 64;
    constexpr std::uint32_t data_of_gpu = 9;  // HSA_CACHE_TYPE: data, of compute units
    auto text = lines_of({{"processor_id_low", first_simd_id},
                          {"level", number},
                          {"size", kib},
                          {"cache_line_size", line_bytes},
                          {"cache_lines_per_tag", 1},
                          {"association", 16},
                          {"latency", 0},
                          {"type", data_of_gpu}});
    text += "sibling_map 1";
    for (int sibling = 1; sibling < 256; ++sibling) {
      text += ",0";
    }
    files.write(fmt::format("{}/caches/{}/properties", folder_of(gpu.node), index++), text + "\n");
  }
}

std::uint64_t cache_count(const chip& of) {
  return of.l3_kib != 0 ? 3 : 2;
}

void write_gpu_node(const file_writer& files, const planned_gpu& gpu, bool hmm) {
  const auto folder = folder_of(gpu.node);
  const auto& chip = *gpu.made_as;
  const auto units = gpu.model.compute_units.value_or(chip.shader_engines * chip.arrays_per_engine *
                                                      chip.units_per_array);
  files.write(folder + "/gpu_id", fmt::format("{}\n", gpu.kfd_id));
  files.write(folder + "/name", fmt::format("{}\n", chip.codename));
  files.write(
      folder + "/properties",
      lines_of({{"cpu_cores_count", 0},
                {"simd_count", units * chip.simds_per_unit},
                {"mem_banks_count", 1},
                {"caches_count", cache_count(chip)},
                {"io_links_count", gpu.io_links.size()},
                {"p2p_links_count", gpu.peer_links.size()},
                {"cpu_core_id_base", 0},
                {"simd_id_base", first_simd_id},
                {"max_waves_per_simd", chip.waves_per_simd},
                {"lds_size_in_kb", 64},
                {"gds_size_in_kb", 0},
                {"num_gws", 64},
                {"wave_front_size", chip.wave_size},
                {"array_count", chip.shader_engines * chip.arrays_per_engine},
                {"simd_arrays_per_engine", chip.arrays_per_engine},
                {"cu_per_simd_array", chip.units_per_array},
                {"simd_per_cu", chip.simds_per_unit},
                {"max_slots_scratch_cu", 32},
                {"gfx_target_version", chip.gfx_version},
                {"vendor_id", gpu.model.pci_vendor_id.value_or(0x1002)},
                {"device_id", gpu.model.pci_device_id.value_or(0)},
                {"location_id", gpu.bus << 8U | gpu.device << 3U},
                {"domain", 0},
                {"drm_render_minor", gpu.render_minor},
                {"hive_id", gpu.model.hive.value_or(0)},
                {"num_sdma_engines", gpu.model.dma_engines.value_or(2)},
                {"num_sdma_xgmi_engines", gpu.model.hive ? gpu.model.xgmi_engines.value_or(0) : 0},
                {"num_sdma_queues_per_engine", 8},
                {"num_cp_queues", 24},
                {"max_engine_clk_fcompute", chip.engine_mhz},
                {"local_mem_size", 0},
                {"fw_version", chip.firmware},
                {"capability", capabilities_of(gpu, hmm)},
                {"debug_prop", 1495},
                {"sdma_fw_version", chip.sdma_firmware},
                {"unique_id", 0x1a2b3c4d5e6f0000U + gpu.index},
                {"max_engine_clk_ccompute", 3000}}));
  write_bank(files, gpu.node, gpu.large_bar ? heap_visible : heap_private, gpu.memory,
             chip.memory_width_bits, chip.memory_mhz);
  write_caches(files, gpu);
  write_links(files, gpu.node, "io_links", gpu.io_links);
  write_links(files, gpu.node, "p2p_links", gpu.peer_links);
}

}  // namespace

void write_kfd_files(const file_writer& files, const machine_plan& plan) {
  files.write(fmt::format("{}/generation_id", topology), "1\n");
  files.write(fmt::format("{}/system_properties", topology),
              lines_of({{"platform_oem", 0}, {"platform_id", 0}, {"platform_rev", 0}}));
  for (const auto& node : plan.nodes) {
    write_host_node(files, node);
  }
  for (const auto& gpu : plan.gpus) {
    write_gpu_node(files, gpu, plan.hmm);
  }
  files.link("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd");
  files.write("/dev/kfd", "");
}

}  // namespace berth::emulator
