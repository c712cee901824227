// SPDX-License-Identifier: Apache-2.0
// berth doctor's report as JSON. docs/doctor.md describes the members.
#include <array>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "berth/version.hpp"
#include "report/doctor.hpp"

namespace berth::report {
namespace {

using doctor_json = nlohmann::ordered_json;

template <typename Value>
doctor_json or_null(const std::optional<Value>& value) {
  return value ? doctor_json(*value) : doctor_json();
}

doctor_json or_null(const std::string& value) {
  return value.empty() ? doctor_json() : doctor_json(value);
}

template <typename Enum>
doctor_json name_or_null(Enum value) {
  return value == Enum{} ? doctor_json() : doctor_json(std::string(to_string(value)));
}

doctor_json link_json(const machine::pcie_link& link) {
  return {{"generation", or_null(link.generation)}, {"width", or_null(link.width)}};
}

doctor_json device_json(const machine::pci_device& device) {
  return {{"address", or_null(device.address)},
          {"port", name_or_null(device.port)},
          {"title", or_null(device.title)},
          {"vendor_id", or_null(device.vendor_id)},
          {"device_id", or_null(device.device_id)},
          {"capable", link_json(device.capable)},
          {"trained", link_json(device.trained)},
          {"speed_downgraded", name_or_null(device.speed_downgraded)},
          {"width_downgraded", name_or_null(device.width_downgraded)},
          {"acs_redirect", name_or_null(device.acs_redirect)}};
}

doctor_json gpu_json(const machine::gpu& gpu) {
  doctor_json path = doctor_json::array();
  for (const auto& device : gpu.pci_path) {
    path.push_back(device_json(device));
  }
  return {{"index", gpu.index},
          {"numbered", name_or_null(gpu.numbered)},
          {"made_by", name_or_null(gpu.made_by)},
          {"title", or_null(gpu.title)},
          {"model", or_null(gpu.model)},
          {"isa", or_null(gpu.isa)},
          {"pci_address", or_null(gpu.pci_address)},
          {"pci_vendor_id", or_null(gpu.pci_vendor_id)},
          {"pci_device_id", or_null(gpu.pci_device_id)},
          {"memory_bytes", or_null(gpu.memory)},
          {"bar_bytes", or_null(gpu.bar)},
          {"bar_address", or_null(gpu.bar_address)},
          {"dma_bits", or_null(gpu.dma_bits)},
          {"compute_units", or_null(gpu.compute_units)},
          {"dma_engines", or_null(gpu.dma_engines)},
          {"xgmi_engines", or_null(gpu.xgmi_engines)},
          {"host_link", link_json(gpu.host_link)},
          {"trained_link", link_json(gpu.trained_link)},
          {"xnack_can", name_or_null(gpu.xnack_can)},
          {"xnack", name_or_null(gpu.xnack)},
          {"coherent_host_access", name_or_null(gpu.coherent_host_access)},
          {"integrated", name_or_null(gpu.integrated)},
          {"hive", or_null(gpu.hive)},
          {"numa_node", or_null(gpu.numa_node)},
          {"near_cpus", gpu.near_cpus},
          {"compute_partition", or_null(gpu.compute_partition)},
          {"memory_partition", or_null(gpu.memory_partition)},
          {"virtual_function", name_or_null(gpu.virtual_function)},
          {"asleep", name_or_null(gpu.asleep)},
          {"accessible", name_or_null(gpu.accessible)},
          {"pci_path", std::move(path)}};
}

doctor_json node_json(const machine::numa_node& node) {
  doctor_json distances = doctor_json::array();
  for (const auto& one : node.distances) {
    distances.push_back({{"to", one.to}, {"value", one.value}});
  }
  return {{"id", node.id},
          {"cpus", node.cpus},
          {"memory_bytes", or_null(node.memory)},
          {"distances", std::move(distances)}};
}

doctor_json place_json(const machine::place& place) {
  return {{"kind", place.kind == machine::place_kind::gpu ? "gpu" : "numa_node"}, {"id", place.id}};
}

doctor_json machine_link_json(const machine::link& link) {
  return {{"from", place_json(link.from)},   {"to", place_json(link.to)},
          {"kind", name_or_null(link.kind)}, {"route", or_null(link.route)},
          {"count", or_null(link.count)},    {"weight", or_null(link.weight)},
          {"hops", or_null(link.hops)},      {"nominal_GBps", or_null(link.nominal_gb_per_s)},
          {"pcie", link_json(link.pcie)}};
}

doctor_json settings_json(const machine::settings& set) {
  doctor_json environment = doctor_json::object();
  for (const auto& one : set.environment) {
    environment[one.name] = one.value;
  }
  return {{"xnack", name_or_null(set.xnack)},
          {"noretry", name_or_null(set.noretry)},
          {"hmm", name_or_null(set.hmm)},
          {"numa_balancing", name_or_null(set.numa_balancing)},
          {"sdma", name_or_null(set.sdma)},
          {"acs_redirect", name_or_null(set.acs_redirect)},
          {"iommu", name_or_null(set.iommu)},
          {"transparent_huge_pages", or_null(set.transparent_huge_pages)},
          {"cpu_governor", or_null(set.cpu_governor)},
          {"driver_version", or_null(set.driver_version)},
          {"runtime_version", or_null(set.runtime_version)},
          {"kernel_version", or_null(set.kernel_version)},
          {"kernel_options", set.kernel_options},
          {"environment", std::move(environment)},
          {"memlock_limit_bytes", or_null(set.memlock_limit)},
          {"memory_limit_bytes", or_null(set.memory_limit)},
          {"allowed_cpus", set.allowed_cpus},
          {"container", name_or_null(set.container)},
          {"virtual_machine", name_or_null(set.virtual_machine)}};
}

template <typename Items, typename Render>
doctor_json array_of(const Items& items, Render render) {
  doctor_json all = doctor_json::array();
  for (const auto& one : items) {
    all.push_back(render(one));
  }
  return all;
}

doctor_json machine_json(const machine::description& machine) {
  return {{"gpus", array_of(machine.gpus, gpu_json)},
          {"numa_nodes", array_of(machine.numa_nodes, node_json)},
          {"links", array_of(machine.links, machine_link_json)},
          {"pci_devices", array_of(machine.pci_devices, device_json)},
          {"settings", settings_json(machine.set)}};
}

doctor_json claim_json(const machine::claim& one) {
  return {{"field", one.field}, {"value", one.value}, {"source", one.source}};
}

doctor_json contradiction_json(const machine::contradiction& one) {
  return {{"field", one.field}, {"claims", array_of(one.claims, claim_json)}};
}

doctor_json rate_json(const machine::measured_rate& one) {
  constexpr std::array<std::string_view, 3> places{"", "near", "far"};
  return {{"direction", name_or_null(one.way)},
          {"both_ways", one.ways == machine::traffic::both_ways},
          {"host_memory", name_or_null(one.host)},
          {"gpu", or_null(one.gpu)},
          {"peer", or_null(one.peer)},
          {"numa_node", or_null(one.node)},
          {"host_is", or_null(std::string(places[static_cast<std::size_t>(one.host_is)]))},
          {"GBps", one.gb_per_s},
          {"promised_GBps", or_null(one.promised_gb_per_s)},
          {"source", one.source}};
}

doctor_json copies_json(const machine::logged_copies& some) {
  return {{"engine", name_or_null(some.by)},
          {"engine_name", or_null(some.engine_name)},
          {"direction", name_or_null(some.way)},
          {"failure_code", or_null(some.failure)},
          {"count", some.count},
          {"source", some.source}};
}

doctor_json result_json(const diagnose::check_result& one) {
  const auto* const check = diagnose::find_check(one.check);
  const auto evidence = [](const diagnose::check_evidence& of) {
    return doctor_json{{"field", of.field}, {"value", of.value}, {"source", or_null(of.source)}};
  };
  return {{"check", one.check},
          {"title", check != nullptr ? check->title : std::string_view()},
          {"verdict", to_string(one.verdict)},
          {"headline", one.headline},
          {"gpus", one.gpus},
          {"evidence", array_of(one.evidence, evidence)},
          {"confirm", or_null(one.confirm)},
          {"fix", one.fix},
          {"page", fmt::format("docs/checks/{}.md", one.check)}};
}

doctor_json requirement_json(const diagnose::requirement_result& one) {
  return {{"name", one.what.name},
          {"wanted", one.what.wanted},
          {"is", to_string(one.is)},
          {"found", one.found}};
}

std::string_view kind_name(machine::survey_kind kind) {
  switch (kind) {
    case machine::survey_kind::live:
      return "live";
    case machine::survey_kind::captured:
      return "captured";
    case machine::survey_kind::pasted:
      break;
  }
  return "pasted";
}

// Names of foreign origin may be no UTF-8.
std::string dumped(const doctor_json& value) {
  return value.dump(2, ' ', false, doctor_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const doctor_report& shown) {
  const auto& seen = shown.seen;
  doctor_json all{
      {"schema", "berth.doctor/1"},
      {"berth_version", version_text},
      {"verdict", to_string(shown.found.worst)},
      {"headline", shown.found.headline},
      {"results", array_of(shown.found.results, result_json)},
      {"requirements", array_of(shown.required, requirement_json)},
      {"kind", kind_name(seen.kind)},
      {"sources", seen.sources},
      {"machine", machine_json(seen.machine)},
      {"measured_rates", array_of(seen.rates, rate_json)},
      {"logged_copies", array_of(seen.copies, copies_json)},
      {"fields", array_of(seen.claims, claim_json)},
      {"contradictions", array_of(seen.contradictions, contradiction_json)},
      {"problems", array_of(seen.problems,
                            [](const machine::reading_problem& one) {
                              return doctor_json{{"source", one.source}, {"what", one.what}};
                            })},
      {"lines", seen.lines},
      {"lines_not_understood", seen.unread_lines}};
  if (shown.unread == unread_lines::listed) {
    all["not_understood"] = array_of(seen.unread, [](const machine::unread_line& one) {
      return doctor_json{{"source", one.source}, {"text", one.text}};
    });
  }
  return dumped(all);
}

std::string to_json(const diagnose::affinity& shown) {
  const auto gpu = [](const diagnose::gpu_affinity& one) {
    return doctor_json{{"gpu", one.gpu},
                       {"pci_address", or_null(one.pci_address)},
                       {"numa_node", or_null(one.numa_node)},
                       {"cpus", one.cpus},
                       {"numactl", or_null(one.numactl)},
                       {"taskset", or_null(one.taskset)}};
  };
  return dumped({{"schema", "berth.affinity/1"},
                 {"gpus", array_of(shown.gpus, gpu)},
                 {"slurm", or_null(shown.slurm)}});
}

std::string to_json(const comparison& shown) {
  const auto one = [](const difference& of) {
    return doctor_json{
        {"field", of.field}, {"first", or_null(of.first)}, {"second", or_null(of.second)}};
  };
  return dumped({{"schema", "berth.comparison/1"},
                 {"first", shown.first},
                 {"second", shown.second},
                 {"differences", array_of(shown.differences, one)}});
}

}  // namespace berth::report
