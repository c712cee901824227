// SPDX-License-Identifier: Apache-2.0
/// @file
/// The version of these headers. The build checks that CMake's project version agrees.
#pragma once

#include <string_view>

namespace berth {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
/// "0.1.0"
inline constexpr std::string_view version_text = "0.1.0";

}  // namespace berth
