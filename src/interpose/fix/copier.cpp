// SPDX-License-Identifier: Apache-2.0
#include "interpose/fix/copier.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/text.hpp"
#include "interpose/fix/decision.hpp"
#include "memory/pinned_budget.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/hip/driver.hpp"

namespace berth::interpose::fix {
namespace {

namespace gpu = berth::runtime;

// Of all rings together.
constexpr bytes_t most_pinned = 256 * mib;
// Programs use the CPUs between copies, often all of them: helpers must not look for long.
constexpr std::chrono::nanoseconds alert_for = std::chrono::microseconds(200);
// What a self-check reads back at once.
constexpr bytes_t check_bytes = 4 * mib;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

// "BERTH_FIX_PROFILE": how the engine learns when staging wins. For tests and emulated devices.
calibration wanted_profile() {
  const auto word = variable("BERTH_FIX_PROFILE");
  return word == "nominal" ? calibration::nominal
         : word == "fresh" ? calibration::fresh
         : word == "never" ? calibration::never
                           : calibration::cached;
}

// Numbers that are none count as not set.
//
// "BERTH_FIX_MEMORY": MiB of page-locked memory.
bytes_t pinned_budget() {
  const auto word = variable("BERTH_FIX_MEMORY");
  constexpr bytes_t reasonable_mib = 1U << 20U;
  const bytes_t wanted =
      std::min(text::whole_number<std::uint64_t>(word).value_or(most_pinned / mib),
               reasonable_mib) *
      mib;
  return std::min(wanted, memory::default_pinned_budget());
}

// "BERTH_FIX_THREADS": that copy, the caller included; 0: as the CPUs allow.
unsigned most_threads() {
  constexpr std::uint64_t reasonable = 64;
  return static_cast<unsigned>(std::min(
      text::whole_number<std::uint64_t>(variable("BERTH_FIX_THREADS")).value_or(0), reasonable));
}

// The runtime that the program uses, and no other.
gpu::linker linker_for(const std::string& library) {
  auto made = gpu::system_linker();
  made.environment = [library, system = made.environment](const char* name) {
    const std::string_view wanted(name);
    return wanted == "BERTH_HIP_LIBRARY" || wanted == "BERTH_CUDA_LIBRARY" ? library : system(name);
  };
  return made;
}

direction direction_of(named_way way) noexcept {
  switch (way) {
    case named_way::to_device:
      return direction::host_to_device;
    case named_way::to_host:
      return direction::device_to_host;
    default:
      return direction::unknown;
  }
}

// One run of bytes is one row.
gpu::copy_2d rows_of(const request& what) noexcept {
  const auto rows = std::max<std::uint64_t>(what.rows, 1);
  return {.dst = what.dst,
          .dst_pitch = what.dst_pitch,
          .src = what.src,
          .src_pitch = what.src_pitch,
          .width = what.bytes / rows,
          .rows = rows};
}

gpu::stream_handle stream_of(const request& what) noexcept {
  return gpu::stream_handle{
      static_cast<std::uintptr_t>(what.stream == legacy_handle ? 0 : what.stream)};
}

}  // namespace

// --- Contexts of CUDA ---------------------------------------------------------------------------

primary_contexts::primary_contexts(void* library) {
  const auto find = [library](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        library == nullptr ? nullptr : ::dlsym(library, name));
  };
  find("cuCtxGetCurrent", get_current_);
  find("cuCtxGetDevice", get_device_);
  find("cuDevicePrimaryCtxGetState", get_state_);
  find("cuDevicePrimaryCtxRetain", retain_);
}

bool primary_contexts::is_current() {
  if (get_current_ == nullptr || get_device_ == nullptr || get_state_ == nullptr ||
      retain_ == nullptr) {
    return false;
  }
  void* current = nullptr;
  int device = 0;
  return get_current_(&current) == 0 && current != nullptr && get_device_(&device) == 0 &&
         current == primary_of(device);
}

