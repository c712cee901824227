// SPDX-License-Identifier: Apache-2.0
// The drivers that the conformance suite runs over: a table, what is selected of it, and what of
// that is on this machine.
//
// Words
//   row       one driver of the table, of one runtime and in one way of running it
//   selected  named by --driver or BERTH_CONFORMANCE_DRIVERS, or all rows where nothing is named
//   here      selected, and this machine has it
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "runtime/driver.hpp"
#include "runtime/sim/options.hpp"

namespace berth::conformance {

// Whether cases get a driver of their own. Starting a real runtime takes seconds, so those share.
enum class driver_life : std::uint8_t { per_case, per_process };

struct driver_row {
  std::string_view name;   // "sim:mi250x-late", as --driver takes it
  std::string_view setup;  // as BERTH_RUNTIME takes it: "sim:mi250x,schedule=late"
  runtime::runtime_kind kind = runtime::runtime_kind::sim;
  driver_life life = driver_life::per_case;
  runtime::capability_set without;                     // of the simulator: switched off
  std::optional<runtime::sim::fault_kind> injected{};  // of the simulator: goes wrong each time

  friend void PrintTo(const driver_row& row, std::ostream* out);
};

// A selected row that is not here, and why.
struct absent_driver {
  std::string_view name;
  std::string reason;
};

struct selection {
  std::vector<driver_row> here;
  std::vector<absent_driver> absent;
};

// Whether real runtimes are started to see if they are here: that takes seconds, and listing the
// cases does not need it.
enum class presence : std::uint8_t { assumed, proven };

// What `names` selects: comma-separated names of rows, or of runtimes ("sim": all its rows); empty
// selects all. Errors: usage for a name that selects nothing.
result<selection> select_drivers(std::string_view names, presence how);

// The driver of a row that is here: a new one or the process's, by the row's life.
result<std::shared_ptr<runtime::driver>> driver_of(const driver_row& row);

// The row's name as a part of a test's name: "sim_h200".
[[nodiscard]] std::string test_name_of(const driver_row& row);

// What the suites are instantiated for: set once by main before GoogleTest starts.
[[nodiscard]] std::vector<driver_row>& instantiated_drivers();

}  // namespace berth::conformance
