// SPDX-License-Identifier: Apache-2.0
// Settings of the system and of the environment that change how memory moves.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

using machine::setting_state;

struct steering_variable {
  std::string_view name;
  std::string_view value;  // empty: any
  machine::vendor of;
  std::string_view effect;
};
// Those of AMD first, the most important first.
constexpr std::array steering_variables{
    steering_variable{"HSA_ENABLE_SDMA", "0", machine::vendor::amd,
                      "copies run as kernels on the compute units and take them from other work"},
    steering_variable{"HSA_ENABLE_PEER_SDMA", "0", machine::vendor::amd,
                      "copies between GPUs run as kernels on the compute units"},
    steering_variable{"HSA_ENABLE_SDMA_GANG", "", machine::vendor::amd,
                      "how many copy engines work on one copy between GPUs"},
    steering_variable{"ROC_P2P_SDMA_SIZE", "", machine::vendor::amd,
                      "from which size copies between GPUs use copy engines"},
    steering_variable{"GPU_FORCE_BLIT_COPY_SIZE", "", machine::vendor::amd,
                      "up to which size copies run as kernels"},
    steering_variable{"GPU_PINNED_MIN_XFER_SIZE", "", machine::vendor::amd,
                      "from which size pageable memory is pinned for a copy"},
    steering_variable{"AMD_SERIALIZE_COPY", "", machine::vendor::amd,
                      "each copy waits for those before it and for its own end"},
    steering_variable{"AMD_SERIALIZE_KERNEL", "", machine::vendor::amd, "kernels run one by one"},
    steering_variable{"HIP_LAUNCH_BLOCKING", "1", machine::vendor::amd, "nothing overlaps"},
    steering_variable{"CUDA_LAUNCH_BLOCKING", "1", machine::vendor::nvidia, "nothing overlaps"},
};

bool is_set_so(const machine::environment_variable& one, const steering_variable& known) {
  return known.value.empty() ? one.value != "0" && !one.value.empty() : one.value == known.value;
}

void check_steering(const machine::survey& seen, std::vector<check_result>& results) {
  for (const auto& known : steering_variables) {
    const auto* const one = find_variable(seen, known.name);
    if (one == nullptr || !is_set_so(*one, known) || count_gpus(seen, known.of) == 0) {
      continue;
    }
    const auto setting = fmt::format("{}={}", one->name, one->value);
    results.push_back({.verdict = verdict::limit,
                       .headline = fmt::format("{} is set: {}", setting, known.effect),
                       .evidence = {evidence_of(seen, "settings.environment", setting)},
                       .confirm = fmt::format("env | grep {}", one->name),
                       .fix = {fmt::format("unset {}, unless it is there for a reason that was "
                                           "measured",
                                           one->name)}});
  }
}

bool has_unlimited(const std::optional<bytes_t>& limit) {
  return limit && *limit >= std::numeric_limits<std::int64_t>::max();
}

std::optional<bytes_t> largest_gpu_memory(const machine::survey& seen) {
  std::optional<bytes_t> largest;
  for (const auto& gpu : seen.machine.gpus) {
    if (gpu.memory && (!largest || *gpu.memory > *largest)) {
      largest = gpu.memory;
    }
  }
  return largest;
}

void check_group_limit(const machine::survey& seen, std::vector<check_result>& results) {
  const auto limit = seen.machine.set.memory_limit;
  const auto memory = largest_gpu_memory(seen);
  if (!limit || has_unlimited(limit)) {
    return;
  }
  const bool is_small = memory && *limit < *memory;
  results.push_back(
      {.verdict = is_small ? verdict::limit : verdict::normal,
       .headline = is_small
                       ? fmt::format("the control group allows {} of host memory, less than the {} "
                                     "of one GPU: pinned memory counts, and programs that stage as "
                                     "much are killed",
                                     format_bytes(*limit), format_bytes(*memory))
                       : fmt::format("the control group allows {} of host memory, pinned memory "
                                     "included",
                                     format_bytes(*limit)),
       .evidence = {evidence_of(seen, "settings.memory_limit", format_bytes(*limit))},
       .confirm = is_small ? "cat /sys/fs/cgroup/memory.max" : "",
       .fix = is_small ? std::vector<std::string>{"Ask for more memory: sbatch --mem, docker run "
                                                  "--memory, or the pod's limits."}
                       : std::vector<std::string>{}});
}

void check_memlock(const machine::survey& seen, std::vector<check_result>& results) {
  const auto limit = seen.machine.set.memlock_limit;
  if (!limit) {
    return;
  }
  results.push_back(
      {.headline =
           has_unlimited(limit)
               ? std::string("locked memory is unlimited")
               : fmt::format("locked memory is limited to {}: GPU runtimes pin past it, but "
                             "RDMA libraries of MPI and RCCL/NCCL need \"ulimit -l "
                             "unlimited\"",
                             format_bytes(*limit)),
       .evidence = {evidence_of(seen, "settings.memlock_limit",
                                has_unlimited(limit) ? "unlimited" : format_bytes(*limit))}});
}

bool is_mi300a(const machine::gpu& gpu) {
  return gpu.integrated == setting_state::on && is_instinct(gpu);
}

}  // namespace

