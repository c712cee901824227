// SPDX-License-Identifier: Apache-2.0
// What people paste beside the tables: lscpu's and numactl's NUMA nodes, the kernel's command line,
// variables of the environment, and the lines that ROCm logs while it starts.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::iommu_mode;
using machine::setting_state;
using namespace std::string_view_literals;

constexpr std::size_t most_said = 1 << 12;

// Of the kernel's command line: the rest may name hosts, disks and users.
constexpr std::array option_prefixes = {
    "iommu="sv,           "amd_iommu="sv,   "intel_iommu="sv, "amdgpu."sv,
    "nvidia"sv,           "pci="sv,         "pcie_"sv,        "numa_"sv,
    "transparent_"sv,     "hugepage"sv,     "isolcpus="sv,    "amd_pstate"sv,
    "default_hugepage"sv, "intel_pstate"sv, "hmm"sv};

constexpr std::array variable_prefixes = {"HSA_"sv,  "ROCR_"sv, "HIP_"sv,  "GPU_"sv,
                                          "CUDA_"sv, "NCCL_"sv, "RCCL_"sv, "AMD_"sv};
constexpr std::array secret_parts = {"KEY"sv, "TOKEN"sv, "SECRET"sv, "PASS"sv, "UUID"sv};

template <std::size_t Size>
bool starts_with_one_of(std::string_view text, const std::array<std::string_view, Size>& of) {
  return std::ranges::any_of(of, [&](std::string_view one) { return text.starts_with(one); });
}

struct said_setting {
  std::string name;
  std::string value;
  std::uint32_t line = 0;
};

struct said_node {
  std::uint32_t line = 0;
  std::string id;
  std::string cpus;  // "0-3,8"
};

// "1" or "0" behind that name: "HMM support: 1, xnack: 0".
setting_state flag_after(std::string_view lowered, std::string_view name) {
  const auto at = lowered.find(name);
  const auto rest =
      at == std::string_view::npos ? ""sv : text::trim(lowered.substr(at + name.size()));
  if (rest.starts_with("1")) {
    return setting_state::on;
  }
  return rest.starts_with("0") ? setting_state::off : setting_state::unknown;
}

class settings_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    return take_nodes(one) || take_command_line(one) || take_variable(one) || take_start(one) ||
           take_iommu(one, text);
  }

  bool takes(const line& one) override { return begins(one) || take_numactl(one); }

  void tells(writer& to) override {
    for (const auto& one : nodes_) {
      to.at(one.line);
      tell_node(to, one);
    }
    for (const auto& one : states_) {
      to.at(one.line);
      tell_state(to, one);
    }
    for (const auto& one : options_) {
      to.at(one.line);
      tell_options(to, one);
    }
    tell_variables(to);
  }

