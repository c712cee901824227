// SPDX-License-Identifier: Apache-2.0
// The small things that all these tools print: words, numbers, PCI addresses, lists of CPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::topology::paste {

// The whole text as a decimal number, or a hexadecimal one after "0x".
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view text) noexcept;

// The whole text as a decimal number with or without a point: "12150.7". Not negative.
[[nodiscard]] std::optional<double> decimal_in(std::string_view text) noexcept;

// The decimal digits at its begin.
[[nodiscard]] std::optional<std::uint64_t> leading_number(std::string_view text) noexcept;

// "GPU3" or "GPU[3]" or "GPU 3 ...": the number after that prefix.
[[nodiscard]] std::optional<std::uint32_t> index_after(std::string_view prefix,
                                                       std::string_view text) noexcept;

struct key_value {
  std::string_view key;
  std::string_view value;
};

// "Key:   value", split at the first colon. Nothing where there is none.
[[nodiscard]] std::optional<key_value> key_value_of(std::string_view text) noexcept;

// The same but for case, or for one letter that is wrong, missing or too many.
[[nodiscard]] bool is_nearly(std::string_view text, std::string_view wanted) noexcept;

// "0000:0c:00.0" of "c:0.0", "0C:00.0", "0000:0c:00.0"; empty for text that is no address.
[[nodiscard]] std::string pci_address_in(std::string_view text);

// The generation of PCIe with that speed in GT/s: "16.0", "16GT/s".
[[nodiscard]] std::optional<std::uint32_t> generation_of(std::string_view speed) noexcept;

}  // namespace berth::topology::paste
