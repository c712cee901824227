// SPDX-License-Identifier: Apache-2.0
// What a status number of a GPU runtime means to berth. HIP took over CUDA's numbers, and neither
// reuses the other's gaps, so one table serves both (tests compare it with both headers).
#pragma once

#include <cstddef>
#include <string_view>

#include "berth/error.hpp"
#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "berth/units.hpp"

namespace berth::runtime {

// The kind of failure behind a status other than success; gpu_unexpected for one not in the table.
[[nodiscard]] errc errc_of_status(int status) noexcept;

// A failed call: `where` is the call's name, the message ends with the runtime's own name and
// number.
[[nodiscard]] error failed_call(std::string_view call, std::string_view status_name, int status);

// The same for an allocation that did not fit.
[[nodiscard]] error failed_allocation(std::string_view call, std::string_view status_name,
                                      int status, const memory_shortage& amounts);

// Requested bytes against the host's memory, for pinned allocations.
[[nodiscard]] memory_shortage host_shortage(bytes_t requested) noexcept;

// [checked] conditions of the contract, the same in each driver.
[[nodiscard]] error device_out_of_range(int device, std::size_t count);
[[nodiscard]] error nothing_requested(std::string_view operation);
// gpu_invalid_value for a pitch below the width.
[[nodiscard]] result<void> checked_shape(const copy_2d& what);
[[nodiscard]] error not_supported(std::string_view operation, std::string_view why);

}  // namespace berth::runtime
