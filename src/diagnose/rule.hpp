// SPDX-License-Identifier: Apache-2.0
// A rule looks for one thing that costs time, in a prepared trace. It is pure: it reads the
// workload and appends what it finds. Each has a test, and a page in docs/rules/ of its id's name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "diagnose/workload.hpp"

namespace berth::diagnose {

struct rule {
  std::string_view id;     // stable: part of JSON, of docs, and of what users filter by
  std::string_view title;  // what it is called in a report
  void (*evaluate)(const workload& work, std::vector<finding>& findings);
};

// All rules, in the order in which they are tried.
[[nodiscard]] std::span<const rule> rules() noexcept;
// Null for an id that no rule has.
[[nodiscard]] const rule* find_rule(std::string_view id) noexcept;

// One each, in rules/.
void find_pageable_copies(const workload& work, std::vector<finding>& findings);
void find_unknown_memory_kind(const workload& work, std::vector<finding>& findings);
void find_fresh_pages(const workload& work, std::vector<finding>& findings);
void find_one_off_copies(const workload& work, std::vector<finding>& findings);
void find_ping_pong(const workload& work, std::vector<finding>& findings);
void find_waiting(const workload& work, std::vector<finding>& findings);
void find_tiny_copies(const workload& work, std::vector<finding>& findings);
void find_no_overlap(const workload& work, std::vector<finding>& findings);
void find_slow_pinned_copies(const workload& work, std::vector<finding>& findings);
// These need what only a recording of berth has: addresses, pages, contents, calls about memory.
// They are silent where it is missing.
void find_file_mapped_copies(const workload& work, std::vector<finding>& findings);
void find_repeated_copies(const workload& work, std::vector<finding>& findings);
void find_fill_bound_staging(const workload& work, std::vector<finding>& findings);
void find_allocation_in_a_loop(const workload& work, std::vector<finding>& findings);
void find_remote_numa(const workload& work, std::vector<finding>& findings);
void find_link_limit(const workload& work, std::vector<finding>& findings);
void find_kernel_copies(const workload& work, std::vector<finding>& findings);
void find_managed_without_migration(const workload& work, std::vector<finding>& findings);
void find_managed_page_faults(const workload& work, std::vector<finding>& findings);
void find_host_memory_in_kernels(const workload& work, std::vector<finding>& findings);
void find_wrong_free(const workload& work, std::vector<finding>& findings);
void find_fixed_copies(const workload& work, std::vector<finding>& findings);
void find_failed_calls(const workload& work, std::vector<finding>& findings);

}  // namespace berth::diagnose
