// SPDX-License-Identifier: Apache-2.0
// Where an engine's profile comes from: a file of this machine, a short measurement, or the rules
// that berth ships.
#pragma once

#include <functional>

#include "berth/copy_engine.hpp"
#include "runtime/driver.hpp"
#include "transfer/copy_profile.hpp"

namespace berth::transfer {

// Which machine a profile is of: GPU, runtime and its version, threads.
[[nodiscard]] std::string machine_key(const runtime::driver& gpu, int device, unsigned threads);

// One staged copy of that size by that rule; returns when it is complete on both sides.
using staged_trial =
    std::function<result<void>(const copy_range& ends, direction way, const staging_rule& rule)>;

// Compares staging by each of the rules with the runtime's own copy of the same memory, one copy of
// each in turns, and takes out the rules that do not win: copies of their sizes stay with the
// runtime. What else the machine does costs the threads of a staged copy more than the runtime's
// one, so a loss needs many rounds where a win needs few, and is believed for good only when
// `losses_to_believe` processes have found it: `earlier` is what the last of them has found, and
// only what it leaves in doubt is measured again. Takes at most 200 ms, 60 where there is an
// `earlier`; what time does not suffice for keeps its rule. Errors: of the GPU.
inline constexpr unsigned losses_to_believe = 3;
[[nodiscard]] result<copy_profile> calibrate(runtime::driver& gpu, int device,
                                             runtime::stream_handle stream, copy_profile rules,
                                             const copy_profile* earlier,
                                             const staged_trial& stage);
// Whether another measurement could change it.
[[nodiscard]] bool is_in_doubt(const copy_profile& saved) noexcept;

// What options.profile asks for. Never fails: what cannot be found out stages nothing.
[[nodiscard]] copy_profile find_profile(runtime::driver& gpu, const copy_engine_options& options,
                                        unsigned threads, runtime::stream_handle stream,
                                        const staged_trial& stage);

}  // namespace berth::transfer
