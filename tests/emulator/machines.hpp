// SPDX-License-Identifier: Apache-2.0
// The machines that the tests of this folder emulate, and where their programs are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/topology/plan.hpp"
#include "machine/catalogue.hpp"
#include "machine/model.hpp"

namespace berth::test {

struct emulated {
  std::string_view name;     // of the test
  std::string_view machine;  // a model, or a file of tests/emulator/machines
  std::optional<std::uint32_t> gpus = std::nullopt;

  [[nodiscard]] std::string argument() const {
    return machine.ends_with(".json")
               ? std::string(BERTH_SOURCE_DIR "/tests/emulator/machines/") + std::string(machine)
               : std::string(machine);
  }
  [[nodiscard]] machine::model model() const {
    return machine.ends_with(".json") ? machine::try_load_model(argument()).value()
                                      : machine::try_get_model(machine).value();
  }
  [[nodiscard]] std::vector<std::string> options() const {
    std::vector<std::string> words = {"--machine", argument()};
    if (gpus) {
      words.insert(words.end(), {"--gpus", std::to_string(*gpus)});
    }
    return words;
  }
  friend void PrintTo(const emulated& one, std::ostream* out) { *out << one.name; }
};

inline constexpr std::array<emulated, 12> machines = {{
    {.name = "mi210", .machine = "mi210"},
    {.name = "mi210_x2", .machine = "mi210", .gpus = 2},
    {.name = "mi210_x8", .machine = "mi210", .gpus = 8},
    {.name = "mi100", .machine = "mi100"},
    {.name = "mi100_two_hives", .machine = "mi100-node"},
    {.name = "mi250x_node", .machine = "mi250x-node"},
    {.name = "mi250_x8", .machine = "mi250-x8"},
    {.name = "radeon_pro_vii", .machine = "radeon-pro-vii"},
    {.name = "rx6800xt", .machine = "rx6800xt"},
    {.name = "small_bar", .machine = "rx6800xt-small-bar"},
    {.name = "two_sockets", .machine = "two-sockets.json"},
    {.name = "no_hmm", .machine = "no-hmm.json"},
}};

}  // namespace berth::test
