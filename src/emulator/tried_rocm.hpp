// SPDX-License-Identifier: Apache-2.0
// The releases of ROCm that have run on the emulator, by the file of their HSA runtime. Others are
// tried, with a warning. Standard library only: the preloaded library reads it too.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace berth::emulator {

inline constexpr std::string_view hsa_runtime_stem = "libhsa-runtime64.so";

inline constexpr std::array<std::string_view, 1> tried_hsa_runtimes = {
    "libhsa-runtime64.so.1.5.0",  // Debian 12: ROCm 5.2.3
};

[[nodiscard]] constexpr bool is_tried(std::string_view hsa_runtime) noexcept {
  return std::find(tried_hsa_runtimes.begin(), tried_hsa_runtimes.end(), hsa_runtime) !=
         tried_hsa_runtimes.end();
}

}  // namespace berth::emulator
