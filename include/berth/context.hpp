// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where everything begins: a runtime with its devices, and what belongs to them. There is no
/// global; several contexts live side by side and do not see each other.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/memory_resource.hpp"
#include "berth/registered_memory.hpp"
#include "berth/result.hpp"
#include "berth/runtime/values.hpp"
#include "berth/stream.hpp"

namespace berth {

namespace runtime {
class driver;
}

class copy_engine;

/// How a context is opened.
struct context_options {
  /// "hip", "cuda", "sim", "sim:mi250x", "auto"; empty: what BERTH_RUNTIME says, else "auto".
  std::string runtime = {};
  /// Of pinned and registered memory together. Nothing: half of what RAM and the cgroup allow.
  std::optional<bytes_t> pinned_budget = {};
};

/// How much memory is page-locked through a context.
struct pinned_usage {
  bytes_t budget = 0;
  bytes_t used = 0;
  bytes_t peak = 0;
};

/// A runtime and its devices. Move-only. Safe to use from any thread.
/// When it ends, its resources and pools give out no more memory (memory_context_closed); what they
/// gave out can still be given back, and the runtime stays open until the last of them is gone.
class context {
public:
  /// Blocks while the runtime starts (up to seconds).
  /// @errors usage, gpu_no_runtime, gpu_runtime_unusable, gpu_no_device; the message lists all that
  ///         was tried
  [[nodiscard]] static result<context> try_open(const context_options& options = {});
  /// @throws berth::exception
  [[nodiscard]] static context open(const context_options& options = {}) {
    return try_open(options).value();
  }
  /// On a driver that is already there.
  [[nodiscard]] static context on(std::shared_ptr<runtime::driver> gpu,
                                  const context_options& options = {});

  context(context&& other) noexcept = default;
  context& operator=(context&& other) noexcept;
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  ~context();

  [[nodiscard]] const runtime::runtime_info& runtime() const noexcept;
  [[nodiscard]] std::span<const runtime::device_info> devices() const noexcept;
  /// Why this runtime: "BERTH_RUNTIME=sim:h200", "auto: the first with a device".
  [[nodiscard]] const std::string& reason() const noexcept;

  /// @errors gpu_device_out_of_range
  [[nodiscard]] result<stream> try_create_stream(int device = 0,
                                                 const runtime::stream_options& options = {}) const;
  /// @throws berth::exception
  [[nodiscard]] stream create_stream(int device = 0,
                                     const runtime::stream_options& options = {}) const {
    return try_create_stream(device, options).value();
  }
  /// Tells the pools that a stream which berth did not make is about to be destroyed.
  /// @errors those of the GPU
  result<void> try_release_stream(runtime::stream_handle stream) const;
  /// @throws berth::exception
  void release_stream(runtime::stream_handle stream) const { try_release_stream(stream).value(); }

  /// Memory near a device, with the traits asked for. On a machine with several NUMA nodes pinned
  /// memory comes from the device's own, unless `options` names another.
  /// @errors of the try_ twin: gpu_device_out_of_range
  [[nodiscard]] result<pinned_resource> try_pinned(runtime::pinned_options options = {}) const;
  /// @throws berth::exception
  [[nodiscard]] pinned_resource pinned(runtime::pinned_options options = {}) const {
    return try_pinned(options).value();
  }
  /// @errors gpu_device_out_of_range
  [[nodiscard]] result<device_resource> try_device(
      int device = 0, runtime::coherence grain = runtime::coherence::coarse) const;
  /// @throws berth::exception
  [[nodiscard]] device_resource device(
      int device = 0, runtime::coherence grain = runtime::coherence::coarse) const {
    return try_device(device, grain).value();
  }
  /// @errors gpu_device_out_of_range, gpu_not_supported where the runtime has no managed memory
  [[nodiscard]] result<managed_resource> try_managed(int device = 0) const;
  /// @throws berth::exception
  [[nodiscard]] managed_resource managed(int device = 0) const {
    return try_managed(device).value();
  }
  [[nodiscard]] pageable_resource pageable() const;

  /// Page-locks memory that exists already, for as long as the result lives.
  /// @errors as registered_memory says
  [[nodiscard]] result<registered_memory> try_register(
      std::span<std::byte> memory, const runtime::register_options& options = {}) const;
  /// @throws berth::exception
  [[nodiscard]] registered_memory register_memory(
      std::span<std::byte> memory, const runtime::register_options& options = {}) const {
    return try_register(memory, options).value();
  }

  [[nodiscard]] pinned_usage pinned_memory() const noexcept;

private:
  friend class copy_engine;
  explicit context(std::shared_ptr<memory::context_state> state) noexcept;
  [[nodiscard]] result<void> check_device(int device) const;

  std::shared_ptr<memory::context_state> state_;
};

}  // namespace berth
