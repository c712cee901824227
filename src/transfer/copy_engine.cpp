// SPDX-License-Identifier: Apache-2.0
// The public face of the copy engine.
#include "berth/copy_engine.hpp"

#include <array>
#include <utility>

#include "memory/context_state.hpp"
#include "transfer/engine_state.hpp"

namespace berth {
namespace {

constexpr std::array<std::string_view, 7> path_names{
    "nothing", "runtime", "direct", "kept", "kernel", "staged_inline", "staged_threaded"};
constexpr std::array<std::string_view, 17> reason_names{
    "no_bytes",       "small",     "page_locked",         "kept",       "requested",
    "pageable",       "one_cpu",   "host_reaches_device", "both_host",  "managed_end",
    "unknown_memory", "capturing", "not_ready",           "no_profile", "slower_here",
    "starved",        "no_ring"};

}  // namespace

std::string_view to_string(copy_path value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < path_names.size() ? path_names[index] : "unknown";
}

std::string_view to_string(copy_reason value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < reason_names.size() ? reason_names[index] : "unknown";
}

// --- ticket -------------------------------------------------------------------------------------

ticket::ticket() noexcept = default;
ticket::ticket(std::shared_ptr<transfer::ticket_state> state) noexcept : state_(std::move(state)) {}
ticket::ticket(ticket&& other) noexcept = default;
ticket& ticket::operator=(ticket&& other) noexcept = default;
ticket::~ticket() = default;

result<copy_stats> ticket::try_wait() {
  return state_ ? state_->wait() : result<copy_stats>(copy_stats{});
}
bool ticket::is_done() const {
  return !state_ || state_->is_done();
}
copy_stats ticket::stats() const {
  return state_ ? state_->stats() : copy_stats{};
}

// --- copy_engine --------------------------------------------------------------------------------

result<copy_engine> copy_engine::try_make(const context& on, copy_engine_options options) {
  if (auto open = on.state_->require_open("copy_engine::make"); !open) {
    return open.error();
  }
  if (auto known = on.check_device(options.device); !known) {
    return known.error();
  }
  auto state = std::make_shared<transfer::engine_state>(on.state_, std::move(options));
  return copy_engine(std::move(state));
}

copy_engine::copy_engine(std::shared_ptr<transfer::engine_state> state) noexcept
    : state_(std::move(state)) {}
copy_engine::copy_engine(copy_engine&& other) noexcept = default;
copy_engine& copy_engine::operator=(copy_engine&& other) noexcept {
  if (this != &other) {
    if (state_) {
      state_->shut_down();
    }
    state_ = std::move(other.state_);
  }
  return *this;
}
copy_engine::~copy_engine() {
  if (state_) {
    state_->shut_down();
  }
}

namespace {

result<ticket> wrapped(result<std::shared_ptr<transfer::ticket_state>> made,
                       ticket (*wrap)(std::shared_ptr<transfer::ticket_state>)) {
  if (!made) {
    return made.error();
  }
  return wrap(std::move(*made));
}

}  // namespace

result<ticket> copy_engine::try_copy(void* dst, const void* src, bytes_t bytes,
                                     runtime::stream_handle stream, const copy_options& options) {
  return wrapped(state_->copy({dst, src, bytes}, stream, options, transfer::completion::host),
                 [](auto state) { return ticket(std::move(state)); });
}

result<copy_stats> copy_engine::try_copy_and_wait(void* dst, const void* src, bytes_t bytes,
                                                  runtime::stream_handle stream,
                                                  const copy_options& options) {
  auto made = state_->copy({dst, src, bytes}, stream, options, transfer::completion::both);
  if (!made) {
    return made.error();
  }
  return *made ? (*made)->wait() : result<copy_stats>(copy_stats{.plan = {.bytes = bytes}});
}

result<ticket> copy_engine::try_copy_2d(const runtime::copy_2d& what, runtime::stream_handle stream,
                                        const copy_options& options) {
  return wrapped(state_->copy_2d(what, stream, options),
                 [](auto state) { return ticket(std::move(state)); });
}

result<ticket> copy_engine::try_copy_batch(std::span<const copy_range> what,
                                           runtime::stream_handle stream,
                                           const copy_options& options) {
  return wrapped(state_->copy_batch(what, stream, options),
                 [](auto state) { return ticket(std::move(state)); });
}

result<ticket> copy_engine::try_produce(void* dst, bytes_t bytes, const slot_producer& from,
                                        runtime::stream_handle stream, callback_order order) {
  return wrapped(state_->call_back(static_cast<std::byte*>(dst), bytes, direction::host_to_device,
                                   transfer::producing_host(from), stream, order),
                 [](auto state) { return ticket(std::move(state)); });
}

result<ticket> copy_engine::try_consume(const void* src, bytes_t bytes, slot_consumer to,
                                        runtime::stream_handle stream, callback_order order) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): one type serves both directions
  auto* const memory = const_cast<std::byte*>(static_cast<const std::byte*>(src));
  return wrapped(state_->call_back(memory, bytes, direction::device_to_host,
                                   transfer::consuming_host(std::move(to)), stream, order),
                 [](auto state) { return ticket(std::move(state)); });
}

result<void> copy_engine::try_keep(std::span<std::byte> memory) {
  return state_->keep(memory);
}
result<void> copy_engine::try_forget(std::span<std::byte> memory) {
  return state_->forget(memory);
}
result<copy_plan> copy_engine::try_plan(const void* dst, const void* src, bytes_t bytes,
                                        const copy_options& options) const {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a plan writes nothing
  return state_->plan({const_cast<void*>(dst), src, bytes}, options);
}
result<void> copy_engine::try_prepare() {
  return state_->prepare();
}
bytes_t copy_engine::trim() noexcept {
  return state_->trim();
}

}  // namespace berth
