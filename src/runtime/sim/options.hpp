// SPDX-License-Identifier: Apache-2.0
// How a simulated runtime is set up: which machine, which clock, in which order legal things
// happen, and what goes wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "machine/model.hpp"
#include "runtime/sim/calls.hpp"

namespace berth::runtime::sim {

enum class clock_kind : std::uint8_t {
  virtual_time,  // time is counted, not lived through: deterministic for a seed
  wall,          // a thread works in real time: for thread sanitizer and demonstrations
};

// Which of the legal orders the operations of unordered streams take, and when their bytes move.
enum class schedule : std::uint8_t {
  modelled,  // as the cost model says; bytes move when an operation ends
  early,     // each operation as soon as it may; bytes move when it starts
  late,      // each operation when the host waits for it, or has asked often
  random,    // by the seed: delays, durations, order, and when in its duration bytes move
};

// Whether pages move to the device that touches them (AMD: XNACK).
enum class migration : std::uint8_t { by_model, off, on };

enum class page_state : std::uint8_t {
  observed,  // whether pageable pages are fresh or of a file is looked up in this process
  resident,  // all are resident: times do not depend on the process's allocator
};

enum class data_effects : std::uint8_t {
  carried,    // bytes are copied, filled, poisoned
  time_only,  // only time passes; for sizes that the machine at hand cannot hold
};

enum class fault_kind : std::uint8_t {
  fail_call,     // the call returns an error and does nothing
  lose_device,   // the operation breaks its device
  slow_copy,     // the copy takes `factor` times as long
  corrupt_copy,  // one byte of the copy's destination is wrong
};

struct fault {
  fault_kind kind = fault_kind::fail_call;
  std::optional<call> only{};  // fail_call: calls of this name; nothing: any call
  std::uint64_t nth = 1;       // counted from 1 at the time of injection; 0: each
  std::optional<errc> code{};  // fail_call: nothing: what suits the call
  double factor = 10;
};

struct options {
  std::string model{};                      // as for make_sim_driver
  std::optional<machine::model> machine{};  // taken instead of `model`
  unsigned devices = 0;                     // 0: as many as the machine has
  clock_kind clock = clock_kind::virtual_time;
  double wall_slowdown = 20;  // wall: device work takes so much longer
  std::uint64_t seed = 1;
  schedule order = schedule::modelled;
  migration pages_migrate = migration::by_model;  // AMD by_model: off, as without HSA_XNACK=1
  page_state pages = page_state::observed;
  data_effects data = data_effects::carried;
  unsigned host_cpus = 0;                  // 0: of the machine, else 16
  std::optional<bytes_t> device_memory{};  // of each device, below the model's own
  std::optional<bytes_t> pinned_limit{};   // pinned and registered memory together
  capability_set without{};                // switched off
  std::vector<fault> faults{};

  // "mi250x", "mi250x,xnack=on,clock=wall,devices=2,seed=7,schedule=random,slowdown=50". The model
  // may be a file. Errors: usage, with the words that are allowed.
  [[nodiscard]] static result<options> parse(std::string_view text);
};

}  // namespace berth::runtime::sim
