// SPDX-License-Identifier: Apache-2.0
#include "trace/import/api_names.hpp"

#include <array>

namespace berth::trace {
namespace {

using namespace std::string_view_literals;

struct call_pattern {
  std::string_view part;  // of the name behind cuda/cu/hip
  event_kind kind;
  memory_kind memory;
};

// The first part that the name contains decides. Names of the CUDA runtime, the CUDA driver and HIP
// are alike enough that one list serves all three.
constexpr std::array call_patterns{
    call_pattern{"Memcpy", event_kind::copy_call, memory_kind::unknown},
    call_pattern{"Memset", event_kind::copy_call, memory_kind::unknown},
    call_pattern{"Synchronize", event_kind::synchronisation, memory_kind::unknown},
    call_pattern{"Launch", event_kind::launch_call, memory_kind::unknown},
    call_pattern{"MallocManaged", event_kind::allocation, memory_kind::managed},
    call_pattern{"MemAllocManaged", event_kind::allocation, memory_kind::managed},
    call_pattern{"MallocHost", event_kind::allocation, memory_kind::pinned},
    call_pattern{"HostAlloc", event_kind::allocation, memory_kind::pinned},
    call_pattern{"HostMalloc", event_kind::allocation, memory_kind::pinned},
    call_pattern{"MemAllocHost", event_kind::allocation, memory_kind::pinned},
    call_pattern{"Malloc", event_kind::allocation, memory_kind::device},
    call_pattern{"MemAlloc", event_kind::allocation, memory_kind::device},
    call_pattern{"FreeHost", event_kind::free, memory_kind::pinned},
    call_pattern{"HostFree", event_kind::free, memory_kind::pinned},
    // hipFree and cudaFree take managed memory too.
    call_pattern{"Free", event_kind::free, memory_kind::unknown},
};

struct prefix {
  std::string_view text;
  gpu_api api;
};

// Longest first: every cuda name starts with cu.
constexpr std::array prefixes{prefix{"cuda", gpu_api::cuda}, prefix{"hip", gpu_api::hip},
                              prefix{"cu", gpu_api::cuda}};

struct direction_name {
  std::string_view part;
  direction value;
};

constexpr std::array direction_names{
    direction_name{"HtoD", direction::host_to_device},
    direction_name{"DtoH", direction::device_to_host},
    direction_name{"DtoD", direction::device_to_device},
    direction_name{"PtoP", direction::peer_to_peer},
    direction_name{"HtoH", direction::host_to_host},
    direction_name{"HtoA", direction::host_to_device},
    direction_name{"AtoH", direction::device_to_host},
    direction_name{"DtoA", direction::device_to_device},
    direction_name{"AtoD", direction::device_to_device},
    direction_name{"AtoA", direction::device_to_device},
    direction_name{"HostToDevice", direction::host_to_device},
    direction_name{"DeviceToHost", direction::device_to_host},
    direction_name{"DeviceToDevice", direction::device_to_device},
    direction_name{"HOST_TO_DEVICE", direction::host_to_device},
    direction_name{"DEVICE_TO_HOST", direction::device_to_host},
    direction_name{"DEVICE_TO_DEVICE", direction::device_to_device},
    direction_name{"HOST_TO_HOST", direction::host_to_host},
    direction_name{"Host-to-Device", direction::host_to_device},
    direction_name{"Device-to-Host", direction::device_to_host},
    direction_name{"Device-to-Device", direction::device_to_device},
};

struct kind_name {
  std::string_view text;
  memory_kind kind;
};

// "Host" and "Unknown" say nothing of the kind.
constexpr std::array kind_names{
    kind_name{"Pageable", memory_kind::pageable}, kind_name{"Pinned", memory_kind::pinned},
    kind_name{"Device", memory_kind::device},     kind_name{"Array", memory_kind::device},
    kind_name{"Managed", memory_kind::managed},   kind_name{"Unified", memory_kind::managed},
};

constexpr bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

memory_kind kind_of(std::string_view text) noexcept {
  for (const auto& candidate : kind_names) {
    if (text == candidate.text) {
      return candidate.kind;
    }
  }
  return memory_kind::unknown;
}

}  // namespace

call_meaning meaning_of_call(std::string_view name) noexcept {
  call_meaning meaning;
  for (const auto& candidate : prefixes) {
    if (name.starts_with(candidate.text)) {
      meaning.api = candidate.api;
      name.remove_prefix(candidate.text.size());
      break;
    }
  }
  if (meaning.api == gpu_api::unknown) {
    return meaning;
  }
  for (const auto& pattern : call_patterns) {
    if (contains(name, pattern.part)) {
      meaning.kind = pattern.kind;
      meaning.memory = pattern.memory;
      break;
    }
  }
  return meaning;
}

std::optional<copy_meaning> meaning_of_copy(std::string_view name) noexcept {
  copy_meaning meaning;
  for (const auto& candidate : direction_names) {
    if (contains(name, candidate.part)) {
      meaning.direction = candidate.value;
      break;
    }
  }
  if (meaning.direction == direction::unknown) {
    return std::nullopt;
  }
  constexpr std::string_view arrow = " -> ";
  const auto open = name.find('(');
  const auto middle = name.find(arrow);
  const auto close = name.rfind(')');
  if (open < middle && middle < close && close != std::string_view::npos) {
    meaning.source = kind_of(name.substr(open + 1, middle - open - 1));
    const auto second = middle + arrow.size();
    meaning.destination = kind_of(name.substr(second, close - second));
  }
  return meaning;
}

direction direction_of_kind(std::uint64_t kind) noexcept {
  constexpr std::array directions{direction::host_to_host, direction::host_to_device,
                                  direction::device_to_host, direction::device_to_device};
  return kind < directions.size() ? directions[kind] : direction::unknown;
}

std::optional<event_kind> runtime_kernel(std::string_view name) noexcept {
  if (!name.starts_with("__amd_rocclr_")) {
    return std::nullopt;
  }
  if (contains(name, "copy")) {
    return event_kind::copy;
  }
  return contains(name, "fill") ? std::optional(event_kind::fill) : std::nullopt;
}

}  // namespace berth::trace
