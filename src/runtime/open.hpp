// SPDX-License-Identifier: Apache-2.0
// Which runtime is used, and why. `auto` takes the first of hip, cuda that has a device, else the
// simulator; what was tried and not taken is part of the answer, so that nobody has to guess.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "runtime/driver.hpp"
#include "runtime/loader.hpp"

namespace berth::runtime {

// What is asked for: "auto", "hip", "cuda", "sim", "sim:mi250x", "sim:path/to/machine.json".
struct open_request {
  std::optional<runtime_kind> kind;  // nothing: the first that works
  std::string model;                 // of the simulator; empty: its default
  std::string origin;                // who asked: "BERTH_RUNTIME", "--runtime", "default"

  // Errors: usage, with the words that are allowed.
  static result<open_request> parse(std::string_view text, std::string origin);
  // BERTH_RUNTIME, or auto where it is unset or empty.
  static result<open_request> from_environment();
};

// One runtime that was considered.
struct candidate {
  runtime_kind kind = runtime_kind::sim;
  bool taken = false;
  std::string library;                     // path that was loaded; empty where none
  std::optional<runtime_version> version;  // where a library answered
  std::vector<std::string> tried;          // every name tried, with the reason it failed
  std::optional<runtime_info> info;        // where it works
  std::vector<device_info> devices;        // where it works
  std::string verdict;                     // "taken: 1 device", "libcuda.so.1 not found", ...
};

struct opened {
  std::shared_ptr<driver> gpu;
  std::string reason;                 // "BERTH_RUNTIME=hip", "the first with a device", ...
  std::vector<candidate> candidates;  // in the order considered; hip, cuda and sim are all there
};

// Opens the runtime asked for. Blocks while a library loads and initialises (up to seconds).
// Errors: gpu_no_runtime (no library), gpu_runtime_unusable (a library that is none, too old, or
// whose kernel driver does not match), gpu_no_device; usage for an unknown model; input_* for a
// machine file. The message lists everything that was tried.
result<opened> open(const open_request& request, const linker& with = system_linker());

// Everything that this machine has, for `berth version`: as open, but all runtimes are looked at
// even after one was taken, and no error: none taken is an answer.
std::vector<candidate> survey(const linker& with = system_linker());

}  // namespace berth::runtime
