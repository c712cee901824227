// SPDX-License-Identifier: Apache-2.0
// What operations do to bytes.
#pragma once

#include "runtime/sim/operation.hpp"

namespace berth::runtime::sim {

enum class part : std::uint8_t { first_half, second_half, all };

// Moves the bytes of copies, fills and kernels; the others have none. Does not look whether the
// memory is still there.
void carry_out(const operation& what, part which);

// The range that the operation is going to overwrite, where the host can see it; else null.
[[nodiscard]] const memory_range* host_result_of(const operation& what) noexcept;

// That range holds poison; of a pitched one only the rows.
void poison_results(const operation& what);

// Changes one byte of what the operation has written, if it is a copy.
void corrupt(const operation& what);

// The first range that is not there any more; null for none.
[[nodiscard]] const memory_range* first_gone(const operation& what) noexcept;

}  // namespace berth::runtime::sim
