// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's management library says of this machine, as text in lines: "gpu 0", then
// "memory 150754820096" and so on of that GPU. It makes no context on a GPU. May block for as long
// as the driver likes, so only a child process calls it.
#pragma once

#include <string>

namespace berth::topology {

// Empty where the library is not there.
[[nodiscard]] std::string ask_nvml();

}  // namespace berth::topology
