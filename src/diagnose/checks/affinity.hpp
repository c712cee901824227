// SPDX-License-Identifier: Apache-2.0
// Where the process of each GPU should run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/survey.hpp"

namespace berth::diagnose {

struct gpu_affinity {
  std::uint32_t gpu = 0;
  std::string pci_address;                 // empty where unknown
  std::optional<std::uint32_t> numa_node;  // nothing: not in the input, and there are several
  std::vector<std::uint32_t> cpus;         // near the GPU, and allowed; empty where unknown
  // Command lines in front of a program; empty where what they need is unknown.
  std::string numactl;
  std::string taskset;
};

struct affinity {
  std::vector<gpu_affinity> gpus;
  std::string slurm;  // srun --cpu-bind=mask_cpu:..., rank n to GPU n; empty where unknown
};

[[nodiscard]] affinity affinity_of(const machine::survey& seen);

}  // namespace berth::diagnose
