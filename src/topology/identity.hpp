// SPDX-License-Identifier: Apache-2.0
// What must not leave a machine: serial numbers, unique ids, names of hosts and users. It is cut
// where files are read, so that what a bundle holds is exactly what the verdict was made from.
#pragma once

#include <string>
#include <string_view>

namespace berth::topology {

// The text of the file at that path with only what berth needs of it.
[[nodiscard]] std::string without_identity(std::string_view path, std::string_view text);

// Whether a variable of the environment steers GPU runtimes, and is no secret.
[[nodiscard]] bool steers_gpus(std::string_view name);

// A value of the environment: home folders and this machine's name are replaced.
[[nodiscard]] std::string without_names(std::string value, std::string_view host);

}  // namespace berth::topology
