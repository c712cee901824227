// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/plan.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace berth::bandwidth {
namespace {

using machine::trait;

constexpr auto up = direction::host_to_device;
constexpr auto down = direction::device_to_host;

const std::array paths{
    named_path{"pinned", {up, memory_kind::pinned, engine::dma}},
    named_path{"pinned", {down, memory_kind::pinned, engine::dma}},
    named_path{
        "both", {up, memory_kind::pinned, engine::dma, trait::bidirectional}, directions::both},
    named_path{"kernel", {up, memory_kind::pinned, engine::kernel}},
    named_path{"kernel", {down, memory_kind::pinned, engine::kernel}},
    named_path{"write-combined", {up, memory_kind::pinned, engine::dma, trait::write_combined}},
    named_path{"registered", {up, memory_kind::registered, engine::dma}},
    named_path{"registered", {down, memory_kind::registered, engine::dma}},
    named_path{"pageable", {up, memory_kind::pageable, engine::dma}},
    named_path{"pageable", {down, memory_kind::pageable, engine::dma}},
    named_path{"fresh",
               {down, memory_kind::pageable, engine::dma, trait::fresh_pages},
               directions::one,
               mib},
    // By whichever engine the runtime takes.
    named_path{"device", {direction::device_to_device, memory_kind::device, engine::unknown}},
};

const std::vector<bytes_t>& sizes_of(thoroughness how) {
  static const std::array<std::vector<bytes_t>, 3> all{{
      {16 * mib, 64 * mib},
      {4 * kib, 64 * kib, mib, 16 * mib, 64 * mib, 256 * mib},
      {4, 64, kib, 4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib,
       256 * mib, 512 * mib, gib},
  }};
  return all.at(static_cast<std::size_t>(how));
}

// In their order, each once.
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& one : paths) {
    if (std::find(all.begin(), all.end(), one.name) == all.end()) {
      all.emplace_back(one.name);
    }
  }
  return all;
}

result<void> check(const wish& wanted, int device_count) {
  const auto known = names();
  for (const auto& name : wanted.kinds) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return error(errc::usage, fmt::format("no path is called \"{}\"", name), "--kinds",
                   fmt::format("there are {}", fmt::join(known, ", ")));
    }
  }
  if (std::find(wanted.sizes.begin(), wanted.sizes.end(), 0U) != wanted.sizes.end()) {
    return error(errc::usage, "a copy of no bytes has no rate", "--sizes", "give sizes above 0");
  }
  if (wanted.device && (*wanted.device < 0 || *wanted.device >= device_count)) {
    return error(errc::usage, fmt::format("there is no device {}", *wanted.device), "--device",
                 device_count == 1 ? "there is device 0 alone"
                                   : fmt::format("there are 0 to {}", device_count - 1));
  }
  return {};
}

}  // namespace

std::span<const named_path> all_paths() noexcept {
  return paths;
}

result<std::vector<planned>> make_plan(const wish& wanted, int device_count) {
  if (auto sound = check(wanted, device_count); !sound) {
    return sound.error();
  }
  const auto& sizes = wanted.sizes.empty() ? sizes_of(wanted.how) : wanted.sizes;
  std::vector<planned> all;
  for (int device = 0; device < device_count; ++device) {
    if (wanted.device && *wanted.device != device) {
      continue;
    }
    for (const auto& one : paths) {
      const bool is_wanted =
          wanted.kinds.empty() ||
          std::find(wanted.kinds.begin(), wanted.kinds.end(), one.name) != wanted.kinds.end();
      for (const auto bytes : sizes) {
        if (is_wanted && bytes >= one.least) {
          all.push_back({device, one, bytes});
        }
      }
    }
  }
  return all;
}

}  // namespace berth::bandwidth
