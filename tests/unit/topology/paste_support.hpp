// SPDX-License-Identifier: Apache-2.0
// What tests of pasted text ask of a survey.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/paste.hpp"

namespace berth::topology::test {

inline machine::survey read_text(std::string text) {
  const std::vector<pasted_text> pieces{{.name = "paste.txt", .text = std::move(text)}};
  return read_pasted(pieces);
}

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline bool is_contradicted(const machine::survey& seen, std::string_view field) {
  return std::ranges::any_of(seen.contradictions,
                             [&](const auto& one) { return one.field == field; });
}

inline bool has_problem(const machine::survey& seen, std::string_view part) {
  return std::ranges::any_of(
      seen.problems, [&](const auto& one) { return one.what.find(part) != std::string::npos; });
}

// The link between two GPUs, or null.
inline const machine::link* gpu_link(const machine::survey& seen, std::uint32_t one,
                                     std::uint32_t other) {
  const auto is_end = [](const machine::place& end, std::uint32_t id) {
    return end.kind == machine::place_kind::gpu && end.id == id;
  };
  const auto found = std::ranges::find_if(seen.machine.links, [&](const machine::link& link) {
    return (is_end(link.from, one) && is_end(link.to, other)) ||
           (is_end(link.from, other) && is_end(link.to, one));
  });
  return found == seen.machine.links.end() ? nullptr : &*found;
}

}  // namespace berth::topology::test
