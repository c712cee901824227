// SPDX-License-Identifier: Apache-2.0
// A check looks at one thing in a machine and says whether it is as it should be. It is pure: it
// reads a survey and appends what it concludes. Each has a test, and a page in docs/checks/ of its
// id's name. A check says nothing where it does not apply, and `unknown` where it does but the
// input lacks what it needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/survey.hpp"

namespace berth::diagnose {

// From the least to the most important.
enum class verdict : std::uint8_t {
  normal,
  unknown,  // the input lacks what it takes to tell
  limit,    // works as it is built or set up, and is held back by that
  fault,    // something is wrong and is worth repairing
};

[[nodiscard]] std::string_view to_string(verdict value) noexcept;

// A value that a conclusion rests on, and who said so.
struct check_evidence {
  std::string field;  // "gpus[0].pci_path[1].trained"
  std::string value;
  std::string source;  // empty where it follows from other fields
};

struct check_result {
  std::string_view check = {};  // the id
  diagnose::verdict verdict = verdict::normal;
  std::string headline = {};  // one sentence with figures
  std::vector<check_evidence> evidence = {};
  std::string confirm = {};              // a command; empty where there is nothing to confirm
  std::vector<std::string> fix = {};     // one or two lines; empty where nothing is to be done
  std::vector<std::uint32_t> gpus = {};  // indices of those concerned; empty: the machine
};

struct check {
  std::string_view id;     // stable: part of JSON, of docs, and of what users filter by
  std::string_view title;  // what it is called in a report
  void (*evaluate)(const machine::survey& seen, std::vector<check_result>& results);
};

// All checks, the most important first.
[[nodiscard]] std::span<const check> checks() noexcept;
// Null for an id that no check has.
[[nodiscard]] const check* find_check(std::string_view id) noexcept;

struct checkup {
  verdict worst = verdict::normal;
  std::string headline;               // one sentence on all
  std::vector<check_result> results;  // by falling weight of the verdict, then in order of checks
};

[[nodiscard]] checkup check_machine(const machine::survey& seen);

// Adds what an attempt with HSA_XNACK=1 has shown: `tried` is what rocminfo said of itself then.
void add_tried_xnack(const machine::survey& tried, checkup& into, const machine::survey& seen);

// One each, beside this file.
void check_contradictions(const machine::survey& seen, std::vector<check_result>& results);
void check_device_access(const machine::survey& seen, std::vector<check_result>& results);
void check_visible_devices(const machine::survey& seen, std::vector<check_result>& results);
void check_host_link(const machine::survey& seen, std::vector<check_result>& results);
void check_xnack(const machine::survey& seen, std::vector<check_result>& results);
void check_large_bar(const machine::survey& seen, std::vector<check_result>& results);
void check_address_reach(const machine::survey& seen, std::vector<check_result>& results);
void check_process_numa(const machine::survey& seen, std::vector<check_result>& results);
void check_gpu_order(const machine::survey& seen, std::vector<check_result>& results);
void check_acs_redirect(const machine::survey& seen, std::vector<check_result>& results);
void check_iommu(const machine::survey& seen, std::vector<check_result>& results);
void check_peer_access(const machine::survey& seen, std::vector<check_result>& results);
void check_hives(const machine::survey& seen, std::vector<check_result>& results);
void check_link_weights(const machine::survey& seen, std::vector<check_result>& results);
void check_copy_engines(const machine::survey& seen, std::vector<check_result>& results);
void check_logged_copies(const machine::survey& seen, std::vector<check_result>& results);
void check_measured_rates(const machine::survey& seen, std::vector<check_result>& results);
void check_memory_limits(const machine::survey& seen, std::vector<check_result>& results);
void check_numa_balancing(const machine::survey& seen, std::vector<check_result>& results);
void check_huge_pages(const machine::survey& seen, std::vector<check_result>& results);
void check_governor(const machine::survey& seen, std::vector<check_result>& results);

}  // namespace berth::diagnose
