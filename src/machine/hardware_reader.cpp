// SPDX-License-Identifier: Apache-2.0
#include "machine/hardware_reader.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text.hpp"

namespace berth::machine {
namespace {

constexpr std::uint64_t largest_u32 = 0xFFFFFFFFULL;
constexpr std::uint64_t most_places = 4096;

template <typename Target>
void read_number_into(const json_cursor& from, std::string_view field, std::uint64_t highest,
                      Target& into) {
  if (const auto value = from.find(field)) {
    into = static_cast<typename Target::value_type>(value->integer(0, highest));
  }
}

void read_bytes_into(const json_cursor& from, std::string_view field,
                     std::optional<bytes_t>& into) {
  if (const auto value = from.find(field)) {
    into = value->bytes();
  }
}

void read_text_into(const json_cursor& from, std::string_view field, std::string& into) {
  if (const auto value = from.find(field)) {
    into = value->text();
  }
}

template <typename Enum>
void read_word_into(const json_cursor& from, std::string_view field,
                    std::optional<Enum> (*parse)(std::string_view) noexcept, Enum& into) {
  if (const auto value = from.find(field)) {
    into = read_word(*value, parse);
  }
}

pcie_link read_pcie(const json_cursor& value) {
  value.allow_only({"generation", "width"});
  pcie_link read;
  if (const auto generation = value.find("generation")) {
    read.generation = static_cast<std::uint32_t>(generation->integer(1, 7));
  }
  if (const auto width = value.find("width")) {
    read.width = static_cast<std::uint32_t>(width->integer(1, 32));
  }
  return read;
}

// PCI ids are written in hexadecimal everywhere else, so also here: "0x740f".
void read_hex_into(const json_cursor& from, std::string_view field,
                   std::optional<std::uint32_t>& into) {
  const auto value = from.find(field);
  if (!value) {
    return;
  }
  const auto text = value->text();
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.size() < 3 || text.compare(0, 2, "0x") != 0 ||
      std::from_chars(text.data() + 2, end, number, 16).ptr != end) {
    value->fail("expected a hexadecimal number such as \"0x740f\"");
  }
  into = number;
}

// Over what is already known of the GPU.
gpu read_gpu(const json_cursor& value, gpu known) {
  value.allow_only({"vendor",
                    "title",
                    "model",
                    "isa",
                    "pci_address",
                    "pci_vendor_id",
                    "pci_device_id",
                    "memory",
                    "bar",
                    "compute_units",
                    "dma_engines",
                    "xgmi_engines",
                    "host_link",
                    "trained_link",
                    "xnack_ability",
                    "xnack",
                    "coherent_host_access",
                    "integrated",
                    "hive",
                    "numa_node"});
  read_word_into(value, "vendor", parse_vendor, known.made_by);
  read_text_into(value, "title", known.title);
  read_text_into(value, "model", known.model);
  read_text_into(value, "isa", known.isa);
  read_text_into(value, "pci_address", known.pci_address);
  read_hex_into(value, "pci_vendor_id", known.pci_vendor_id);
  read_hex_into(value, "pci_device_id", known.pci_device_id);
  read_bytes_into(value, "memory", known.memory);
  read_bytes_into(value, "bar", known.bar);
  read_number_into(value, "compute_units", largest_u32, known.compute_units);
  read_number_into(value, "dma_engines", most_places, known.dma_engines);
  read_number_into(value, "xgmi_engines", most_places, known.xgmi_engines);
  if (const auto link = value.find("host_link")) {
    known.host_link = read_pcie(*link);
  }
  if (const auto link = value.find("trained_link")) {
    known.trained_link = read_pcie(*link);
  }
  read_word_into(value, "xnack_ability", parse_xnack_ability, known.xnack_can);
  read_word_into(value, "xnack", parse_setting_state, known.xnack);
  read_word_into(value, "coherent_host_access", parse_setting_state, known.coherent_host_access);
  read_word_into(value, "integrated", parse_setting_state, known.integrated);
  read_number_into(value, "hive", std::numeric_limits<std::uint64_t>::max(), known.hive);
  read_number_into(value, "numa_node", most_places, known.numa_node);
  return known;
}

// "0-7,64-71"
std::vector<std::uint32_t> read_cpus(const json_cursor& value) {
  auto cpus = text::parse_number_list(value.text());
  if (!cpus || cpus->empty()) {
    value.fail("expected a list of CPUs such as \"0-7,64-71\"");
  }
  return *std::move(cpus);
}

numa_node read_numa_node(const json_cursor& value) {
  value.allow_only({"id", "cpus", "memory", "distances"});
  numa_node node;
  node.id = static_cast<std::uint32_t>(value.at("id").integer(0, most_places));
  if (const auto cpus = value.find("cpus")) {
    node.cpus = read_cpus(*cpus);
  }
  read_bytes_into(value, "memory", node.memory);
  if (const auto distances = value.find("distances")) {
    for (const auto& item : distances->items()) {
      item.allow_only({"to", "value"});
      node.distances.push_back(
          {.to = static_cast<std::uint32_t>(item.at("to").integer(0, most_places)),
           .value = static_cast<std::uint32_t>(item.at("value").integer(0, 255))});
    }
  }
  return node;
}

// "gpu3" or "numa0", which the machine must have.
place read_place(const json_cursor& value, const description& machine) {
  const auto text = value.text();
  const bool is_gpu = text.compare(0, 3, "gpu") == 0;
  const bool is_numa = text.compare(0, 4, "numa") == 0;
  const char* const digits = text.data() + (is_gpu ? 3 : 4);
  const char* const end = text.data() + text.size();
  place read;
  if ((!is_gpu && !is_numa) || digits >= end || std::from_chars(digits, end, read.id).ptr != end) {
    value.fail(R"(expected a place such as "gpu0" or "numa1")");
  }
  read.kind = is_gpu ? place_kind::gpu : place_kind::numa_node;
  const bool exists =
      is_gpu ? read.id < machine.gpus.size()
             : std::any_of(machine.numa_nodes.begin(), machine.numa_nodes.end(),
                           [&read](const numa_node& node) { return node.id == read.id; });
  if (!exists) {
    value.fail(fmt::format("the machine has no {}", text), errc::input_out_of_range);
  }
  return read;
}

// "all_gpus", or a list of places: each is linked to each.
std::vector<place> read_group(const json_cursor& value, const description& machine) {
  std::vector<place> places;
  if (!value.is_string()) {
    for (const auto& item : value.items()) {
      places.push_back(read_place(item, machine));
    }
    return places;
  }
  if (value.text() != "all_gpus") {
    value.fail("expected \"all_gpus\" or a list of places");
  }
  for (std::uint32_t index = 0; index < machine.gpus.size(); ++index) {
    places.push_back({.kind = place_kind::gpu, .id = index});
  }
  return places;
}

void read_link(const json_cursor& value, description& machine) {
  value.allow_only({"from", "to", "among", "kind", "count", "weight", "hops", "gb_per_s", "pcie"});
  link read;
  read_word_into(value, "kind", parse_link_kind, read.kind);
  read_number_into(value, "count", largest_u32, read.count);
  read_number_into(value, "weight", largest_u32, read.weight);
  read_number_into(value, "hops", largest_u32, read.hops);
  if (const auto rate = value.find("gb_per_s")) {
    read.nominal_gb_per_s = rate->number(1e-3, 1e6);
  }
  if (const auto pcie = value.find("pcie")) {
    read.pcie = read_pcie(*pcie);
  }
  const auto among = value.find("among");
  if (!among) {
    read.from = read_place(value.at("from"), machine);
    read.to = read_place(value.at("to"), machine);
    machine.links.push_back(read);
    return;
  }
  const auto places = read_group(*among, machine);
  for (auto from = places.begin(); from != places.end(); ++from) {
    for (auto to = std::next(from); to != places.end(); ++to) {
      read.from = *from;
      read.to = *to;
      machine.links.push_back(read);
    }
  }
}

settings read_settings(const json_cursor& value) {
  value.allow_only({"xnack", "hmm", "numa_balancing", "sdma", "acs_redirect", "iommu",
                    "transparent_huge_pages", "cpu_governor", "driver_version", "runtime_version",
                    "memlock_limit"});
  settings read;
  read_word_into(value, "xnack", parse_setting_state, read.xnack);
  read_word_into(value, "hmm", parse_setting_state, read.hmm);
  read_word_into(value, "numa_balancing", parse_setting_state, read.numa_balancing);
  read_word_into(value, "sdma", parse_setting_state, read.sdma);
  read_word_into(value, "acs_redirect", parse_setting_state, read.acs_redirect);
  read_word_into(value, "iommu", parse_iommu_mode, read.iommu);
  read_text_into(value, "transparent_huge_pages", read.transparent_huge_pages);
  read_text_into(value, "cpu_governor", read.cpu_governor);
  read_text_into(value, "driver_version", read.driver_version);
  read_text_into(value, "runtime_version", read.runtime_version);
  read_bytes_into(value, "memlock_limit", read.memlock_limit);
  return read;
}

gpu base_gpu(const model* base) {
  return base != nullptr && !base->hardware.gpus.empty() ? base->hardware.gpus.front() : gpu{};
}

void read_machine(const json_cursor& value, const gpu& each, description& into) {
  value.allow_only({"numa_nodes", "gpus", "links", "settings"});
  if (const auto nodes = value.find("numa_nodes")) {
    for (const auto& item : nodes->items()) {
      into.numa_nodes.push_back(read_numa_node(item));
    }
  }
  if (const auto gpus = value.find("gpus")) {
    into.gpus.clear();
    for (const auto& item : gpus->items()) {
      into.gpus.push_back(read_gpu(item, each));
      into.gpus.back().index = static_cast<std::uint32_t>(into.gpus.size() - 1);
    }
  }
  if (const auto links = value.find("links")) {
    for (const auto& item : links->items()) {
      read_link(item, into);
    }
  }
  if (const auto set = value.find("settings")) {
    into.set = read_settings(*set);
  }
}

}  // namespace

description read_hardware(const json_cursor& root, model_kind kind, const model* base) {
  description machine;
  gpu each = base_gpu(base);
  if (const auto value = root.find("gpu")) {
    each = read_gpu(*value, std::move(each));
  } else if (kind == model_kind::gpu && base == nullptr) {
    root.fail("'gpu' is missing");
  }
  if (kind == model_kind::gpu) {
    machine.gpus.push_back(each);
  }
  if (const auto value = root.find("machine")) {
    read_machine(*value, each, machine);
  }
  if (kind == model_kind::node && machine.gpus.empty()) {
    root.fail("a node needs machine/gpus");
  }
  return machine;
}

}  // namespace berth::machine
