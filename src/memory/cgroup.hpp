// SPDX-License-Identifier: Apache-2.0
// Which cgroup this process is in: its limits are the process's.
#pragma once

#include <string>

namespace berth::memory {

// Below /sys/fs/cgroup, as /proc/self/cgroup has it for cgroup v2: "/user.slice"; "/" where there
// is none.
[[nodiscard]] std::string cgroup_folder();

}  // namespace berth::memory