void check_copy_engines(const machine::survey& seen, std::vector<check_result>& results) {
  const auto before = results.size();
  check_steering(seen, results);
  const bool amd = count_gpus(seen, machine::vendor::amd) > 0;
  const auto* const variable = find_variable(seen, "HSA_ENABLE_SDMA");
  if (amd && seen.machine.set.sdma == setting_state::off && variable == nullptr) {
    results.push_back({.verdict = verdict::limit,
                       .headline = "copy engines (SDMA) are off: copies run as kernels on the "
                                   "compute units and take them from other work",
                       .evidence = {evidence_of(seen, "settings.sdma", "off")},
                       .confirm = "env | grep HSA_ENABLE_SDMA",
                       .fix = {"unset HSA_ENABLE_SDMA, unless it is there for a reason that was "
                               "measured"}});
  }
  if (results.size() > before || seen.machine.gpus.empty()) {
    return;
  }
  // A paste shows some variables and never says that there are no others.
  const bool looked = seen.kind != machine::survey_kind::pasted;
  const bool some = !seen.machine.set.environment.empty();
  results.push_back(looked
                        ? check_result{.headline = "no variable of the environment steers copies "
                                                   "or their engines"}
                        : check_result{.verdict = verdict::unknown,
                                       .headline = some ? "the input shows some variables of the "
                                                          "environment, of which none steers "
                                                          "copies; whether others do is not in it"
                                                        : "variables of the environment that steer "
                                                          "copies are not in the input",
                                       .confirm = "env | grep -E '^(HSA|ROC|HIP|GPU|AMD|CUDA)_'"});
}

void check_memory_limits(const machine::survey& seen, std::vector<check_result>& results) {
  if (seen.machine.gpus.empty()) {
    return;
  }
  const auto before = results.size();
  check_group_limit(seen, results);
  check_memlock(seen, results);
  if (results.size() == before) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = "limits on memory are not in the input",
                       .confirm = "ulimit -l; cat /sys/fs/cgroup/memory.max"});
  }
}

void check_numa_balancing(const machine::survey& seen, std::vector<check_result>& results) {
  if (seen.machine.gpus.empty() || seen.machine.numa_nodes.size() < 2) {
    return;
  }
  check_result result{.confirm = "cat /proc/sys/kernel/numa_balancing"};
  const auto state = seen.machine.set.numa_balancing;
  if (state == setting_state::unknown) {
    result.verdict = verdict::unknown;
    result.headline = "whether the kernel balances NUMA nodes by itself is not in the input";
    results.push_back(std::move(result));
    return;
  }
  result.evidence.push_back(
      evidence_of(seen, "settings.numa_balancing", std::string(to_string(state))));
  if (state == setting_state::on) {
    result.verdict = verdict::limit;
    result.headline = fmt::format(
        "automatic NUMA balancing is on with {} NUMA nodes: it unmaps "
        "pages to see who uses them, and GPUs then wait",
        seen.machine.numa_nodes.size());
    result.fix = {"sudo sysctl kernel.numa_balancing=0, as AMD's guides for Instinct say."};
  } else {
    result.headline = "automatic NUMA balancing is off, as AMD's guides for Instinct say";
    result.confirm.clear();
  }
  results.push_back(std::move(result));
}

void check_huge_pages(const machine::survey& seen, std::vector<check_result>& results) {
  if (seen.machine.gpus.empty()) {
    return;
  }
  const auto& mode = seen.machine.set.transparent_huge_pages;
  check_result result{.confirm = "cat /sys/kernel/mm/transparent_hugepage/enabled"};
  if (mode.empty()) {
    result.verdict = verdict::unknown;
    result.headline = "the mode of transparent huge pages is not in the input";
    results.push_back(std::move(result));
    return;
  }
  const bool wants_always = std::ranges::any_of(seen.machine.gpus, is_mi300a) && mode != "always";
  result.evidence.push_back(evidence_of(seen, "settings.transparent_huge_pages", mode));
  if (wants_always || mode == "never") {
    result.verdict = verdict::limit;
    result.headline = wants_always
                          ? fmt::format(
                                "transparent huge pages are \"{}\"; on MI300A, whose memory "
                                "is the host's, AMD's guide says \"always\"",
                                mode)
                          : std::string(
                                "transparent huge pages are off: pinning memory, and first "
                                "touches of results, take longer");
    result.fix = {fmt::format("echo {} | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
                              wants_always ? "always" : "madvise")};
  } else {
    result.headline = fmt::format("transparent huge pages: {}", mode);
    result.confirm.clear();
  }
  results.push_back(std::move(result));
}

void check_governor(const machine::survey& seen, std::vector<check_result>& results) {
  const auto& governor = seen.machine.set.cpu_governor;
  if (seen.machine.gpus.empty() || governor.empty()) {
    return;  // virtual machines have none, and it matters little
  }
  check_result result{.evidence = {evidence_of(seen, "settings.cpu_governor", governor)}};
  if (governor == "powersave" || governor == "conservative") {
    result.verdict = verdict::limit;
    result.headline = fmt::format(
        "the CPUs' governor is \"{}\": filling staging buffers and "
        "starting work is slower where it keeps clocks low",
        governor);
    result.confirm = "cpupower frequency-info";
    result.fix = {"sudo cpupower frequency-set -g performance"};
  } else {
    result.headline = fmt::format("the CPUs' governor is \"{}\"", governor);
  }
  results.push_back(std::move(result));
}

}  // namespace berth::diagnose
