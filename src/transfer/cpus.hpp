// SPDX-License-Identifier: Apache-2.0
// Which CPUs the engine's threads may use: near the GPU, within the process's affinity, and no more
// of them than the cgroup pays for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::transfer {

// CPUs that cgroup v2's cpu.max ("150000 100000") allows, rounded up, at least 1; nothing for "max"
// or anything else.
[[nodiscard]] std::optional<unsigned> parse_cpu_quota(std::string_view cpu_max);

struct usable_cpus {
  std::vector<int> cpus;  // where threads may run; empty: unknown, leave them alone
  unsigned at_once = 1;   // how many threads find a CPU at the same time
};

// `numa_node`: of the GPU. Where the process may not run there at all, all CPUs of the process.
[[nodiscard]] usable_cpus find_usable_cpus(std::optional<int> numa_node);

}  // namespace berth::transfer
