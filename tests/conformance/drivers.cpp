// SPDX-License-Identifier: Apache-2.0
#include "conformance/drivers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/open.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::conformance {
namespace {

using opened_driver = result<std::shared_ptr<runtime::driver>>;

constexpr runtime::capability_set all_capabilities() {
  runtime::capability_set all;
  for (unsigned i = 0; i < runtime::capability_count; ++i) {
    all.add(static_cast<runtime::capability>(i));
  }
  return all;
}

constexpr driver_row simulated(std::string_view name, std::string_view setup) {
  return {name, setup, runtime::runtime_kind::sim, driver_life::per_case, {}};
}

// AMD and NVIDIA rules, one and several devices, every order of things that the contract allows,
// and both clocks.
constexpr std::array table{
    simulated("sim:h200", "sim:h200"),
    simulated("sim:h200-early", "sim:h200,devices=2,schedule=early"),
    simulated("sim:h200-random-1", "sim:h200,devices=2,schedule=random,seed=1"),
    simulated("sim:h200-wall", "sim:h200,clock=wall"),
    simulated("sim:mi250x", "sim:mi250x,devices=2"),
    simulated("sim:mi250x-late", "sim:mi250x,devices=2,schedule=late"),
    simulated("sim:mi250x-random-2", "sim:mi250x,devices=2,xnack=on,schedule=random,seed=2"),
    simulated("sim:mi250x-random-3", "sim:mi250x,devices=2,schedule=random,seed=3"),
    simulated("sim:mi250x-xnack", "sim:mi250x,devices=2,xnack=on"),
    simulated("sim:mi250x-wall", "sim:mi250x,devices=2,clock=wall,slowdown=2"),
    driver_row{"sim:bare", "sim:mi250x", runtime::runtime_kind::sim, driver_life::per_case,
               all_capabilities()},
    driver_row{"cuda", "cuda", runtime::runtime_kind::cuda, driver_life::per_process, {}},
    driver_row{"hip", "hip", runtime::runtime_kind::hip, driver_life::per_process, {}},
};

// Only by name: a driver that breaks the contract, so that the suite can show that it notices.
constexpr std::array faulty_table{
    driver_row{"faulty:corrupt-copies",
               "sim:mi250x",
               runtime::runtime_kind::sim,
               driver_life::per_case,
               {},
               runtime::sim::fault_kind::corrupt_copy},
    driver_row{"faulty:failing-calls",
               "sim:mi250x",
               runtime::runtime_kind::sim,
               driver_life::per_case,
               {},
               runtime::sim::fault_kind::fail_call},
};

opened_driver open_simulated(const driver_row& row) {
  auto options = runtime::sim::options::parse(row.setup.substr(row.setup.find(':') + 1));
  if (!options) {
    return options.error();
  }
  options->without = row.without;
  if (row.injected) {
    options->faults.push_back({.kind = *row.injected, .nth = 0});
  }
  auto made = runtime::make_sim_driver(*options);
  return made ? opened_driver(std::move(*made)) : opened_driver(made.error());
}

opened_driver open_real(const driver_row& row) {
  const auto request = runtime::open_request::parse(row.setup, "the conformance suite");
  if (!request) {
    return request.error();
  }
  auto opened = runtime::open(*request);
  return opened ? opened_driver(std::move(opened->gpu)) : opened_driver(opened.error());
}

opened_driver open_row(const driver_row& row) {
  return row.kind == runtime::runtime_kind::sim ? open_simulated(row) : open_real(row);
}

// "sim" of "sim:h200-early".
std::string_view runtime_of(std::string_view name) {
  return name.substr(0, name.find(':'));
}

std::vector<std::string_view> split(std::string_view names) {
  std::vector<std::string_view> parts;
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    parts.push_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return parts;
}

result<std::vector<driver_row>> rows_named(std::string_view names) {
  if (names.empty()) {
    return std::vector<driver_row>(table.begin(), table.end());
  }
  std::vector<driver_row> rows;
  for (const auto name : split(names)) {
    const auto known = rows.size();
    std::copy_if(table.begin(), table.end(), std::back_inserter(rows), [&](const driver_row& row) {
      return row.name == name || runtime_of(row.name) == name;
    });
    std::copy_if(faulty_table.begin(), faulty_table.end(), std::back_inserter(rows),
                 [&](const driver_row& row) { return row.name == name; });
    if (rows.size() == known) {
      std::vector<std::string_view> all;
      std::transform(table.begin(), table.end(), std::back_inserter(all),
                     [](const driver_row& row) { return row.name; });
      return error(errc::usage, fmt::format("'{}' is no driver of the suite", name), "--driver",
                   fmt::format("there are {}", fmt::join(all, ", ")));
    }
  }
  return rows;
}

// Those of this process. Never destroyed: a runtime may be gone by the time of static destructors.
std::map<std::string_view, std::shared_ptr<runtime::driver>>& shared_drivers() {
  static auto& drivers = *new std::map<std::string_view, std::shared_ptr<runtime::driver>>();
  return drivers;
}

}  // namespace

void PrintTo(const driver_row& row, std::ostream* out) {
  *out << row.name;
}

result<selection> select_drivers(std::string_view names, presence how) {
  const auto rows = rows_named(names);
  if (!rows) {
    return rows.error();
  }
  selection chosen;
  for (const auto& row : *rows) {
    if (row.kind == runtime::runtime_kind::sim || how == presence::assumed) {
      chosen.here.push_back(row);
    } else if (const auto driver = driver_of(row); driver) {
      chosen.here.push_back(row);
    } else {
      chosen.absent.push_back({row.name, driver.error().to_string()});
    }
  }
  return chosen;
}

opened_driver driver_of(const driver_row& row) {
  if (row.life == driver_life::per_case) {
    return open_row(row);
  }
  auto& known = shared_drivers()[row.name];
  if (known == nullptr) {
    auto opened = open_row(row);
    if (!opened) {
      return opened;
    }
    known = std::move(*opened);
  }
  return known;
}

std::string test_name_of(const driver_row& row) {
  std::string name(row.name);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::vector<driver_row>& instantiated_drivers() {
  static std::vector<driver_row> drivers;
  return drivers;
}

}  // namespace berth::conformance
