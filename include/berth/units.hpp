// SPDX-License-Identifier: Apache-2.0
/// @file
/// Units as berth prints and reads them: sizes in bytes with KiB/MiB/GiB/TiB (powers of 1024),
/// rates in GB/s = 1e9 bytes per second, times as nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "berth/result.hpp"

namespace berth {

/// Sizes and counts of bytes.
using bytes_t = std::uint64_t;

inline constexpr bytes_t kib = 1024;
inline constexpr bytes_t mib = 1024 * kib;
inline constexpr bytes_t gib = 1024 * mib;
inline constexpr bytes_t tib = 1024 * gib;

/// Bytes per nanosecond are GB/s; 0 for no time.
[[nodiscard]] double gb_per_s(bytes_t bytes, std::chrono::nanoseconds time) noexcept;

/// "4 KiB", "1.5 GiB", "42 B": the largest unit that leaves at least 1, three significant digits.
[[nodiscard]] std::string format_bytes(bytes_t bytes);

/// "117.9 ms", "4.36 s", "928 ns": the largest of ns, us, ms, s that leaves at least 1.
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds time);

/// "55.3 GB/s", "0.14 GB/s", "0.002 GB/s", "<0.001 GB/s".
[[nodiscard]] std::string format_rate(double gb_per_second);

/// "4096", "4KiB", "1.5 GiB", "2GB" (decimal), "64k" and "64K" (1024). Case of the unit is ignored.
/// @errors usage for text that is no size, or more than 2^64-1 bytes
[[nodiscard]] result<bytes_t> try_parse_bytes(std::string_view text);
/// @throws usage_error
[[nodiscard]] bytes_t parse_bytes(std::string_view text);

/// "250ms", "1.5 s", "10us", "2min": a unit is required.
/// @errors usage for text that is no duration or does not fit into nanoseconds
[[nodiscard]] result<std::chrono::nanoseconds> try_parse_duration(std::string_view text);
/// @throws usage_error
[[nodiscard]] std::chrono::nanoseconds parse_duration(std::string_view text);

/// "55.4GB/s", "32 GiB/s", "25000 MB/s": a unit is required. The result is in GB/s.
/// @errors usage for text that is no rate
[[nodiscard]] result<double> try_parse_rate(std::string_view text);
/// @throws usage_error
[[nodiscard]] double parse_rate(std::string_view text);

}  // namespace berth
