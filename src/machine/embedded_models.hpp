// SPDX-License-Identifier: Apache-2.0
// The texts of models/*.json, compiled in by embed_models.cmake. Private to the library.
#pragma once

#include <span>
#include <string_view>

namespace berth::machine {

struct embedded_model {
  std::string_view file;  // "h200.json"
  std::string_view text;
};

// By ascending file name.
[[nodiscard]] std::span<const embedded_model> embedded_models() noexcept;

}  // namespace berth::machine
