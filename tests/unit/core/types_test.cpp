// SPDX-License-Identifier: Apache-2.0
#include "berth/types.hpp"

#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using berth::direction;
using berth::engine;
using berth::memory_kind;
using berth::provenance;
using berth::side;

template <typename Enum>
struct spelling {
  Enum value;
  std::string_view text;
};

// Both directions, for every value; and nothing that is merely similar.
template <typename Enum, typename Parse>
void expect_spellings(const std::vector<spelling<Enum>>& all, Parse parse) {
  for (const auto& [value, text] : all) {
    EXPECT_EQ(berth::to_string(value), text);
    EXPECT_EQ(parse(text), value) << text;
  }
  for (const std::string_view text : {"", "Unknown", "UNKNOWN", " unknown", "unknown ", "unknow"}) {
    EXPECT_EQ(parse(text), std::nullopt) << '"' << text << '"';
  }
  // A value that was never named (from a cast) is unknown, not a crash.
  EXPECT_EQ(berth::to_string(static_cast<Enum>(200)), "unknown");
}

TEST(types, sides_are_spelled) {
  expect_spellings<side>(
      {{side::unknown, "unknown"}, {side::host, "host"}, {side::device, "device"}},
      berth::parse_side);
}

TEST(types, memory_kinds_are_spelled) {
  expect_spellings<memory_kind>({{memory_kind::unknown, "unknown"},
                                 {memory_kind::pageable, "pageable"},
                                 {memory_kind::registered, "registered"},
                                 {memory_kind::pinned, "pinned"},
                                 {memory_kind::managed, "managed"},
                                 {memory_kind::device, "device"}},
                                berth::parse_memory_kind);
}

TEST(types, engines_are_spelled) {
  expect_spellings<engine>({{engine::unknown, "unknown"},
                            {engine::dma, "dma"},
                            {engine::kernel, "kernel"},
                            {engine::cpu, "cpu"}},
                           berth::parse_engine);
}

TEST(types, directions_are_spelled) {
  expect_spellings<direction>({{direction::unknown, "unknown"},
                               {direction::host_to_device, "host_to_device"},
                               {direction::device_to_host, "device_to_host"},
                               {direction::device_to_device, "device_to_device"},
                               {direction::peer_to_peer, "peer_to_peer"},
                               {direction::host_to_host, "host_to_host"}},
                              berth::parse_direction);
}

TEST(types, provenances_are_spelled) {
  expect_spellings<provenance>({{provenance::unknown, "unknown"},
                                {provenance::nominal, "nominal"},
                                {provenance::modelled, "modelled"},
                                {provenance::measured, "measured"}},
                               berth::parse_provenance);
}

TEST(types, a_value_initialised_word_is_unknown) {
  EXPECT_EQ(side{}, side::unknown);
  EXPECT_EQ(memory_kind{}, memory_kind::unknown);
  EXPECT_EQ(engine{}, engine::unknown);
  EXPECT_EQ(direction{}, direction::unknown);
  EXPECT_EQ(provenance{}, provenance::unknown);
}

TEST(types, unknown_memory_is_neither_pageable_nor_page_locked) {
  EXPECT_FALSE(berth::is_pageable(memory_kind::unknown));
  EXPECT_FALSE(berth::is_page_locked(memory_kind::unknown));
}

TEST(types, registered_memory_is_page_locked) {
  EXPECT_TRUE(berth::is_page_locked(memory_kind::registered));
  EXPECT_TRUE(berth::is_page_locked(memory_kind::pinned));
  EXPECT_FALSE(berth::is_page_locked(memory_kind::pageable));
  EXPECT_FALSE(berth::is_page_locked(memory_kind::managed));
  EXPECT_FALSE(berth::is_page_locked(memory_kind::device));
  EXPECT_TRUE(berth::is_pageable(memory_kind::pageable));
  EXPECT_FALSE(berth::is_pageable(memory_kind::registered));
}

}  // namespace