// Null where the program has none: it must not be made for the sake of asking.
void* primary_contexts::primary_of(int device) {
  unsigned flags = 0;
  int is_active = 0;
  if (device < 0 || static_cast<std::size_t>(device) >= known_.size() ||
      get_state_(device, &flags, &is_active) != 0 || is_active == 0) {
    return nullptr;
  }
  auto& known = known_[static_cast<std::size_t>(device)];
  void* context = known.load(std::memory_order_acquire);
  if (context == nullptr && retain_(&context, device) == 0) {
    known.store(context, std::memory_order_release);
  }
  return context;
}

// --- Copier -------------------------------------------------------------------------------------

copier::copier(std::string library, std::shared_ptr<gpu::driver> made)
    : library_(std::move(library)),
      gpu_(std::move(made)),
      home_(std::make_shared<memory::context_state>(gpu_, "berth run --fix", pinned_budget())),
      profile_(wanted_profile()),
      engines_(gpu_->devices().size()) {}

std::unique_ptr<copier> copier::open(runtime of, const char* library) {
  // Already mapped: a second copy of a runtime is not what the program's calls go to.
  void* const mapped = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (mapped == nullptr) {
    return nullptr;
  }
  gpu::candidate seen;
  const auto linker = linker_for(library);
  auto made = of == runtime::hip ? gpu::hip::open_driver(linker, seen)
                                 : gpu::cuda::open_driver(linker, seen);
  if (!made) {
    return nullptr;
  }
  std::unique_ptr<copier> opened(new copier(library, std::move(*made)));
  if (of == runtime::cuda) {
    opened->contexts_.emplace(mapped);
  }
  return opened;
}

transfer::engine_state* copier::engine_of(int device) {
  auto& place = engines_[static_cast<std::size_t>(device)];
  if (auto* const known = place.known.load(std::memory_order_acquire)) {
    return known;
  }
  const std::scoped_lock lock(making_);  // nobody calls the GPU under it
  if (place.owner == nullptr) {
    copy_engine_options options;
    options.device = device;
    options.profile = profile_;
    options.most_threads = most_threads();
    options.alert_for = alert_for;
    place.owner = std::make_shared<transfer::engine_state>(home_, std::move(options));
    place.known.store(place.owner.get(), std::memory_order_release);
  }
  return place.known.load(std::memory_order_relaxed);
}

outcome copier::copy(const request& what) {
  if (contexts_ && !contexts_->is_current()) {
    return {.why = pass::foreign_context};
  }
  const auto device = gpu_->current_device();
  if (!device || static_cast<std::size_t>(*device) >= engines_.size()) {
    return {.why = pass::no_engine};
  }
  auto* const engine = engine_of(*device);
  if (profile_ == calibration::nominal) {
    static_cast<void>(engine->prepare());  // measures nothing, so it is quick
  }
  return staged(what, *engine);
}

outcome copier::staged(const request& what, transfer::engine_state& engine) {
  const bool waits = what.form == call_form::blocking || what.check == self_check::every_copy;
  const auto expected = direction_of(what.way);
  const transfer::engine_state::staging_wish wish{
      .expected = expected,
      .to_device = waits ? transfer::completion::both : transfer::completion::host,
      .to_host = transfer::completion::both};
  const auto made = what.rows == 0
                        ? engine.stage_only({.dst = what.dst, .src = what.src, .bytes = what.bytes},
                                            stream_of(what), wish)
                        : engine.stage_rows_only(rows_of(what), stream_of(what), wish);
  if (!made) {
    return {.why = judge_error(made.error().code())};
  }
  const auto why = judge_plan(*made, expected);
  if (why != pass::none || what.check == self_check::off) {
    return {.why = why};
  }
  return compared(what, made->way);
}

outcome copier::compared(const request& what, direction way) {
  const auto shape = rows_of(what);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const auto* const dst = static_cast<const std::byte*>(shape.dst) + row * shape.dst_pitch;
    const auto* const src = static_cast<const std::byte*>(shape.src) + row * shape.src_pitch;
    const bool up = way == direction::host_to_device;
    const auto how = compared_run(up ? src : dst, up ? dst : src, shape.width, stream_of(what));
    if (how.why != pass::none) {
      return how;
    }
  }
  return {.why = pass::none};
}

