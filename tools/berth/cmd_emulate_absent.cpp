// SPDX-License-Identifier: Apache-2.0
// `berth emulate` of a build without the emulator: see BERTH_BUILD_EMULATOR in CMakeLists.txt.
#include "cmd_emulate.hpp"

namespace berth::cli {

int run_emulate(const emulate_options& /*options*/, const streams& io) {
  show_error(io.err, error(errc::gpu_not_supported, "this build has no emulator", "berth emulate",
                           "it is built for Linux on x86-64 (-DBERTH_BUILD_EMULATOR=ON)"));
  return static_cast<int>(exit_status::unusable);
}

}  // namespace berth::cli
