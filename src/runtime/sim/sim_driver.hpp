// SPDX-License-Identifier: Apache-2.0
// The simulated runtime: GPUs that a machine model describes. docs/simulator.md says what it
// simulates and what not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "machine/cost_model.hpp"
#include "runtime/driver.hpp"
#include "runtime/executor.hpp"
#include "runtime/sim/options.hpp"

namespace berth::runtime {

namespace sim {

// One operation that has run, in the order of their ends. No addresses, so that two runs with the
// same seed give the same text.
struct executed_operation {
  std::uint64_t number = 0;  // in the order of submission, from 1
  std::string what;          // "copy", "kernel_fill", "record_event"
  std::string source;        // "pinned#3+4096", "pageable"; empty where there is none
  std::string destination;
  direction way = direction::unknown;
  engine by = engine::unknown;
  int device = 0;
  std::uint64_t stream = 0;  // in the order of creation, from 1
  bytes_t bytes = 0;
  std::chrono::nanoseconds submitted{0};
  std::chrono::nanoseconds started{0};
  std::chrono::nanoseconds ended{0};
};

// "12 copy host_to_device dma device 0 stream 2 4096 B pinned#1+0 -> device#2+0 at 100..250"
[[nodiscard]] std::string to_string(const executed_operation& value);

// What the program holds of the runtime.
struct holdings {
  std::size_t allocations = 0;  // device, pinned, managed
  std::size_t registrations = 0;
  std::size_t streams = 0;  // made by create_stream
  std::size_t events = 0;
  std::size_t pending = 0;  // operations that have not run
};

// Facts about pageable memory that this process cannot show by itself.
struct page_facts {
  machine::trait_set traits;  // fresh_pages, file_mapped, huge_pages
  std::optional<std::uint32_t> numa_node;
};

}  // namespace sim

// The contract, and what tests and tools want of a simulator beside it. None of it counts as a
// call.
class sim_driver : public driver {
public:
  // The operations that have run so far, at most the last 2^20.
  [[nodiscard]] virtual std::vector<sim::executed_operation> executed() const = 0;
  // The same as text, a line each.
  [[nodiscard]] virtual std::string executed_text() const = 0;

  virtual void inject(const sim::fault& what) = 0;
  virtual void clear_faults() = 0;
  // Calls of the contract so far (all that return a result).
  [[nodiscard]] virtual std::uint64_t calls() const = 0;
  [[nodiscard]] virtual sim::holdings held() const = 0;

  // The runtimes' own graph capture, which berth never starts itself: the stream records, and
  // nothing of it runs. Errors: gpu_invalid_handle; gpu_capture for a stream that captures already,
  // and for default_stream.
  virtual result<void> begin_capture(stream_handle stream, capture_mode mode) = 0;
  // How many operations were recorded, in this and in the streams that joined.
  // Errors: gpu_capture if none was active or it was invalidated; it is over then, too.
  virtual result<std::size_t> end_capture(stream_handle stream) = 0;

  // From now on the pages of [memory, memory + bytes) are so, until declared otherwise.
  virtual void declare_pages(const void* memory, bytes_t bytes, sim::page_facts facts) = 0;

  // Runs workers on the virtual clock; null on the wall clock. The driver must outlive them.
  [[nodiscard]] virtual executor* workers() noexcept = 0;
};

// A simulated runtime. `model` is a name of the machine data ("mi250x", "h200"), the path of a
// machine file (it holds a '/' or ends in ".json"), or empty for the default model; options may
// follow, see sim::options::parse.
// Errors: usage for an unknown model, with the names that are known; input_* for a file.
result<std::shared_ptr<driver>> make_sim_driver(std::string_view model);
// Errors: as above; usage also for options that the machine excludes (migration on a GPU that
// cannot).
result<std::shared_ptr<sim_driver>> make_sim_driver(const sim::options& how);

}  // namespace berth::runtime
