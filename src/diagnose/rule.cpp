// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rule.hpp"

#include <algorithm>
#include <array>

namespace berth::diagnose {
namespace {

constexpr std::array all{
    rule{"pageable-copies", "Copies from or to pageable memory", find_pageable_copies},
    rule{"unknown-memory-kind", "Copies from or to memory of unknown kind",
         find_unknown_memory_kind},
    rule{"ping-pong", "The same data goes to and fro", find_ping_pong},
    rule{"fresh-pages", "Results land in memory that was never touched", find_fresh_pages},
    rule{"tiny-copies", "Many tiny copies", find_tiny_copies},
    rule{"waiting-not-copying", "Waiting that looks like copying", find_waiting},
    rule{"no-overlap", "Copies and kernels take turns", find_no_overlap},
    rule{"slow-pinned-copies", "Pinned copies below the link's rate", find_slow_pinned_copies},
    rule{"one-off-copies", "Uploads that happen once", find_one_off_copies},
    rule{"file-mapped-copies", "Copies from or to a mapped file", find_file_mapped_copies},
    rule{"repeated-copies", "Unchanged data is copied again", find_repeated_copies},
    rule{"fill-bound-staging", "Staging that is bound by its filling", find_fill_bound_staging},
    rule{"allocation-in-a-loop", "Memory is allocated or pinned over and over",
         find_allocation_in_a_loop},
    rule{"remote-numa", "Pinned memory on another NUMA node than the GPU", find_remote_numa},
    rule{"link-limit", "The machine's link is less than the GPU's", find_link_limit},
    rule{"kernel-copies", "Copies that take compute units from kernels", find_kernel_copies},
    rule{"managed-without-migration", "Managed memory that does not migrate",
         find_managed_without_migration},
    rule{"managed-page-faults", "Managed memory that moves by page faults",
         find_managed_page_faults},
    rule{"host-memory-in-kernels", "Kernels that may read host memory in place",
         find_host_memory_in_kernels},
    rule{"wrong-free", "Memory is freed by the wrong call", find_wrong_free},
    rule{"fixed-copies", "Copies that berth run --fix has made", find_fixed_copies},
    rule{"failed-calls", "GPU calls that failed", find_failed_calls},
};

}  // namespace

std::span<const rule> rules() noexcept {
  return all;
}

const rule* find_rule(std::string_view id) noexcept {
  const auto* const found =
      std::find_if(all.begin(), all.end(), [id](const rule& one) { return one.id == id; });
  return found != all.end() ? found : nullptr;
}

}  // namespace berth::diagnose
