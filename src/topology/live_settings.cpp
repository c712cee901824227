// SPDX-License-Identifier: Apache-2.0
// Settings of kernel, driver and process that decide how memory moves.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/live_reader.hpp"

namespace berth::topology {
namespace {

using machine::setting_state;

constexpr std::string_view governor_file = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

void says_text(reading& in, const std::string& field, std::string& slot, const std::string& value) {
  if (!value.empty()) {
    in.say.says(field, slot, value, value);
  }
}

void says_state(reading& in, const std::string& field, setting_state& slot, bool on) {
  const auto state = on ? setting_state::on : setting_state::off;
  in.say.says(field, slot, state, std::string(to_string(state)));
}

void read_versions(reading& in) {
  auto& set = in.seen.machine.set;
  if (const auto text = in.text("/proc/version")) {
    const auto words = text::words(*text);
    if (words.size() >= 3) {
      says_text(in, "settings.kernel_version", set.kernel_version, std::string(words[2]));
    }
  }
  if (const auto text = in.text("/sys/module/amdgpu/version")) {
    says_text(in, "settings.driver_version", set.driver_version, *text);
  } else if (const auto nvidia = in.text("/sys/module/nvidia/version")) {
    says_text(in, "settings.driver_version", set.driver_version, *nvidia);
  }
  if (const auto text = in.text("/opt/rocm/.info/version")) {
    says_text(in, "settings.runtime_version", set.runtime_version, *text);
  }
}

// "iommu.passthrough=1", "iommu=pt", "amd_iommu=off": the last one of a kind counts.
std::optional<machine::iommu_mode> iommu_option(const std::vector<std::string>& options) {
  std::optional<machine::iommu_mode> mode;
  for (const auto& option : options) {
    if (option == "iommu=pt" || option == "iommu.passthrough=1") {
      mode = machine::iommu_mode::passthrough;
    } else if (option == "iommu=nopt" || option == "iommu.passthrough=0") {
      mode = machine::iommu_mode::translated;
    }
  }
  return mode;
}

// What the kernel made of its options, where it shows: each group says of what type it is.
void read_iommu(reading& in) {
  auto& set = in.seen.machine.set;
  const std::string folder = "/sys/kernel/iommu_groups";
  const bool is_told = in.files.ask({question_kind::names, folder}).kind == answer_kind::text;
  if (!is_told) {
    return;
  }
  const auto groups = in.numbered(folder);
  in.say.reading(folder);
  if (groups.empty()) {
    in.say.says("settings.iommu", set.iommu, machine::iommu_mode::off, "off");
    return;
  }
  for (const auto& device : in.pci_folders) {
    const auto group = device.empty() ? std::nullopt : in.real(device + "/iommu_group");
    const auto type = group ? in.text(*group + "/type") : std::nullopt;
    if (type && (*type == "identity" || type->starts_with("DMA"))) {
      const auto mode =
          *type == "identity" ? machine::iommu_mode::passthrough : machine::iommu_mode::translated;
      in.say.says("settings.iommu", set.iommu, mode, std::string(to_string(mode)));
      return;
    }
  }
  if (const auto mode = iommu_option(set.kernel_options)) {
    in.say.reading("/proc/cmdline");
    in.say.says("settings.iommu", set.iommu, *mode, std::string(to_string(*mode)));
  }
}

void read_kernel(reading& in) {
  auto& set = in.seen.machine.set;
  if (const auto text = in.text("/proc/cmdline")) {
    std::vector<std::string> options;
    for (const auto word : text::words(*text)) {
      options.emplace_back(word);
    }
    if (!options.empty()) {
      in.say.says("settings.kernel_options", set.kernel_options, options, *text);
    }
  }
  if (const auto value = in.number("/proc/sys/kernel/numa_balancing")) {
    says_state(in, "settings.numa_balancing", set.numa_balancing, *value != 0);
  }
  // "always [madvise] never"
  if (const auto text = in.text("/sys/kernel/mm/transparent_hugepage/enabled")) {
    const auto open = text->find('[');
    const auto close = text->find(']');
    if (open != std::string::npos && close != std::string::npos && close > open) {
      says_text(in, "settings.transparent_huge_pages", set.transparent_huge_pages,
                text->substr(open + 1, close - open - 1));
    } else {
      in.say.problem(fmt::format("\"{}\" chooses nothing; left out", text::printable(*text)));
    }
  }
  if (const auto text = in.text(std::string(governor_file))) {
    says_text(in, "settings.cpu_governor", set.cpu_governor, *text);
  }
  // -1, the driver's own choice, says nothing of what it chose.
  if (const auto value = in.number("/sys/module/amdgpu/parameters/noretry");
      value && (*value == 0 || *value == 1)) {
    says_state(in, "settings.noretry", set.noretry, *value == 1);
  }
}

// "Max locked memory         8388608              8388608              bytes"
void read_limits(reading& in) {
  auto& set = in.seen.machine.set;
  const auto text = in.text("/proc/self/limits");
  if (text) {
    for (const auto line : lines_of(*text)) {
      const auto words = text::words(line);
      if (words.size() < 5 || !line.starts_with("Max locked memory")) {
        continue;
      }
      if (words[3] == "unlimited") {
        in.say.says("settings.memlock_limit", set.memlock_limit, UINT64_MAX, "unlimited");
      } else if (const auto bytes = parse_number(words[3])) {
        in.say.says("settings.memlock_limit", set.memlock_limit, *bytes,
                    fmt::format("{} bytes", *bytes));
      }
    }
  }
  if (const auto status = in.text("/proc/self/status")) {
    for (const auto line : lines_of(*status)) {
      const auto words = text::words(line);
      if (words.size() != 2 || words[0] != "Cpus_allowed_list:") {
        continue;
      }
      const auto cpus = text::parse_number_list(words[1]);
      if (cpus && !cpus->empty()) {
        in.say.says("settings.allowed_cpus", set.allowed_cpus, *cpus, text::number_list(*cpus));
      }
    }
  }
}

// What berth found out of the process that looked: see observe.cpp.
void read_process(reading& in) {
  auto& set = in.seen.machine.set;
  const auto text = in.text(std::string(added::process)).value_or("");
  for (const auto line : lines_of(text)) {
    const auto words = text::words(line);
    if (words.size() < 2) {
      continue;
    }
    in.say.reading(words.size() > 2 ? std::string(line.substr(line.find(words[2]))) : "");
    const auto bytes = parse_number(words[1]);
    if (words[0] == "memory_limit" && bytes) {
      in.say.says("settings.memory_limit", set.memory_limit, *bytes,
                  fmt::format("{} bytes", *bytes));
    } else if (words[0] == "container" && (words[1] == "on" || words[1] == "off")) {
      says_state(in, "settings.container", set.container, words[1] == "on");
    }
  }
}

// Without those lines: the files of control groups as they are, of the process's own group or the
// container's root.
void read_memory_limit(reading& in) {
  auto& limit = in.seen.machine.set.memory_limit;
  if (limit) {
    return;
  }
  constexpr std::uint64_t no_limit = 1ULL << 60U;
  for (const auto* const file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto text = in.text(file);
    const auto bytes = text ? parse_number(*text) : std::nullopt;
    if (bytes && *bytes < no_limit) {
      in.say.says("settings.memory_limit", limit, *bytes, fmt::format("{} bytes", *bytes));
      return;
    }
  }
}

void read_virtual_machine(reading& in) {
  auto& slot = in.seen.machine.set.virtual_machine;
  if (const auto type = in.text("/sys/hypervisor/type"); type && !type->empty()) {
    says_state(in, "settings.virtual_machine", slot, true);
    return;
  }
  const auto text = in.text("/proc/cpuinfo").value_or("");
  for (const auto line : lines_of(text)) {
    if (line.starts_with("flags")) {
      const auto words = text::words(line);
      says_state(in, "settings.virtual_machine", slot,
                 std::ranges::find(words, "hypervisor") != words.end());
    }
  }
}

// Not where virtual functions can be handed through: there a function doesn't show that it is one.
void read_whole_functions(reading& in) {
  if (in.seen.machine.set.virtual_machine != setting_state::off) {
    return;
  }
  auto& gpus = in.seen.machine.gpus;
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    if (gpus[index].virtual_function == setting_state::unknown && !in.pci_folders[index].empty()) {
      in.say.reading(in.pci_folders[index] + " (no physfn)");
      says_state(in, gpu_field(index, "virtual_function"), gpus[index].virtual_function, false);
    }
  }
}

void read_environment(reading& in) {
  auto& set = in.seen.machine.set;
  const auto text = in.text(std::string(added::environment));
  if (!text) {
    return;
  }
  std::vector<machine::environment_variable> variables;
  for (const auto line : lines_of(*text)) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && equals > 0) {
      variables.push_back(
          {std::string(line.substr(0, equals)), std::string(line.substr(equals + 1))});
    }
  }
  if (!variables.empty()) {
    in.say.says("settings.environment", set.environment, variables,
                fmt::format("{} variables", variables.size()));
  }
  for (const auto& one : variables) {
    if (one.name == "HSA_ENABLE_SDMA" && (one.value == "0" || one.value == "1")) {
      says_state(in, "settings.sdma", set.sdma, one.value == "1");
    }
    if (one.name == "HSA_XNACK" && (one.value == "0" || one.value == "1")) {
      says_state(in, "settings.xnack", set.xnack, one.value == "1");
    }
  }
}

