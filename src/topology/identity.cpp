// SPDX-License-Identifier: Apache-2.0
#include "topology/identity.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/text.hpp"
#include "topology/files.hpp"

namespace berth::topology {
namespace {

using namespace std::string_view_literals;

// Of /proc/cmdline: the rest may name hosts, disks and users.
constexpr std::array kernel_options = {
    "iommu"sv,
    "amd_iommu"sv,
    "intel_iommu"sv,
    "amdgpu."sv,
    "nvidia"sv,
    "pci"sv,
    "pcie_"sv,
    "numa"sv,
    "transparent_"sv,
    "hugepage"sv,
    "default_hugepage"sv,
    "isolcpus"sv,
    "nohz_full"sv,
    "cgroup"sv,
    "amd_pstate"sv,
    "intel_pstate"sv,
    "processor."sv,
    "intel_idle."sv,
    "cpufreq"sv,
    "mem="sv,
    "hmm"sv,
    "systemd.unified_cgroup"sv,
    "nouveau"sv,
    "vfio"sv,
    "swiotlb"sv,
};

constexpr std::array status_lines = {"Cpus_allowed_list:"sv, "Mems_allowed_list:"sv};

constexpr std::array variable_prefixes = {"HSA_"sv,  "ROCR_"sv,   "HIP_"sv,  "GPU_"sv,
                                          "CUDA_"sv, "NCCL_"sv,   "RCCL_"sv, "ROCM_"sv,
                                          "AMD_"sv,  "NVIDIA_"sv, "UCX_"sv,  "MPICH_GPU_"sv};
constexpr std::array secret_parts = {"KEY"sv, "TOKEN"sv, "SECRET"sv, "PASS"sv, "UUID"sv};

template <std::size_t Size>
bool starts_with_any(std::string_view text, const std::array<std::string_view, Size>& of) {
  return std::ranges::any_of(of, [&](std::string_view one) { return text.starts_with(one); });
}

template <typename Keep>
std::string lines_where(std::string_view text, const Keep& keep) {
  std::string kept;
  for (const auto line : lines_of(text)) {
    if (keep(line)) {
      kept.append(line).append("\n");
    }
  }
  return kept;
}

std::string known_options(std::string_view text) {
  std::string kept;
  for (const auto word : text::words(text)) {
    if (starts_with_any(word, kernel_options)) {
      kept.append(kept.empty() ? "" : " ").append(word);
    }
  }
  return kept + "\n";
}

// "Linux version 6.1.0-18-amd64", without who built it where.
std::string first_words(std::string_view text, std::size_t count) {
  const auto words = text::words(text);
  std::string kept;
  for (std::size_t index = 0; index < std::min(count, words.size()); ++index) {
    kept.append(kept.empty() ? "" : " ").append(words[index]);
  }
  return kept + "\n";
}

// Of the first CPU: its name and its flags, of which one tells a virtual machine.
std::string first_cpu(std::string_view text) {
  std::string kept;
  for (const auto wanted : {"model name"sv, "flags"sv}) {
    const auto lines = lines_of(text);
    const auto found = std::ranges::find_if(
        lines, [&](std::string_view line) { return line.starts_with(wanted); });
    if (found != lines.end()) {
      kept.append(*found).append("\n");
    }
  }
  return kept;
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t index = 0; index < 4; ++index) {
    word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + index]))
            << (8 * index);
  }
  return word;
}

// The configuration space of a PCI device: one of its extended capabilities is a serial number.
std::string without_serial(std::string bytes) {
  constexpr std::size_t extended = 0x100;
  constexpr std::uint32_t serial_number = 0x0003;
  std::size_t at = extended;
  for (int hops = 0; hops < 64 && at >= extended && at + 12 <= bytes.size(); ++hops) {
    const auto header = word_at(bytes, at);
    if ((header & 0xffffU) == serial_number) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at) + 4, 8, '\0');
    }
    at = header >> 20U;
  }
  return bytes;
}

}  // namespace

std::string without_identity(std::string_view path, std::string_view text) {
  if (path.ends_with("/config")) {
    return without_serial(std::string(text));
  }
  if (path == "/proc/cmdline") {
    return known_options(text);
  }
  if (path == "/proc/version") {
    return first_words(text, 3);
  }
  if (path == "/proc/cpuinfo") {
    return first_cpu(text);
  }
  if (path == "/proc/self/status") {
    return lines_where(text, [](auto line) { return starts_with_any(line, status_lines); });
  }
  if (path == "/proc/self/limits") {
    return lines_where(text, [](auto line) { return line.starts_with("Max locked memory"); });
  }
  if (path.find("/kfd/topology/") != std::string_view::npos) {
    return lines_where(text, [](auto line) { return !line.starts_with("unique_id"); });
  }
  return std::string(text);
}

bool steers_gpus(std::string_view name) {
  return starts_with_any(name, variable_prefixes) &&
         std::ranges::none_of(secret_parts, [&](std::string_view part) {
           return name.find(part) != std::string_view::npos;
         });
}

std::string without_names(std::string value, std::string_view host) {
  for (const auto home : {"/home/"sv, "/users/"sv, "/Users/"sv}) {
    for (auto at = value.find(home); at != std::string::npos; at = value.find(home, at + 1)) {
      const auto begin = at + home.size();
      const auto end = std::min(value.find_first_of("/:,; ", begin), value.size());
      value.replace(begin, end - begin, "...");
    }
  }
  if (host.size() >= 3) {
    for (auto at = value.find(host); at != std::string::npos; at = value.find(host, at + 1)) {
      value.replace(at, host.size(), "(host)");
    }
  }
  return value;
}

}  // namespace berth::topology
