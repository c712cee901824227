// SPDX-License-Identifier: Apache-2.0
// Variables of the program's environment that are ours.
#pragma once

#include <cstdlib>
#include <string_view>

namespace berth::interpose {

// Empty where it is not set.
[[nodiscard]] inline std::string_view variable(const char* name) noexcept {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

}  // namespace berth::interpose
