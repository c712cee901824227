// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/expected_model.hpp"

#include "machine/catalogue.hpp"

namespace berth::bandwidth {

const machine::model* expected_model(std::string_view library, std::string_view device_name) {
  constexpr std::string_view simulated = "sim:";
  if (library.starts_with(simulated)) {
    if (const auto* const found = machine::find_by_name(library.substr(simulated.size()))) {
      return found;
    }
  }
  return machine::find_by_device_name(device_name);
}

}  // namespace berth::bandwidth
