// SPDX-License-Identifier: Apache-2.0
// What an operation costs on the simulated machine, alone: which path it takes, and the page
// migrations that it sets off.
#pragma once

#include <optional>
#include <vector>

#include "machine/model.hpp"
#include "runtime/sim/costs.hpp"
#include "runtime/sim/operation.hpp"

namespace berth::runtime::sim {

class pricing {
public:
  pricing(const machine::model& of, costs& cost, int devices);

  [[nodiscard]] running_cost price(const operation& what);
  // Who carries it, for the journal.
  [[nodiscard]] static engine carrier(const operation& what) noexcept;

  // Whether two devices reach each other's memory directly.
  [[nodiscard]] bool linked(int device, int peer) const;
  [[nodiscard]] std::uint32_t numa_node_of(int device) const;

private:
  [[nodiscard]] running_cost price_of(const copy_work& what, const operation& all);
  [[nodiscard]] running_cost price_of(const fill_work& what, const operation& all);
  [[nodiscard]] running_cost price_of(const kernel_work& what, const operation& all);
  [[nodiscard]] running_cost price_of(const prefetch_work& what, const operation& all);
  [[nodiscard]] static running_cost price_of(const host_work_call& what, const operation& all);
  [[nodiscard]] static running_cost price_of(const marker_work& what, const operation& all);

  [[nodiscard]] running_cost price_peer_copy(const copy_work& what);
  [[nodiscard]] running_cost price_kernel_copy(const kernel_work& what, int device);
  // Adds what one range costs a kernel that reads or writes it once.
  void add_access(const memory_range& range, bytes_t bytes, access_kind how, int device,
                  running_cost& sum);
  // The time that pages take to come, and what of the range stays remote.
  bytes_t add_migration(const memory_range& range, access_kind how, int device, running_cost& sum);
  [[nodiscard]] machine::trait_set traits_of(const memory_range& host_end, int device) const;
  [[nodiscard]] std::optional<std::uint32_t> links_between(int device, int peer) const;

  const machine::model& of_;
  costs& cost_;
  int devices_;
};

// The device that a range is on; on_host, or nowhere for managed pages that were never touched.
[[nodiscard]] int place_of(const memory_range& range);

}  // namespace berth::runtime::sim
