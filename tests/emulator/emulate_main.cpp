// SPDX-License-Identifier: Apache-2.0
// `berth emulate` without the rest of the command line, so that these tests need no CLI11:
//   emulate [--machine M] [--gpus N] [--trace F] [--kernels L] [--fault X]... [--list] --
//   PROGRAM...
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "berth/cmd_emulate.hpp"

int main(int argc, char** argv) {
  berth::cli::emulate_options options;
  int at = 1;
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    const std::string_view word = argv[at];
    const std::string value = at + 1 < argc ? argv[at + 1] : "";
    if (word == "--list") {
      options.action = berth::cli::emulate_action::list_models;
      continue;
    }
    if (word == "--machine") {
      options.machine = value;
    } else if (word == "--gpus") {
      options.gpus = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (word == "--trace") {
      options.trace = value;
    } else if (word == "--kernels") {
      options.kernels = value;
    } else if (word == "--fault") {
      options.faults.push_back(value);
    } else {
      std::cerr << "unknown option " << word << '\n';
      return 2;
    }
    ++at;
  }
  for (++at; at < argc; ++at) {
    options.program.emplace_back(argv[at]);
  }
  return berth::cli::run_emulate(options, berth::cli::standard_streams());
}
