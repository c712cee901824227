// SPDX-License-Identifier: Apache-2.0
#include "diagnose/joined_machine.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"
#include "machine/catalogue.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

using machine::vendor;

constexpr std::array<std::string_view, 4> selecting_variables{
    "environment.ROCR_VISIBLE_DEVICES", "environment.HIP_VISIBLE_DEVICES",
    "environment.GPU_DEVICE_ORDINAL", "environment.CUDA_VISIBLE_DEVICES"};

bool has_selected(const trace::trace& events) {
  return std::ranges::any_of(selecting_variables, [&](std::string_view name) {
    return events.about.facts.find(name) != events.about.facts.end();
  });
}

bool is_numbered(const machine::survey& seen) {
  return std::ranges::none_of(seen.machine.gpus, [](const machine::gpu& gpu) {
    return gpu.numbered == machine::setting_state::off;
  });
}

// What all of them have, if they have the same.
template <typename Value, typename Ask>
std::optional<Value> common(const std::vector<std::size_t>& positions, Ask ask) {
  std::optional<Value> all;
  for (const auto position : positions) {
    const std::optional<Value> one = ask(position);
    if (!one || (all && !(*all == *one))) {
      return std::nullopt;
    }
    all = one;
  }
  return all;
}

const machine::model* model_of_gpu(const machine::gpu& gpu) {
  return gpu.model.empty() ? machine::find_by_device_name(gpu.title)
                           : machine::find_by_name(gpu.model);
}

// For traces that do not name it: "AMD Radeon Graphics" is any. Null where there are several.
const machine::model* only_model_of(const machine::survey& seen, vendor made_by) {
  const machine::model* only = nullptr;
  for (const auto& gpu : seen.machine.gpus) {
    if (made_by != vendor::unknown && gpu.made_by != made_by) {
      continue;
    }
    const auto* const own = model_of_gpu(gpu);
    if (own == nullptr || (only != nullptr && own != only)) {
      return nullptr;
    }
    only = own;
  }
  return only;
}

struct same_link {
  machine::pcie_link link;
  friend bool operator==(const same_link& a, const same_link& b) {
    return a.link.generation == b.link.generation && a.link.width == b.link.width;
  }
};

}  // namespace

joined_machine::joined_machine(const trace::trace& events, const machine::survey& seen)
    : events_(&events), seen_(&seen) {
  const auto& about = events.about;
  made_by_ = about.api == trace::gpu_api::hip    ? vendor::amd
             : about.api == trace::gpu_api::cuda ? vendor::nvidia
                                                 : vendor::unknown;
  if (!about.devices.empty()) {
    model_ = machine::find_by_device_name(about.devices.front().name);
  }
  model_ = model_ != nullptr ? model_ : only_model_of(seen, made_by_);
  if (seen.machine.gpus.empty()) {
    mismatch_ = "the machine shows no GPU";
  } else if (std::ranges::none_of(seen.machine.gpus,
                                  [this](const auto& gpu) { return is_alike(gpu); })) {
    mismatch_ =
        fmt::format("the trace is of {}, and the machine has {}",
                    about.devices.empty() ? "a GPU of another maker" : about.devices.front().name,
                    model_of(seen.machine.gpus.front()));
  }
}

// A GPU of which the machine tells no model may be any of its maker.
bool joined_machine::is_alike(const machine::gpu& gpu) const {
  const bool same_maker =
      made_by_ == vendor::unknown || gpu.made_by == vendor::unknown || gpu.made_by == made_by_;
  const auto* const own = model_of_gpu(gpu);
  const auto isa_of = [](const machine::model& of) -> std::string_view {
    return of.hardware.gpus.size() == 1 ? std::string_view(of.hardware.gpus.front().isa)
                                        : std::string_view();
  };
  const bool other_isa = model_ != nullptr && own == nullptr && !gpu.isa.empty() &&
                         !isa_of(*model_).empty() && gpu.isa != isa_of(*model_);
  return same_maker && !other_isa && (model_ == nullptr || own == nullptr || own == model_);
}

std::vector<std::size_t> joined_machine::gpus_of(std::uint32_t device) const {
  std::vector<std::size_t> alike;
  std::vector<std::size_t> of_maker;
  const auto& gpus = seen_->machine.gpus;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    if (fits() && is_alike(gpus[position])) {
      alike.push_back(position);
    }
    if (made_by_ == vendor::unknown || gpus[position].made_by == made_by_) {
      of_maker.push_back(position);
    }
  }
  // All of the maker were visible: the runtime's numbers are the machine's.
  const bool sure = is_numbered(*seen_) && !has_selected(*events_) && device < of_maker.size() &&
                    events_->about.devices.size() == of_maker.size();
  if (sure && std::ranges::find(alike, of_maker[device]) != alike.end()) {
    return {of_maker[device]};
  }
  return alike;
}

std::optional<machine::pcie_link> joined_machine::link_of(std::uint32_t device) const {
  const auto found = common<same_link>(gpus_of(device), [this](std::size_t position) {
    const auto link = host_link_of(*seen_, position);
    return link ? std::optional(same_link{*link}) : std::nullopt;
  });
  return found ? std::optional(found->link) : std::nullopt;
}

std::optional<std::uint32_t> joined_machine::node_of(std::uint32_t device) const {
  return common<std::uint32_t>(gpus_of(device), [this](std::size_t position) {
    return seen_->machine.gpus[position].numa_node;
  });
}

machine::xnack_ability joined_machine::xnack_of(std::uint32_t device) const {
  using machine::xnack_ability;
  return common<xnack_ability>(
             gpus_of(device),
             [this](std::size_t position) {
               return std::optional(xnack_ability_of(seen_->machine.gpus[position]));
             })
      .value_or(xnack_ability::unknown);
}

}  // namespace berth::diagnose
