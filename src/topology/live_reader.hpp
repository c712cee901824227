// SPDX-License-Identifier: Apache-2.0
// What the parts of the live reader share: the files, the survey in the making, and how fields are
// read. Not for other folders.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/survey.hpp"
#include "topology/files.hpp"

namespace berth::topology {

// "name value" lines, of the compute driver for one. What is no number is left out.
using properties = std::map<std::string, std::uint64_t, std::less<>>;

struct reading {
  machine_files& files;
  machine::survey& seen;
  machine::surveyor say{seen};
  // Of each GPU of the survey: its PCI folder, "/sys/devices/pci.../0000:03:00.0"; or empty.
  std::vector<std::string> pci_folders = {};
  // Ids of hives as the driver numbers them, in the order of their coming.
  std::vector<std::uint64_t> hives = {};

  // The text of a file without blanks at its ends; sets the source. An unreadable one is a problem.
  std::optional<std::string> text(const std::string& path);
  // The same, uncut: for binary files.
  std::optional<std::string> bytes(const std::string& path);
  // A file that holds one number, decimal or 0x. Another text is a problem.
  std::optional<std::int64_t> number(const std::string& path);
  std::vector<std::string> names(const std::string& folder);
  // Names that are numbers, ascending.
  std::vector<std::uint32_t> numbered(const std::string& folder, std::string_view prefix = {});
  std::optional<std::string> real(const std::string& path);
  std::optional<properties> table(const std::string& path);
};

[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;
// "0000:03:00.0" from its numbers; and whether a text is one.
[[nodiscard]] std::string pci_address_of(std::uint64_t domain, std::uint64_t location);
[[nodiscard]] bool is_pci_address(std::string_view text) noexcept;
[[nodiscard]] std::uint64_t value_of(const properties& from, std::string_view name);
[[nodiscard]] std::string gpu_field(std::size_t index, std::string_view name);

// "gfx90a" from 90010; empty for 0.
[[nodiscard]] std::string isa_of(std::uint64_t version);

// In this order: each builds on what those before have found.
void read_numa(reading& in);
void read_kfd(reading& in);
void read_pci(reading& in);
void read_nvml(reading& in);
void read_settings(reading& in);
void read_access(reading& in);
void read_xnack(reading& in);

// All of them.
[[nodiscard]] machine::survey survey_of(machine_files& files, machine::survey_kind kind);

}  // namespace berth::topology
