// SPDX-License-Identifier: Apache-2.0
/// @file
/// The words that every part of berth shares: sides, memory kinds, engines, directions, and how a
/// number is known. `unknown` is a value of each, because inputs often lack them and berth never
/// guesses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth {

/// Where a byte lives or who touches it.
enum class side : std::uint8_t { unknown, host, device };

/// How memory was obtained, which decides how it can be moved.
enum class memory_kind : std::uint8_t {
  unknown,
  pageable,    ///< malloc/new: the system may move its pages; no direct DMA
  registered,  ///< pageable, pinned afterwards
  pinned,      ///< page-locked by the GPU runtime; DMA reaches it
  managed,     ///< reachable from both sides, migrates on faults where the machine can
  device,      ///< the GPU's own memory
};

/// Who carries a copy.
enum class engine : std::uint8_t {
  unknown,
  dma,     ///< AMD SDMA, NVIDIA copy engine
  kernel,  ///< blit kernel, SM copy: takes compute units from other kernels
  cpu,
};

/// Which way a copy goes.
enum class direction : std::uint8_t {
  unknown,
  host_to_device,
  device_to_host,
  device_to_device,  ///< inside one device
  peer_to_peer,      ///< between two devices
  host_to_host,
};

/// How a number is known. Every figure that berth shows carries one of these.
enum class provenance : std::uint8_t {
  unknown,
  nominal,   ///< from published data of the model, not from this machine
  modelled,  ///< computed from other figures by a cost model
  measured,  ///< observed in this run or on this machine
};

/// Stable lower-case spellings, used in reports, JSON and machine files ("device_to_host").
std::string_view to_string(side value) noexcept;
std::string_view to_string(memory_kind value) noexcept;
std::string_view to_string(engine value) noexcept;
std::string_view to_string(direction value) noexcept;
std::string_view to_string(provenance value) noexcept;

/// The inverse of to_string; nothing for a spelling that is not one of its results.
std::optional<side> parse_side(std::string_view text) noexcept;
std::optional<memory_kind> parse_memory_kind(std::string_view text) noexcept;
std::optional<engine> parse_engine(std::string_view text) noexcept;
std::optional<direction> parse_direction(std::string_view text) noexcept;
std::optional<provenance> parse_provenance(std::string_view text) noexcept;

/// True for the kinds that a DMA engine cannot reach directly.
constexpr bool is_pageable(memory_kind kind) noexcept {
  return kind == memory_kind::pageable;
}

/// True for host memory that a DMA engine reaches directly.
constexpr bool is_page_locked(memory_kind kind) noexcept {
  return kind == memory_kind::pinned || kind == memory_kind::registered;
}

}  // namespace berth
