// SPDX-License-Identifier: Apache-2.0
// AMD's user space on this machine: what of it is missing, and whether it is of a release that has
// run on the emulator.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::emulator {

// Where programs find shared libraries: LD_LIBRARY_PATH, then the usual folders.
[[nodiscard]] std::vector<std::string> library_folders();

// A library of ROCm and the Debian package that has it.
struct missing_library {
  std::string_view file;
  std::string_view package;
};
[[nodiscard]] std::vector<missing_library> missing_rocm_libraries(
    std::span<const std::string> folders);

// "libhsakmt.so.1 (Debian package libhsakmt1), ..."; empty for none.
[[nodiscard]] std::string described(std::span<const missing_library> missing);

// The file of the HSA runtime that programs would get, if it is none that was tried; else empty.
[[nodiscard]] std::string untried_hsa_runtime(std::span<const std::string> folders);

}  // namespace berth::emulator