// What the runtime's own copies read back from the device must be the bytes that the host has.
outcome copier::compared_run(const std::byte* host, const std::byte* device, bytes_t bytes,
                             gpu::stream_handle stream) {
  auto buffer = take_check_buffer();
  outcome how{.why = pass::none};
  for (bytes_t done = 0; done < bytes && how.why == pass::none; done += check_bytes) {
    const auto part = std::min<bytes_t>(check_bytes, bytes - done);
    if (!gpu_->copy_async(buffer.get(), device + done, part, stream) ||
        !gpu_->synchronize_stream(stream)) {
      how = {.why = pass::failed};
    } else if (std::memcmp(buffer.get(), host + done, part) != 0) {
      how = {.why = pass::failed, .differed = true};
    }
  }
  put_back(std::move(buffer));
  return how;
}

copier::check_buffer copier::take_check_buffer() {
  const std::scoped_lock lock(checking_);
  if (check_buffers_.empty()) {
    return check_buffer(new std::byte[check_bytes]);  // NOLINT: not to be cleared
  }
  auto one = std::move(check_buffers_.back());
  check_buffers_.pop_back();
  return one;
}

void copier::put_back(check_buffer one) {
  const std::scoped_lock lock(checking_);
  check_buffers_.push_back(std::move(one));
}

// --- The program's page-locked memory -----------------------------------------------------------

bool copier::handle_pinned(pinned_request& what) {
  const auto device = gpu_->current_device();
  if (!device || (contexts_ && !contexts_->is_current())) {
    if (what.step == pinned_step::keep) {
      forget_pinned(what.memory);
    }
    return false;
  }
  if (what.step == pinned_step::forget) {
    forget_pinned(what.memory);
    return false;
  }
  const pinned_pool::sort sort{
      .device = *device, .call = what.call, .flags = what.flags, .bytes = what.bytes};
  {
    const std::scoped_lock lock(pooling_);
    if (!pool_) {
      pool_.emplace(what.budget);
    }
    if (what.step == pinned_step::take) {
      what.memory = pool_->take(sort);
      return what.memory != nullptr;
    }
    if (what.step == pinned_step::note) {
      pool_->note(what.memory, sort);
      return true;
    }
  }
  return what.step == pinned_step::keep ? keep_pinned(what.memory, *device) : release_pinned();
}

// A free waits for the device, so this does, too: after it nothing uses the block. Memory of
// another device than the current one is left to the runtime, which knows for whom to wait.
bool copier::keep_pinned(void* memory, int device) {
  bool is_candidate = false;
  {
    const std::scoped_lock lock(pooling_);
    const auto found = pool_->find(memory);
    is_candidate = found && found->device == device;
  }
  const bool has_drained = is_candidate && gpu_->synchronize_device(device).has_value();
  const std::scoped_lock lock(pooling_);
  if (has_drained && pool_->keep(memory)) {
    return true;
  }
  pool_->forget(memory);
  return false;
}

void copier::forget_pinned(void* memory) {
  const std::scoped_lock lock(pooling_);
  if (pool_) {
    pool_->forget(memory);
  }
}

bool copier::release_pinned() {
  std::vector<void*> all;
  {
    const std::scoped_lock lock(pooling_);
    if (pool_) {
      all = pool_->release();
    }
  }
  for (void* const one : all) {
    static_cast<void>(gpu_->free_pinned(one));
  }
  return !all.empty();
}

void copier::give_back() noexcept {
  if (gpu_->devices().size() > 1) {
    return;  // the caller has waited for one device, and unregistering may wait for others
  }
  for (auto& place : engines_) {
    if (auto* const engine = place.known.load()) {
      engine->trim();
    }
  }
}

void copier::end() noexcept {
  release_pinned();
  for (auto& place : engines_) {
    if (auto* const engine = place.known.load()) {
      engine->shut_down();
    }
  }
}

}  // namespace berth::interpose::fix
