// SPDX-License-Identifier: Apache-2.0
// What needs the emulator, in a build without it: see BERTH_BUILD_EMULATOR in CMakeLists.txt.
#include "cmd_emulate.hpp"

namespace berth::cli {
namespace {

error no_emulator() {
  return error(errc::gpu_not_supported, "this build has no emulator", "emulated machine",
               "it is built for Linux on x86-64 (-DBERTH_BUILD_EMULATOR=ON)");
}

}  // namespace

result<program::ending> run_on_emulated_machine(const emulated_machine& /*machine*/,
                                                program::start_request /*program*/,
                                                std::vector<std::filesystem::path> /*preload*/,
                                                const program::held_signals& /*signals*/,
                                                const streams& /*io*/) {
  return no_emulator();
}

int run_emulate(const emulate_options& /*options*/, const streams& io) {
  show_error(io.err, no_emulator());
  return static_cast<int>(exit_status::unusable);
}

}  // namespace berth::cli
