// SPDX-License-Identifier: Apache-2.0
// The whole diagnosis of one trace: totals, findings in order of weight, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "diagnose/workload.hpp"
#include "machine/profile.hpp"
#include "machine/survey.hpp"
#include "trace/trace.hpp"

namespace berth::diagnose {

struct diagnosis {
  diagnose::totals totals;
  std::string expectation_basis;
  std::vector<finding> findings;  // faults first, then by falling saving
  // One sentence for the reader in a hurry; also when all is well.
  std::string verdict;
  severity worst = severity::note;
  // What all fixes together would save, each copy counted once.
  std::int64_t saving_ns = 0;
  // How to read the figures, and what a better recording would show.
  std::vector<std::string> notes;
};

// Pure and deterministic; blocks for as long as it computes. `profile` may be null: then the
// figures of the GPU's model are the basis of what is expected. `seen` may be null, or the machine
// that the trace was made on: then its link, its NUMA nodes and its settings count too.
[[nodiscard]] diagnosis diagnose(const trace::trace& events,
                                 const machine::machine_profile* profile = nullptr,
                                 const machine::survey* seen = nullptr);

}  // namespace berth::diagnose
