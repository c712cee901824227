// SPDX-License-Identifier: Apache-2.0
#include "berth/context.hpp"

#include <utility>

#include <fmt/format.h>

#include "memory/context_state.hpp"
#include "runtime/open.hpp"

namespace berth {
namespace {

std::shared_ptr<memory::context_state> state_for(std::shared_ptr<runtime::driver> gpu,
                                                 std::string reason,
                                                 const context_options& options) {
  const auto budget = options.pinned_budget.value_or(memory::default_pinned_budget());
  return std::make_shared<memory::context_state>(std::move(gpu), std::move(reason), budget);
}

}  // namespace

result<context> context::try_open(const context_options& options) {
  auto request = options.runtime.empty()
                     ? runtime::open_request::from_environment()
                     : runtime::open_request::parse(options.runtime, "context_options::runtime");
  if (!request) {
    return request.error();
  }
  auto opened = runtime::open(*request);
  if (!opened) {
    return opened.error();
  }
  return context(state_for(std::move(opened->gpu), std::move(opened->reason), options));
}

context context::on(std::shared_ptr<runtime::driver> gpu, const context_options& options) {
  return context(state_for(std::move(gpu), "the driver that the program gave", options));
}

context::context(std::shared_ptr<memory::context_state> state) noexcept
    : state_(std::move(state)) {}

context& context::operator=(context&& other) noexcept {
  if (this != &other) {
    if (state_) {
      state_->close();
    }
    state_ = std::move(other.state_);
  }
  return *this;
}

context::~context() {
  if (state_) {
    state_->close();
  }
}

const runtime::runtime_info& context::runtime() const noexcept {
  return state_->gpu().info();
}
std::span<const runtime::device_info> context::devices() const noexcept {
  return state_->gpu().devices();
}
const std::string& context::reason() const noexcept {
  return state_->reason();
}

result<void> context::check_device(int device) const {
  const auto count = static_cast<int>(devices().size());
  if (device >= 0 && device < count) {
    return {};
  }
  return error(errc::gpu_device_out_of_range,
               fmt::format("there is no device {}: the runtime has {}", device, count), "context",
               "devices are counted from 0");
}

result<stream> context::try_create_stream(int device,
                                          const runtime::stream_options& options) const {
  if (auto known = check_device(device); !known) {
    return known.error();
  }
  auto made = state_->gpu().create_stream(device, options);
  if (!made) {
    return made.error();
  }
  return stream(state_, device, *made);
}

result<void> context::try_release_stream(runtime::stream_handle handle) const {
  return state_->release_stream(handle);
}

result<pinned_resource> context::try_pinned(runtime::pinned_options options) const {
  if (auto known = check_device(options.device); !known) {
    return known.error();
  }
  const auto& device = devices()[static_cast<std::size_t>(options.device)];
  if (!options.numa_node && runtime().capabilities.has(runtime::capability::host_numa)) {
    options.numa_node = device.numa_node;
  }
  return pinned_resource(state_, options);
}

result<device_resource> context::try_device(int device, runtime::coherence grain) const {
  if (auto known = check_device(device); !known) {
    return known.error();
  }
  return device_resource(state_, device, grain);
}

result<managed_resource> context::try_managed(int device) const {
  if (auto known = check_device(device); !known) {
    return known.error();
  }
  if (!runtime().capabilities.has(runtime::capability::managed)) {
    return error(errc::gpu_not_supported, "this runtime has no managed memory", "context");
  }
  return managed_resource(state_, device);
}

pageable_resource context::pageable() const {
  return pageable_resource(state_);
}

result<registered_memory> context::try_register(std::span<std::byte> memory,
                                                const runtime::register_options& options) const {
  if (auto open = state_->require_open("context::register_memory"); !open) {
    return open.error();
  }
  auto pieces = state_->registered().acquire(memory, options);
  if (!pieces) {
    return pieces.error();
  }
  return registered_memory(state_, memory, std::move(*pieces));
}

pinned_usage context::pinned_memory() const noexcept {
  const auto& budget = state_->budget();
  return {.budget = budget.limit(), .used = budget.used(), .peak = budget.peak()};
}

// --- stream -----------------------------------------------------------------------------------

stream::stream(std::shared_ptr<memory::context_state> home, int device,
               runtime::stream_handle handle)
    : home_(std::move(home)), device_(device), handle_(handle) {}

stream::stream(stream&& other) noexcept = default;

stream& stream::operator=(stream&& other) noexcept {
  if (this != &other) {
    end();
    home_ = std::move(other.home_);
    device_ = other.device_;
    handle_ = other.handle_;
  }
  return *this;
}

stream::~stream() {
  end();
}

void stream::end() noexcept {
  if (!home_) {
    return;
  }
  try {
    // Failures here mean that the runtime has shut down: nothing is left to release.
    static_cast<void>(home_->release_stream(handle_));
    static_cast<void>(home_->gpu().destroy_stream(handle_));
  } catch (...) {  // NOLINT: out of host memory at the end of a stream: the stream leaks, no more
  }
  home_.reset();
}

result<void> stream::try_synchronize() const {
  return home_->gpu().synchronize_stream(handle_);
}

// --- registered_memory ------------------------------------------------------------------------

registered_memory::registered_memory(std::shared_ptr<memory::context_state> home,
                                     std::span<std::byte> memory, std::vector<std::byte*> pieces)
    : home_(std::move(home)), memory_(memory), pieces_(std::move(pieces)) {}

registered_memory& registered_memory::operator=(registered_memory&& other) noexcept {
  if (this != &other) {
    end();
    home_ = std::move(other.home_);
    memory_ = other.memory_;
    pieces_ = std::move(other.pieces_);
  }
  return *this;
}

registered_memory::~registered_memory() {
  end();
}

void registered_memory::end() noexcept {
  if (home_) {
    static_cast<void>(home_->registered().release(pieces_));  // fails only after shutdown
    home_.reset();
  }
}

}  // namespace berth
