// SPDX-License-Identifier: Apache-2.0
// What is looked at before a copy is made: which end is which, whether the ends can be meant so.
#pragma once

#include <string>
#include <string_view>

#include "berth/copy_engine.hpp"
#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "transfer/ends.hpp"
#include "transfer/plan.hpp"
#include "transfer/ticket_state.hpp"

namespace berth::transfer {

// The end on that side. Pre: `way` is between host and device.
[[nodiscard]] inline std::byte* host_end(const copy_range& ends, direction way) noexcept {
  return writable(way == direction::host_to_device ? ends.src : ends.dst);
}
[[nodiscard]] inline std::byte* device_end(const copy_range& ends, direction way) noexcept {
  return writable(way == direction::host_to_device ? ends.dst : ends.src);
}

// "copy of 4096 bytes from 0x10 to 0x20"
[[nodiscard]] std::string words_for(const copy_range& ends);

// Errors: transfer_overlap.
[[nodiscard]] result<void> check_apart(const copy_range& ends);
// Whether the copy, which begins at `first` there, stays inside an allocation that the runtime has
// told. `end` is what the message calls it. Errors: transfer_out_of_range.
[[nodiscard]] result<void> check_range(const runtime::pointer_info& where, const void* first,
                                       const copy_range& ends, std::string_view end);
// Pageable memory is read or written by our own threads: what can be known to fail is refused.
// Errors: transfer_unmapped.
[[nodiscard]] result<void> check_host_end(const copy_range& ends, direction way);

[[nodiscard]] inline end_owners owners_of(const copy_options& options) {
  return {.source = options.source_owner, .destination = options.destination_owner};
}

}  // namespace berth::transfer
