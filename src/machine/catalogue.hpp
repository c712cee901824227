// SPDX-License-Identifier: Apache-2.0
// The GPU models and nodes that berth knows: data files in models/, compiled into the library, so
// that no file is needed when a program runs. docs/machine-files.md describes the format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/model.hpp"

namespace berth::machine {

// All models, by ascending short name. Parsed at the first call; safe from several threads.
// @throws exception (internal) if an embedded file is broken, which a test excludes
[[nodiscard]] std::span<const model> catalogue();

// By short name ("mi250x", "h200"), ignoring case. Null for one that is not in the catalogue.
[[nodiscard]] const model* find_by_name(std::string_view short_name);

// By the name of a device as runtimes, profilers and system tools print it ("NVIDIA H200",
// "AMD Instinct MI250X / MI250", "Tesla V100-SXM2-32GB", "gfx90a:sramecc+:xnack-"). Null where no
// model fits: for a laptop variant, for one, which shares the name and not the link.
[[nodiscard]] const model* find_by_device_name(std::string_view device_name);

// At most three short names or titles that look like `name`, closest first: for error messages.
[[nodiscard]] std::vector<std::string> close_names(std::string_view name);

// The model of that short name. @errors usage, with close names in the hint
[[nodiscard]] result<model> try_get_model(std::string_view short_name);

// The model's costs as what to expect of a machine of this model. Every figure is nominal (or
// modelled), because none was observed on the machine at hand; the source says who measured it.
[[nodiscard]] machine_profile nominal_profile(const model& of);

// The same where the GPU has that link to the host: what crosses it is scaled down, and modelled,
// if it is less than the model's own. An unknown link changes nothing.
[[nodiscard]] machine_profile nominal_profile(const model& of, const pcie_link& link);

// What a healthy PCIe link of that generation and width gives a GPU that is not in the catalogue.
// Nothing for a generation without a reference point, or a width that PCIe does not have.
[[nodiscard]] std::optional<machine_profile> generic_profile(std::uint32_t pcie_generation,
                                                             std::uint32_t pcie_width);

}  // namespace berth::machine