private:
  void say(std::string_view name, std::string_view value, std::uint32_t line) {
    if (states_.size() < most_said) {
      states_.push_back({std::string(name), std::string(value), line});
    }
  }

  // "NUMA node0 CPU(s):   0-15,128-143", "node 0 cpus: 0 1 2", "NUMA node(s):  4"
  bool take_nodes(const line& one) {
    const std::string_view text = one.text;
    if (text.starts_with("NUMA node(s):")) {
      return true;
    }
    const bool is_lscpu =
        text.starts_with("NUMA node") && text.find("CPU(s):") != std::string_view::npos;
    const bool is_numactl =
        text.starts_with("node ") && text.find(" cpus:") != std::string_view::npos;
    if (!is_lscpu && !is_numactl) {
      return false;
    }
    const auto id = leading_number(text.substr(is_lscpu ? 9 : 5));
    if (!id || nodes_.size() >= most_said) {
      return id.has_value();
    }
    auto cpus = std::string(text::trim(text.substr(text.find(':') + 1)));
    if (is_numactl) {
      std::ranges::replace(cpus, ' ', ',');
    }
    nodes_.push_back({.line = one.number, .id = fmt::format("{}", *id), .cpus = std::move(cpus)});
    return true;
  }

  static bool take_numactl(const line& one) {
    const std::string_view text = one.text;
    return text.starts_with("available: ") ||
           (text.starts_with("node ") && (text.find(" size:") != std::string_view::npos ||
                                          text.find(" free:") != std::string_view::npos));
  }

  bool take_command_line(const line& one) {
    const std::string_view text = one.text;
    const bool is_it = text.starts_with("BOOT_IMAGE=") ||
                       text.find("ommand line: BOOT_IMAGE=") != std::string_view::npos ||
                       text.starts_with("GRUB_CMDLINE_LINUX");
    if (!is_it || options_.size() >= most_said) {
      return is_it;
    }
    // What GRUB is told is not what the kernel was, until the next start.
    if (!text.starts_with("GRUB")) {
      options_.push_back({"kernel_options", std::string(text), one.number});
    }
    return true;
  }

  // "export HSA_XNACK=1", "ROCR_VISIBLE_DEVICES: 0,1"
  bool take_variable(const line& one) {
    std::string_view text = one.text;
    if (text.starts_with("export ")) {
      text = text::trim(text.substr(7));
    }
    const auto end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (end == std::string_view::npos || end == 0 || (text[end] != '=' && text[end] != ':')) {
      return false;
    }
    const auto name = text.substr(0, end);
    auto value = text::trim(text.substr(end + 1));
    value = value.substr(0, value.find(' '));
    if (!starts_with_one_of(name, variable_prefixes)) {
      return false;
    }
    const bool is_secret = std::ranges::any_of(secret_parts, [&](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    });
    // A script's own variables are not values.
    if (!is_secret && value.find_first_of("$`/@") == std::string_view::npos &&
        variables_.size() < most_said) {
      std::string plain(value);
      std::erase(plain, '"');
      std::erase(plain, '\'');
      variables_.push_back({std::string(name), plain, one.number});
    }
    return true;
  }

  // "HMM support: 1, xnack: 0, direct host access: 0"
  bool take_start(const line& one) {
    const auto at = one.text.find("HMM support:");
    if (at == std::string::npos) {
      return false;
    }
    const auto lowered = text::to_lower(std::string_view(one.text).substr(at));
    const auto hmm = flag_after(lowered, "hmm support:");
    const auto xnack = flag_after(lowered, "xnack:");
    if (hmm != setting_state::unknown) {
      say("hmm", to_string(hmm), one.number);
    }
    if (xnack != setting_state::unknown) {
      say("xnack", to_string(xnack), one.number);
    }
    return true;
  }

  // "iommu: Default domain type: Passthrough (set via kernel command line)"
  bool take_iommu(const line& one, std::string_view text) {
    constexpr auto words = "Default domain type: "sv;
    const auto at = text.find(words);
    if (at == std::string_view::npos) {
      return false;
    }
    const auto type = text.substr(at + words.size());
    if (type.starts_with("Passthrough")) {
      say("iommu", to_string(iommu_mode::passthrough), one.number);
    } else if (type.starts_with("Translated")) {
      say("iommu", to_string(iommu_mode::translated), one.number);
    }
    return true;
  }

  static void tell_node(writer& to, const said_node& one) {
    const auto id = to.numa_id(one.id);
    const auto cpus = text::parse_number_list(one.cpus);
    if (id && cpus) {
      to.cpus_of_node(*id, *cpus);
    } else if (id && !one.cpus.empty()) {
      to.problem(fmt::format("\"{}\" is no list of CPUs; left out", text::shorten(one.cpus, 40)));
    }
  }

  static void tell_state(writer& to, const said_setting& one) {
    if (one.name == "iommu") {
      to.of_settings("iommu", &machine::settings::iommu,
                     machine::parse_iommu_mode(one.value).value_or(iommu_mode::unknown), one.value);
      return;
    }
    const auto state = machine::parse_setting_state(one.value).value_or(setting_state::unknown);
    if (one.name == "hmm") {
      to.of_settings("hmm", &machine::settings::hmm, state, one.value);
    } else {
      to.of_settings("xnack", &machine::settings::xnack, state, one.value);
    }
  }

  static void tell_options(writer& to, const said_setting& one) {
    std::vector<std::string> kept;
    for (const auto word : text::words(one.value)) {
      if (starts_with_one_of(word, option_prefixes)) {
        kept.emplace_back(word);
      }
    }
    to.of_settings("kernel_options", &machine::settings::kernel_options, kept,
                   fmt::format("{}", fmt::join(kept, " ")));
    const auto has = [&](std::string_view option) {
      return std::ranges::find(kept, option) != kept.end();
    };
    if (has("iommu=off") || has("amd_iommu=off") || has("intel_iommu=off")) {
      to.of_settings("iommu", &machine::settings::iommu, iommu_mode::off, "off");
    } else if (has("iommu=pt")) {
      to.of_settings("iommu", &machine::settings::iommu, iommu_mode::passthrough, "passthrough");
    }
    for (const auto& [option, state] : {std::pair("amdgpu.noretry=0"sv, setting_state::off),
                                        std::pair("amdgpu.noretry=1"sv, setting_state::on)}) {
      if (has(option)) {
        to.of_settings("noretry", &machine::settings::noretry, state,
                       std::string(to_string(state)));
      }
    }
  }

  void tell_variables(writer& to) const {
    std::map<std::string, std::string> values;
    for (const auto& one : variables_) {
      to.at(one.line);
      const auto [known, is_new] = values.emplace(one.name, one.value);
      auto& all = to.machine().set.environment;
      const auto told = std::ranges::find(all, one.name, &machine::environment_variable::name);
      if (is_new && told == all.end()) {
        all.push_back({.name = one.name, .value = {}});
      }
      const auto slot = std::ranges::find(all, one.name, &machine::environment_variable::name);
      to.say().says(fmt::format("settings.environment.{}", one.name), slot->value, one.value,
                    one.value);
      if (one.name == "HSA_ENABLE_SDMA" && one.value == "0") {
        to.of_settings("sdma", &machine::settings::sdma, setting_state::off, "off");
      }
    }
    // What two lines give two values has none.
    std::erase_if(to.machine().set.environment,
                  [](const machine::environment_variable& one) { return one.value.empty(); });
  }

  std::vector<said_node> nodes_;
  std::vector<said_setting> states_;
  std::vector<said_setting> options_;
  std::vector<said_setting> variables_;
};

}  // namespace

std::unique_ptr<reader> make_settings_reader() {
  return std::make_unique<settings_reader>();
}

}  // namespace berth::topology::paste
