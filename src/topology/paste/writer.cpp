// SPDX-License-Identifier: Apache-2.0
#include "topology/paste/writer.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "machine/catalogue.hpp"
#include "machine/hardware_facts.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::place_kind;
using machine::setting_state;
using machine::vendor;

// Far above what is built: eight GPUs of eight partitions each are 64.
constexpr std::size_t most_gpus = 256;
constexpr std::uint64_t most_nodes = 1024;  // Linux knows no more

std::uint64_t key_of(const machine::place& one) {
  return (one.kind == place_kind::gpu ? 1ULL << 32U : 0ULL) | one.id;
}

bool may_be(vendor known, vendor called) {
  return known == vendor::unknown || called == vendor::unknown || known == called;
}

}  // namespace

void writer::enter(std::string_view family, std::string_view text) {
  family_ = family;
  text_ = text;
  say_.reading(fmt::format("{} ({})", family_, text_));
}

void writer::at(std::uint32_t line) {
  say_.reading(fmt::format("{} ({}), line {}", family_, text_, line));
}

void writer::problem(std::string what) {
  constexpr std::size_t most_problems = 1000;
  const auto count = survey_->problems.size();
  if (count < most_problems) {
    say_.problem(std::move(what));
  } else if (count == most_problems) {
    say_.problem("there are more problems, which are not listed");
  }
}

std::optional<std::size_t> writer::gpu_by_address(const std::string& address) const {
  const auto found = addresses_.find(address);
  return found == addresses_.end() ? std::nullopt : std::optional(found->second);
}

// Tools number the GPUs of their own maker only.
std::optional<std::size_t> writer::gpu_by_index(const gpu_name& called) {
  std::uint32_t left = *called.index;
  const auto& gpus = machine().gpus;
  for (std::size_t at = 0; at < gpus.size(); ++at) {
    if (may_be(gpus[at].made_by, called.made_by) && left-- == 0) {
      return at;
    }
  }
  // Those before it exist, though nothing is known of them.
  std::optional<std::size_t> made;
  do {
    made = new_gpu({.made_by = called.made_by, .index = called.index, .address = {}});
  } while (made && left-- != 0);
  return made;
}

std::optional<std::size_t> writer::new_gpu(const gpu_name& called) {
  auto& gpus = machine().gpus;
  if (gpus.size() >= most_gpus) {
    if (!has_too_many_) {
      problem(fmt::format("more than {} GPUs; those after them are left out", most_gpus));
    }
    has_too_many_ = true;
    return std::nullopt;
  }
  const auto at = gpus.size();
  gpus.emplace_back().index = static_cast<std::uint32_t>(at);
  name_gpu(at, called);
  return at;
}

void writer::name_gpu(std::size_t at, const gpu_name& called) {
  auto& numbered = machine().gpus[at].numbered;
  numbered = called.index || numbered == setting_state::on ? setting_state::on : setting_state::off;
  if (called.made_by != vendor::unknown) {
    of_gpu(at, "made_by", &machine::gpu::made_by, called.made_by,
           std::string(to_string(called.made_by)));
  }
  if (!called.address.empty()) {
    of_gpu(at, "pci_address", &machine::gpu::pci_address, called.address, called.address);
    addresses_.emplace(called.address, at);
  }
}

std::optional<std::size_t> writer::gpu(const gpu_name& called) {
  if (called.index && *called.index >= most_gpus) {
    problem(fmt::format("GPU {} is one that no machine has; left out", *called.index));
    return std::nullopt;
  }
  std::optional<std::size_t> found;
  if (!called.address.empty()) {
    found = gpu_by_address(called.address);
  }
  if (!found && called.index) {
    found = gpu_by_index(called);
    const bool is_another =
        found && !called.address.empty() && !machine().gpus[*found].pci_address.empty();
    if (is_another) {
      found.reset();
    }
  }
  if (!found) {
    return new_gpu(called);
  }
  name_gpu(*found, called);
  return found;
}

