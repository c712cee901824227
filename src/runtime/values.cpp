// SPDX-License-Identifier: Apache-2.0
#include "berth/runtime/values.hpp"

#include <array>

#include <fmt/format.h>

namespace berth::runtime {
namespace {

template <std::size_t Count, typename Enum>
constexpr std::string_view name_at(const std::array<std::string_view, Count>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < Count ? names[index] : "unknown";
}

// In the order of the enums.
constexpr std::array<std::string_view, 3> runtime_names{"hip", "cuda", "sim"};
constexpr std::array<std::string_view, capability_count> capability_names{"managed",
                                                                          "advise",
                                                                          "prefetch",
                                                                          "coarse_grain_advice",
                                                                          "peer_access",
                                                                          "per_thread_stream",
                                                                          "stream_priority",
                                                                          "host_callback",
                                                                          "stream_capture",
                                                                          "kernels",
                                                                          "fine_grained_device",
                                                                          "host_coherence",
                                                                          "host_numa",
                                                                          "system_release",
                                                                          "tells_registered",
                                                                          "tells_range"};
constexpr std::array<std::string_view, 3> coherence_names{"unknown", "fine", "coarse"};
constexpr std::array<std::string_view, 2> progress_names{"complete", "pending"};

}  // namespace

std::string_view to_string(runtime_kind value) noexcept {
  return name_at(runtime_names, value);
}

std::string_view to_string(capability value) noexcept {
  return name_at(capability_names, value);
}

std::string_view to_string(coherence value) noexcept {
  return name_at(coherence_names, value);
}

std::string_view to_string(progress value) noexcept {
  return name_at(progress_names, value);
}

std::string to_string(const runtime_version& value) {
  return fmt::format("{}.{}.{}", value.major, value.minor, value.patch);
}

}  // namespace berth::runtime
