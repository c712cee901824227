// SPDX-License-Identifier: Apache-2.0
// Starts rocminfo with HSA_XNACK=1 and says what came of it.
#pragma once

#include <chrono>
#include <string>

#include "berth/result.hpp"

namespace berth::cli {

// What rocminfo printed, in an environment with HSA_XNACK=1. Blocks until it ends, or is ended
// after `patience`. @errors file_unreadable where there is no rocminfo, it did not end in time, or
// it failed
[[nodiscard]] result<std::string> rocminfo_with_xnack(std::chrono::milliseconds patience);

}  // namespace berth::cli