std::vector<std::size_t> writer::gpus_at(std::span<const gpu_name> called) {
  std::vector<std::size_t> found;
  std::vector<std::size_t> without;
  std::size_t unknown = 0;
  const auto maker = called.empty() ? vendor::unknown : called.front().made_by;
  for (const auto& one : machine().gpus) {
    if (one.pci_address.empty() && may_be(one.made_by, maker)) {
      without.push_back(one.index);
    }
  }
  for (const auto& one : called) {
    unknown += gpu_by_address(one.address) ? 0U : 1U;
  }
  std::size_t next = 0;
  for (const auto& one : called) {
    const auto known = gpu_by_address(one.address);
    if (!known && unknown == without.size()) {
      name_gpu(without[next], one);
      found.push_back(without[next++]);
    } else if (const auto at = known ? known : new_gpu(one)) {
      name_gpu(*at, one);
      found.push_back(*at);
    } else {
      break;  // the caller's names and what is returned stay side by side
    }
  }
  return found;
}

std::optional<std::uint32_t> writer::numa_id(std::string_view text) {
  if (text == "-1" || text == "N/A" || text == "None") {
    return std::nullopt;
  }
  const auto number = number_in(text);
  if (!number || *number >= most_nodes) {
    problem(fmt::format("\"{}\" is no NUMA node; left out", text::shorten(text, 40)));
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*number);
}

void writer::numa_of_gpu(std::size_t gpu, std::string_view text) {
  if (const auto id = numa_id(text)) {
    of_gpu(gpu, "numa_node", &machine::gpu::numa_node, *id, fmt::format("{}", *id));
    static_cast<void>(node_of(*id));
  }
}

machine::numa_node& writer::node_of(std::uint32_t id) {
  auto& nodes = machine().numa_nodes;
  const auto place = std::ranges::lower_bound(nodes, id, {}, &machine::numa_node::id);
  if (place != nodes.end() && place->id == id) {
    return *place;
  }
  const auto made = nodes.insert(place, machine::numa_node{});
  made->id = id;
  return *made;
}

void writer::memory_of_node(std::uint32_t node, bytes_t bytes) {
  say_.says(fmt::format("numa_nodes[{}].memory", node), node_of(node).memory, bytes,
            fmt::format("{} bytes", bytes));
}

void writer::cpus_of_node(std::uint32_t node, const std::vector<std::uint32_t>& cpus) {
  say_.says(fmt::format("numa_nodes[{}].cpus", node), node_of(node).cpus, cpus,
            text::number_list(cpus));
}

std::size_t writer::link(machine::place one, machine::place other) {
  if (key_of(other) < key_of(one)) {
    std::swap(one, other);
  }
  auto& links = machine().links;
  const auto [known, is_new] = links_.try_emplace({key_of(one), key_of(other)}, links.size());
  if (is_new) {
    auto& made = links.emplace_back();
    made.from = one;
    made.to = other;
  }
  return known->second;
}

void writer::pcie(const std::string& field, machine::pcie_link& slot,
                  const machine::pcie_link& value) {
  if (value.generation) {
    say_.says(field + ".generation", slot.generation, *value.generation,
              fmt::format("gen {}", *value.generation));
  }
  if (value.width) {
    say_.says(field + ".width", slot.width, *value.width, fmt::format("x{}", *value.width));
  }
}

void writer::identify(std::size_t gpu, vendor made_by, std::string_view title) {
  if (made_by != vendor::unknown) {
    of_gpu(gpu, "made_by", &machine::gpu::made_by, made_by, std::string(to_string(made_by)));
  }
  // Two tools may call the same GPU differently, which is no contradiction.
  auto& known = machine().gpus[gpu];
  if (title.empty() || !known.title.empty()) {
    return;
  }
  of_gpu(gpu, "title", &machine::gpu::title, std::string(title), std::string(title));
  if (const auto* const model = machine::find_by_device_name(title);
      model != nullptr && known.model.empty()) {
    of_gpu(gpu, "model", &machine::gpu::model, model->name, model->name);
  }
}

void writer::isa_of_gpu(std::size_t gpu, const std::string& isa) {
  of_gpu(gpu, "isa", &machine::gpu::isa, isa, isa);
  if (const auto can = machine::xnack_ability_of(isa); can != machine::xnack_ability::unknown) {
    of_gpu(gpu, "xnack_can", &machine::gpu::xnack_can, can, std::string(to_string(can)));
  }
}

}  // namespace berth::topology::paste
