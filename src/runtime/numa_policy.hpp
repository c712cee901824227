// SPDX-License-Identifier: Apache-2.0
// Where new pages of the calling thread go, for a scope: how pinned memory gets onto a NUMA node,
// as both runtimes let the kernel choose by the thread's policy. Two system calls, no library.
#pragma once

#include <array>

#include "berth/result.hpp"

namespace berth::runtime {

class scoped_numa_policy {
public:
  // Prefers `node` until the end of the scope; the kernel takes another node when it is full.
  // Errors: gpu_invalid_value for a node that this machine lacks.
  static result<scoped_numa_policy> prefer(int node);

  scoped_numa_policy(const scoped_numa_policy&) = delete;
  scoped_numa_policy& operator=(const scoped_numa_policy&) = delete;
  scoped_numa_policy(scoped_numa_policy&& other) noexcept;
  scoped_numa_policy& operator=(scoped_numa_policy&&) = delete;
  ~scoped_numa_policy();

private:
  static constexpr int most_nodes = 1024;
  static constexpr int word_bits = 8 * sizeof(unsigned long);
  using node_mask = std::array<unsigned long, most_nodes / word_bits>;

  scoped_numa_policy(int mode, const node_mask& nodes) noexcept : mode_(mode), nodes_(nodes) {}

  int mode_;  // the former policy; below 0: nothing to restore
  node_mask nodes_;
};

}  // namespace berth::runtime
