// SPDX-License-Identifier: Apache-2.0
// A machine file: one GPU model or one whole node, what it consists of and what its paths cost.
// The data files in models/ and a user's own file have the same format (docs/machine-files.md) and
// the same reader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "machine/machine.hpp"
#include "machine/profile.hpp"

namespace berth::machine {

enum class model_kind : std::uint8_t {
  gpu,   // one GPU and its host link
  node,  // several GPUs, their links and NUMA nodes
  link,  // no particular GPU: what a healthy PCIe link gives
};

[[nodiscard]] std::string_view to_string(model_kind value) noexcept;
[[nodiscard]] std::optional<model_kind> parse_model_kind(std::string_view text) noexcept;

struct model {
  model_kind kind = model_kind::gpu;
  std::string name;                       // short: "mi250x"
  std::string title;                      // as people write it: "AMD Instinct MI250X (one GCD)"
  std::vector<std::string> device_names;  // as runtimes and tools print it
  description hardware;                   // one GPU for a `gpu`, none for a `link`
  machine_profile profile;                // figures with the provenance that the file states
};

// Reads a machine file. Blocks on the file; keeps nothing open.
// @errors file_unreadable; input_empty; input_malformed and input_out_of_range with the file, the
// line and what is wrong there
[[nodiscard]] result<model> try_load_model(const std::filesystem::path& file);

// The same for text that is at hand; `file` is for messages. A file may build on a model of the
// catalogue ("extends").
[[nodiscard]] result<model> try_parse_model(std::string_view text, std::string_view file);

}  // namespace berth::machine
