// SPDX-License-Identifier: Apache-2.0
// Writes what readers of pasted text found into one machine: finds the GPU, NUMA node or link that
// a line is about, keeps where it stood, and refuses what no machine has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "machine/survey.hpp"

namespace berth::topology::paste {

// What a tool calls a GPU: its position among those of its maker, its address, or both.
struct gpu_name {
  machine::vendor made_by = machine::vendor::unknown;
  std::optional<std::uint32_t> index;
  std::string address;
};

class writer {
public:
  explicit writer(machine::survey& of) : survey_(&of), say_(of) {}

  // What is written next was said by that tool, in that text.
  void enter(std::string_view family, std::string_view text);
  // Where in it.
  void at(std::uint32_t line);
  // The first thousand are kept.
  void problem(std::string what);

  // Its position in the machine, where it gets one if it has none. Nothing for more GPUs than any
  // machine has, which is a problem said.
  [[nodiscard]] std::optional<std::size_t> gpu(const gpu_name& called);
  // Those that a tool lists by address alone: known ones; or, if as many of that maker have no
  // address yet, those in their order; or new ones. Fewer than asked for where there are too many.
  [[nodiscard]] std::vector<std::size_t> gpus_at(std::span<const gpu_name> called);
  // Nothing for a number that no NUMA node has; -1 is none, and no problem.
  [[nodiscard]] std::optional<std::uint32_t> numa_id(std::string_view text);
  void numa_of_gpu(std::size_t gpu, std::string_view text);
  void memory_of_node(std::uint32_t node, bytes_t bytes);
  void cpus_of_node(std::uint32_t node, const std::vector<std::uint32_t>& cpus);
  // The link between two places, whichever is named first. Not for one place twice.
  [[nodiscard]] std::size_t link(machine::place one, machine::place other);

  template <typename Slot, typename Said>
  void of_gpu(std::size_t gpu, std::string_view field, Slot machine::gpu::*slot, const Said& value,
              const std::string& printed) {
    say_.says(fmt::format("gpus[{}].{}", gpu, field), machine().gpus[gpu].*slot, value, printed);
  }
  template <typename Slot, typename Said>
  void of_link(std::size_t link, std::string_view field, Slot machine::link::*slot,
               const Said& value, const std::string& printed) {
    say_.says(fmt::format("links[{}].{}", link, field), machine().links[link].*slot, value,
              printed);
  }
  template <typename Slot, typename Said>
  void of_settings(std::string_view field, Slot machine::settings::*slot, const Said& value,
                   const std::string& printed) {
    say_.says(fmt::format("settings.{}", field), machine().set.*slot, value, printed);
  }
  void pcie(const std::string& field, machine::pcie_link& slot, const machine::pcie_link& value);

  [[nodiscard]] machine::description& machine() noexcept { return survey_->machine; }
  [[nodiscard]] machine::surveyor& say() noexcept { return say_; }

  // Who made it, its name, and the model of the catalogue with that name.
  void identify(std::size_t gpu, machine::vendor made_by, std::string_view title);
  void isa_of_gpu(std::size_t gpu, const std::string& isa);

private:
  [[nodiscard]] std::optional<std::size_t> gpu_by_index(const gpu_name& called);
  [[nodiscard]] std::optional<std::size_t> gpu_by_address(const std::string& address) const;
  [[nodiscard]] std::optional<std::size_t> new_gpu(const gpu_name& called);
  void name_gpu(std::size_t at, const gpu_name& called);
  [[nodiscard]] machine::numa_node& node_of(std::uint32_t id);

  machine::survey* survey_;
  machine::surveyor say_;
  std::string family_;
  std::string text_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> links_;
  std::map<std::string, std::size_t, std::less<>> addresses_;
  bool has_too_many_ = false;
};

}  // namespace berth::topology::paste
