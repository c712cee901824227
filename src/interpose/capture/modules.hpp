// SPDX-License-Identifier: Apache-2.0
// What the process has mapped where, for naming the addresses of call sites.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "interpose/capture/trace_file.hpp"
#include "trace/recording/layout.hpp"

namespace berth::interpose {

// How often the loader has added objects; a new answer means that the list is another.
[[nodiscard]] std::uint64_t loader_changes() noexcept;

// Writes the payload of a block of modules. Takes the loader's lock.
void put_modules(trace::recording::byte_writer& to) noexcept;

}  // namespace berth::interpose
