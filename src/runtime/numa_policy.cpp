// SPDX-License-Identifier: Apache-2.0
#include "runtime/numa_policy.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace berth::runtime {
namespace {

constexpr int mode_preferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h

}  // namespace

result<scoped_numa_policy> scoped_numa_policy::prefer(int node) {
  if (node < 0 || node >= most_nodes - 1) {
    return error(errc::gpu_invalid_value, fmt::format("no NUMA node {}", node));
  }
  int mode = 0;
  node_mask former{};
  if (syscall(SYS_get_mempolicy, &mode, former.data(), most_nodes, nullptr, 0) != 0) {
    return error(errc::gpu_not_permitted,
                 fmt::format("the NUMA policy cannot be read (errno {})", errno));
  }
  node_mask wanted{};
  wanted[static_cast<std::size_t>(node / word_bits)] = 1UL
                                                       << static_cast<unsigned>(node % word_bits);
  if (syscall(SYS_set_mempolicy, mode_preferred, wanted.data(), most_nodes) != 0) {
    return error(errno == EPERM ? errc::gpu_not_permitted : errc::gpu_invalid_value,
                 fmt::format("memory cannot be put on NUMA node {} (errno {})", node, errno));
  }
  return scoped_numa_policy(mode, former);
}

scoped_numa_policy::scoped_numa_policy(scoped_numa_policy&& other) noexcept
    : mode_(std::exchange(other.mode_, -1)), nodes_(other.nodes_) {}

scoped_numa_policy::~scoped_numa_policy() {
  if (mode_ >= 0) {
    syscall(SYS_set_mempolicy, mode_, nodes_.data(), most_nodes);
  }
}

}  // namespace berth::runtime
