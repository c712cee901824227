// SPDX-License-Identifier: Apache-2.0
// The entry of the simulated runtime.
#include "runtime/sim/sim_driver.hpp"

#include <utility>

#include "runtime/sim/devices.hpp"
#include "runtime/sim/simulation.hpp"

namespace berth::runtime {

result<std::shared_ptr<sim_driver>> make_sim_driver(const sim::options& how) {
  auto model = sim::model_of(how);
  if (!model) {
    return model.error();
  }
  const auto devices = sim::device_count_of(*model, how);
  if (!devices) {
    return devices.error();
  }
  const auto pages = sim::migration_of(*model, how);
  if (!pages) {
    return pages.error();
  }
  return std::shared_ptr<sim_driver>(
      std::make_shared<sim::simulation>(how, std::move(*model), *devices, *pages));
}

result<std::shared_ptr<driver>> make_sim_driver(std::string_view model) {
  const auto how = sim::options::parse(model);
  if (!how) {
    return how.error();
  }
  auto made = make_sim_driver(*how);
  if (!made) {
    return made.error();
  }
  return std::shared_ptr<driver>(std::move(*made));
}

}  // namespace berth::runtime
