// SPDX-License-Identifier: Apache-2.0
#include "cmd_version.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "berth/types.hpp"
#include "berth/version.hpp"
#include "core/text.hpp"
#include "report/page.hpp"

namespace berth::cli {
namespace {

using json = nlohmann::ordered_json;
using runtime::candidate;
using runtime::device_info;

constexpr std::size_t label_width = 10;
constexpr std::size_t indent = 2;

// The attributes of a device that are yes, no or unknown, in the order of printing.
struct trait {
  std::string_view name;
  std::optional<bool> device_info::*value;
};

constexpr std::array traits{
    trait{"integrated", &device_info::integrated},
    trait{"unified_addressing", &device_info::unified_addressing},
    trait{"managed_memory", &device_info::managed_memory},
    trait{"concurrent_managed_access", &device_info::concurrent_managed_access},
    trait{"direct_managed_access_from_host", &device_info::direct_managed_access_from_host},
    trait{"pageable_access", &device_info::pageable_access},
    trait{"pageable_uses_host_page_tables", &device_info::pageable_uses_host_page_tables},
    trait{"host_native_atomics", &device_info::host_native_atomics},
    trait{"can_map_host_memory", &device_info::can_map_host_memory},
    trait{"host_register_supported", &device_info::host_register_supported},
    trait{"fine_grained_memory", &device_info::fine_grained_memory},
    trait{"large_bar", &device_info::large_bar},
};

std::vector<runtime::capability> all_capabilities() {
  std::vector<runtime::capability> all;
  for (unsigned i = 0; i < runtime::capability_count; ++i) {
    all.push_back(static_cast<runtime::capability>(i));
  }
  return all;
}

// Names of those capabilities that are in the set, or of those that are not.
std::vector<std::string_view> capability_names(runtime::capability_set of, bool present) {
  std::vector<std::string_view> names;
  for (const auto each : all_capabilities()) {
    if (of.has(each) == present) {
      names.push_back(runtime::to_string(each));
    }
  }
  return names;
}

std::string listed(const std::vector<std::string_view>& names) {
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

// What a runtime counts as a version is its own: HIP's release, the CUDA level of a driver.
std::string version_words(const candidate& shown) {
  const auto number = runtime::to_string(*shown.version);
  switch (shown.kind) {
    case runtime::runtime_kind::hip:
      return "HIP " + number;
    case runtime::runtime_kind::cuda:
      return "CUDA " + number;
    case runtime::runtime_kind::sim:
      return "simulator " + number;
  }
  return number;
}

std::string device_words(const device_info& device) {
  std::vector<std::string> words{text::printable(device.name)};
  const auto add = [&words](const auto& value, auto say) {
    if (value) {
      words.push_back(say(*value));
    }
  };
  add(device.architecture, [](const std::string& name) { return text::printable(name); });
  add(device.memory_total, [](bytes_t bytes) { return format_bytes(bytes); });
  add(device.compute_units, [](int count) { return fmt::format("{} compute units", count); });
  add(device.copy_engines,
      [](int count) { return fmt::format("{} copy engine{}", count, count == 1 ? "" : "s"); });
  add(device.pci_address, [](const std::string& name) { return "PCI " + text::printable(name); });
  add(device.numa_node, [](int node) { return fmt::format("NUMA node {}", node); });
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string_view> trait_names(const device_info& device, bool value) {
  std::vector<std::string_view> names;
  for (const auto& one : traits) {
    if (device.*one.value == value) {
      names.push_back(one.name);
    }
  }
  return names;
}

void show_device(report::page& page, const device_info& device) {
  page.block(fmt::format("device {}", device.index), device_words(device), report::style::faint,
             label_width, indent);
  if (const auto yes = trait_names(device, true); !yes.empty()) {
    page.block("", "has " + listed(yes), report::style::faint, label_width, indent);
  }
  if (const auto no = trait_names(device, false); !no.empty()) {
    page.block("", "has no " + listed(no), report::style::faint, label_width, indent);
  }
}

void show_info(report::page& page, const runtime::runtime_info& info) {
  const auto row = [&page](std::string_view label, std::string_view text) {
    page.block(label, text, report::style::faint, label_width, indent);
  };
  row("times", fmt::format("are {}", to_string(info.timing)));
  row("can", listed(capability_names(info.capabilities, true)));
  row("cannot", listed(capability_names(info.capabilities, false)));
  if (!info.missing_symbols.empty()) {
    row("lacks", fmt::format("the optional calls {}", fmt::join(info.missing_symbols, ", ")));
  }
}

void show_runtime(report::page& page, const candidate& shown) {
  page.line();
  page.block(runtime::to_string(shown.kind), text::printable(shown.verdict), report::style::bold,
             label_width);
  if (!shown.library.empty()) {
    auto words = text::printable(shown.library);
    if (shown.version) {
      words += ", " + version_words(shown);
    }
    page.block("library", words, report::style::faint, label_width, indent);
  }
  for (const auto& name : shown.tried) {
    page.block(&name == shown.tried.data() ? "tried" : "", text::printable(name),
               report::style::faint, label_width, indent);
  }
  if (shown.info) {
    show_info(page, *shown.info);
  }
  for (const auto& device : shown.devices) {
    show_device(page, device);
  }
}

template <typename Value>
json told(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

json device_json(const device_info& device) {
  json made{{"index", device.index},
            {"name", device.name},
            {"architecture", told(device.architecture)},
            {"pci_address", told(device.pci_address)},
            {"memory_bytes", told(device.memory_total)},
            {"compute_units", told(device.compute_units)},
            {"copy_engines", told(device.copy_engines)},
            {"wave_size", told(device.wave_size)},
            {"memory_clock_khz", told(device.memory_clock_khz)},
            {"memory_bus_bits", told(device.memory_bus_bits)},
            {"l2_bytes", told(device.l2_bytes)},
            {"numa_node", told(device.numa_node)}};
  for (const auto& one : traits) {
    made[std::string(one.name)] = told(device.*one.value);
  }
  return made;
}

json runtime_json(const candidate& shown) {
  json made{{"name", runtime::to_string(shown.kind)},
            {"taken", shown.taken},
            {"verdict", shown.verdict},
            {"library", shown.library.empty() ? json() : json(shown.library)},
            {"version", shown.version ? json(runtime::to_string(*shown.version)) : json()},
            {"tried", shown.tried}};
  if (shown.info) {
    made["times"] = to_string(shown.info->timing);
    auto& capabilities = made["capabilities"] = json::object();
    for (const auto each : all_capabilities()) {
      capabilities[std::string(runtime::to_string(each))] = shown.info->capabilities.has(each);
    }
    made["missing_symbols"] = shown.info->missing_symbols;
  }
  made["devices"] = json::array();
  for (const auto& device : shown.devices) {
    made["devices"].push_back(device_json(device));
  }
  return made;
}

// The candidate of that kind; each list has one.
candidate& of_kind(std::vector<candidate>& all, runtime::runtime_kind kind) {
  return *std::find_if(all.begin(), all.end(),
                       [kind](const candidate& one) { return one.kind == kind; });
}

}  // namespace

result<version_report> survey_version() {
  const auto request = runtime::open_request::from_environment();
  if (!request) {
    return request.error();
  }
  version_report made{.choice = {}, .runtimes = runtime::survey()};
  auto opened = runtime::open(*request);
  if (!opened) {
    made.choice = fmt::format("none, since {}", opened.error().to_string());
    return made;
  }
  made.choice = opened->reason;
  // What was opened may be another simulator than the survey's.
  const auto taken = std::find_if(opened->candidates.begin(), opened->candidates.end(),
                                  [](const candidate& one) { return one.taken; });
  if (taken != opened->candidates.end()) {
    of_kind(made.runtimes, taken->kind) = std::move(*taken);
  }
  return made;
}

std::string version_text_of(const version_report& shown, report::colour colours) {
  report::page page(colours);
  page.line(fmt::format("berth {}", version_text), report::style::bold);
  page.block("runtime", text::printable(shown.choice), report::style::faint, label_width);
  for (const auto& one : shown.runtimes) {
    show_runtime(page, one);
  }
  return page.take();
}

std::string version_json_of(const version_report& shown) {
  json made{{"schema_version", 1},
            {"berth_version", version_text},
            {"choice", shown.choice},
            {"runtimes", json::array()}};
  for (const auto& one : shown.runtimes) {
    made["runtimes"].push_back(runtime_json(one));
  }
  // Names come from foreign libraries: what is not UTF-8 is replaced, not an error.
  return made.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

exit_status run_version(const version_options& options, const streams& io) {
  const auto shown = survey_version();
  if (!shown) {
    show_error(io.err, shown.error());
    return exit_status::wrong_usage;
  }
  const auto text = options.format == output_format::json ? version_json_of(*shown)
                                                          : version_text_of(*shown, io.colours);
  if (const auto written = write_output(io, "", text); !written) {
    show_error(io.err, written.error());
    return exit_status::unusable;
  }
  return exit_status::done;
}

}  // namespace berth::cli