// Of the ways of all GPUs together.
void read_acs(reading& in) {
  auto& slot = in.seen.machine.set.acs_redirect;
  bool any_known = false;
  bool any_on = false;
  for (const auto& gpu : in.seen.machine.gpus) {
    for (std::size_t index = 1; index < gpu.pci_path.size(); ++index) {
      const auto& device = gpu.pci_path[index];
      any_known = any_known || device.acs_redirect != setting_state::unknown;
      if (device.acs_redirect == setting_state::on && !any_on) {
        any_on = true;
        in.say.reading("config of " + device.address);
      }
    }
  }
  if (any_known) {
    if (!any_on) {
      in.say.reading("config of the ports above the GPUs");
    }
    says_state(in, "settings.acs_redirect", slot, any_on);
  }
}

}  // namespace

void read_settings(reading& in) {
  read_versions(in);
  read_kernel(in);
  read_iommu(in);
  read_limits(in);
  read_process(in);
  read_memory_limit(in);
  read_virtual_machine(in);
  read_whole_functions(in);
  read_environment(in);
  read_acs(in);
  if (!in.seen.claims.empty()) {
    in.seen.sources.emplace_back("/proc, /sys: settings of kernel, driver and process");
  }
}

// "/dev/dri/renderD128 yes": by whom it was asked, and only where it was.
void read_access(reading& in) {
  const auto text = in.text(std::string(added::access));
  if (!text) {
    return;
  }
  properties may;
  for (const auto line : lines_of(*text)) {
    const auto words = text::words(line);
    if (words.size() == 2) {
      may.emplace(words[0], words[1] == "yes" ? 1 : 0);
    }
  }
  auto& gpus = in.seen.machine.gpus;
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    if (in.pci_folders[index].empty()) {
      continue;
    }
    const bool is_amd = gpus[index].made_by == machine::vendor::amd;
    std::vector<std::string> needed = {is_amd ? "/dev/kfd" : "/dev/nvidiactl"};
    if (is_amd) {
      for (const auto minor : in.numbered(in.pci_folders[index] + "/drm", "renderD")) {
        needed.push_back(fmt::format("/dev/dri/renderD{}", minor));
        break;  // of several partitions any will do to tell
      }
    }
    const bool all =
        std::ranges::all_of(needed, [&](const auto& one) { return value_of(may, one) == 1; });
    const auto first_missing =
        std::ranges::find_if(needed, [&](const auto& one) { return value_of(may, one) != 1; });
    in.say.reading(all ? needed.back() : *first_missing);
    says_state(in, gpu_field(index, "accessible"), gpus[index].accessible, all);
  }
}

// What each GPU does with a faulted access in a process like the one that looked. Where the
// driver's default decides, it is left unknown.
void read_xnack(reading& in) {
  const auto& set = in.seen.machine.set;
  auto& gpus = in.seen.machine.gpus;
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    auto& gpu = gpus[index];
    if (gpu.xnack_can == machine::xnack_ability::none) {
      in.say.reading(fmt::format("its ISA, {}", gpu.isa));
      says_state(in, gpu_field(index, "xnack"), gpu.xnack, false);
    } else if (gpu.xnack_can == machine::xnack_ability::boot_parameter &&
               set.noretry != setting_state::unknown) {
      in.say.reading("/sys/module/amdgpu/parameters/noretry");
      says_state(in, gpu_field(index, "xnack"), gpu.xnack, set.noretry == setting_state::off);
    } else if (gpu.xnack_can == machine::xnack_ability::per_process &&
               set.xnack == setting_state::off) {
      in.say.reading("HSA_XNACK=0");
      says_state(in, gpu_field(index, "xnack"), gpu.xnack, false);
    }
  }
}

}  // namespace berth::topology
