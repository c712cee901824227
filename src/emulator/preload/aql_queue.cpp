// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/aql_queue.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "emulator/preload/emulated_machine.hpp"

namespace berth::emulator {
namespace {

// What a kernel without effect takes on the device's clock: about a launch.
constexpr std::uint64_t empty_kernel_ns = 5'000;
constexpr std::uint64_t fault_address_of_injection = 0xdead000;

// The hook that runs: it gets a plain function to translate addresses.
struct hook_call {
  const emulated_machine* machine = nullptr;
  std::optional<std::uint64_t> fault;  // the first address that the device may not access
};
thread_local hook_call current_hook;

void* host_address(std::uint64_t gpu_address) {
  const auto found = current_hook.machine->locate(gpu_address);
  if (!found && !current_hook.fault) {
    current_hook.fault = gpu_address;
  }
  return found ? found->host : nullptr;
}

bool signal_is_zero(const emulated_machine& machine, std::uint64_t signal) {
  auto* const value = machine.word<std::int64_t>(signal + hsa::signal_value_offset);
  return value == nullptr || std::atomic_ref(*value).load(std::memory_order_acquire) == 0;
}

}  // namespace

template <typename Packet>
Packet* aql_queue::packet_at(std::uint64_t read) const noexcept {
  const auto slots = ring().bytes / hsa::aql_packet_bytes;
  return reinterpret_cast<Packet*>(ring().base + read % slots * hsa::aql_packet_bytes);
}

step_outcome aql_queue::take_packet(std::uint64_t read, std::uint64_t) {
  auto* const header = packet_at<std::uint16_t>(read);
  const auto type = static_cast<hsa::packet_type>(
      std::atomic_ref(*header).load(std::memory_order_acquire) & 0xffU);
  if (!started_) {
    start_ns_ = now_ns();
  }
  switch (type) {
    case hsa::packet_type::invalid:
      return step_outcome::waiting;  // being written
    case hsa::packet_type::dispatch:
      return take_dispatch(*packet_at<hsa::dispatch_packet>(read));
    case hsa::packet_type::barrier_and:
    case hsa::packet_type::barrier_or:
      return take_barrier(*packet_at<hsa::barrier_packet>(read), type);
    case hsa::packet_type::vendor:
      return take_vendor(*packet_at<hsa::vendor_packet>(read));
    case hsa::packet_type::agent_dispatch:
      break;
  }
  hang("unknown AQL packet, type " + std::to_string(static_cast<unsigned>(type)));
  return step_outcome::idle;
}

void aql_queue::record_kernel(const hsa::dispatch_packet& packet, std::string_view effect) const {
  if (machine().trace.wanted()) {
    const auto items = std::uint64_t{packet.grid[0]} * packet.grid[1] * packet.grid[2];
    machine().trace.write(trace_line("kernel")
                              .field("name", kernel_)
                              .field("effect", effect)
                              .field("gpu", gpu())
                              .field("queue", id())
                              .field("work_items", items)
                              .field("workgroup", packet.workgroup[0])
                              .field("start_ns", start_ns_)
                              .field("end_ns", now_ns()));
  }
}

void aql_queue::record_packet(std::string_view packet, std::uint64_t signal) const {
  if (machine().trace.wanted()) {
    machine().trace.write(trace_line("packet")
                              .field("packet", packet)
                              .field("engine", "kernel")
                              .field("gpu", gpu())
                              .field("queue", id())
                              .address("signal", signal)
                              .field("device_ns", now_ns()));
  }
}

step_outcome aql_queue::take_dispatch(const hsa::dispatch_packet& packet) {
  if (!started_) {
    return start_kernel(packet);
  }
  if (hook_ != nullptr) {
    return run_hook(packet);
  }
  return wait_for_word(*wait_);
}

step_outcome aql_queue::start_kernel(const hsa::dispatch_packet& packet) {
  kernel_ = machine().code.kernel_at(machine(), packet.kernel_object);
  if (kernel_.empty()) {
    kernel_ = rocr_kernel_at(machine(), packet.kernel_object);
  }
  if (machine().faults.occurs(fault_kind::kernel_faults, 0, kernel_)) {
    fault_at(fault_address_of_injection);
    return step_outcome::idle;
  }
  const auto effect = runtime_effect_of(machine(), kernel_, packet.kernarg_address);
  if (!effect) {
    hook_ = machine().hooks.find(kernel_);
    if (hook_ == nullptr) {
      machine().count_without_effect(kernel_.empty() ? "(without a name)" : kernel_);
      advance_to(now_ns() + empty_kernel_ns);
      record_kernel(packet, "none");
      finish(packet.completion_signal);
      return step_outcome::progressed;
    }
    started_ = true;
    hook_calls_ = 0;
    return run_hook(packet);
  }
  started_ = true;
  if (const auto* const move = std::get_if<byte_move>(&*effect)) {
    if (move->shape.bytes() == 0) {
      finish(packet.completion_signal);
      return step_outcome::progressed;
    }
    start_move(*move, carrier::kernel, 1, kernel_);
    return step_outcome::progressed;
  }
  if (const auto* const wait = std::get_if<word_wait>(&*effect)) {
    wait_ = *wait;
    return wait_for_word(*wait);
  }
  const auto& write = std::get<word_write>(*effect);
  const auto place = machine().locate(write.address);
  if (!place || place->available < write.bytes) {
    fault_at(write.address);
    return step_outcome::idle;
  }
  if (write.bytes == sizeof(std::uint32_t)) {
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(place->host))
        .store(static_cast<std::uint32_t>(write.value), std::memory_order_release);
  } else {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place->host))
        .store(write.value, std::memory_order_release);
  }
  record_kernel(packet, "runtime");
  finish(packet.completion_signal);
  return step_outcome::progressed;
}

step_outcome aql_queue::run_hook(const hsa::dispatch_packet& packet) {
  const auto arguments = machine().locate(packet.kernarg_address);
  emulated_launch launch{
      .grid = {packet.grid[0], packet.grid[1], packet.grid[2]},
      .workgroup = {packet.workgroup[0], packet.workgroup[1], packet.workgroup[2]},
      .arguments = arguments ? arguments->host : nullptr,
      .host_address = host_address,
      .device_ns = empty_kernel_ns,
      .calls = hook_calls_++};
  current_hook = {.machine = &machine(), .fault = std::nullopt};
  const auto progress = hook_(&launch);
  if (current_hook.fault) {
    fault_at(*current_hook.fault);
    return step_outcome::idle;
  }
  if (progress == emulated_progress::again) {
    waited_ = true;
    return step_outcome::waiting;
  }
  if (waited_) {  // what it has waited for came from the host: after all that had ended by then
    advance_to(machine().clock.now_ns());
  }
  advance_to(std::max(now_ns(), start_ns_ + launch.device_ns));
  record_kernel(packet, "host function");
  finish(packet.completion_signal);
  return step_outcome::progressed;
}

step_outcome aql_queue::wait_for_word(const word_wait& wait) {
  const auto place = machine().locate(wait.address);
  if (!place || place->available < wait.bytes) {
    fault_at(wait.address);
    return step_outcome::idle;
  }
  const auto found = wait.bytes == sizeof(std::uint32_t)
                         ? std::atomic_ref(*reinterpret_cast<std::uint32_t*>(place->host)).load()
                         : std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place->host)).load();
  if (!wait.met_by(found)) {
    waited_ = true;
    return step_outcome::waiting;
  }
  if (waited_) {
    advance_to(machine().clock.now_ns());
  }
  const auto& packet = *packet_at<hsa::dispatch_packet>(*ring().read);
  record_kernel(packet, "runtime");
  finish(packet.completion_signal);
  return step_outcome::progressed;
}

void aql_queue::move_ended() {
  finish(packet_at<hsa::dispatch_packet>(*ring().read)->completion_signal);
}

step_outcome aql_queue::take_barrier(const hsa::barrier_packet& packet, hsa::packet_type type) {
  std::size_t wanted = 0;
  std::size_t ready = 0;
  for (const auto signal : packet.dependencies) {
    wanted += signal != 0 ? 1U : 0U;
    ready += signal != 0 && signal_is_zero(machine(), signal) ? 1U : 0U;
  }
  const bool satisfied =
      type == hsa::packet_type::barrier_and ? ready == wanted : ready > 0 || wanted == 0;
  if (!satisfied) {
    waited_ = true;
    return step_outcome::waiting;
  }
  for (const auto signal : packet.dependencies) {
    if (signal != 0 && signal_is_zero(machine(), signal)) {
      follow_signal(signal + hsa::signal_value_offset, waited_);
    }
  }
  start_ns_ = now_ns();
  record_packet(type == hsa::packet_type::barrier_and ? "barrier_and" : "barrier_or",
                packet.completion_signal);
  finish(packet.completion_signal);
  return step_outcome::progressed;
}

step_outcome aql_queue::take_vendor(const hsa::vendor_packet& packet) {
  const auto format = static_cast<hsa::vendor_format>(packet.format);
  if (format == hsa::vendor_format::barrier_value) {
    auto* const value = machine().word<std::int64_t>(packet.signal + hsa::signal_value_offset);
    if (value == nullptr) {
      fault_at(packet.signal);
      return step_outcome::idle;
    }
    const auto found = std::atomic_ref(*value).load(std::memory_order_acquire) & packet.mask;
    const std::array<bool, 4> conditions = {found == packet.value, found != packet.value,
                                            found < packet.value, found >= packet.value};
    if (!conditions[packet.condition & 3U]) {
      waited_ = true;
      return step_outcome::waiting;
    }
    follow_signal(packet.signal + hsa::signal_value_offset, waited_);
  } else if (format != hsa::vendor_format::pm4) {
    hang("unknown vendor packet, format " + std::to_string(packet.format));
    return step_outcome::idle;
  }
  record_packet(format == hsa::vendor_format::pm4 ? "commands" : "barrier_value",
                packet.completion_signal);
  finish(packet.completion_signal);
  return step_outcome::progressed;
}

void aql_queue::finish(std::uint64_t signal) {
  auto* const header = packet_at<std::uint16_t>(*ring().read);
  if (signal != 0) {
    complete(signal);
  }
  started_ = false;
  waited_ = false;
  hook_ = nullptr;
  wait_.reset();
  std::atomic_ref(*header).store(static_cast<std::uint16_t>(hsa::packet_type::invalid),
                                 std::memory_order_release);
  consume(1);
}

void aql_queue::complete(std::uint64_t signal) const {
  auto* const completed = machine().word<hsa::signal>(signal);
  if (completed == nullptr) {
    return;
  }
  completed->start_ticks = start_ns_ / ns_per_tick;
  completed->end_ticks = now_ns() / ns_per_tick;
  machine().clock.complete(signal + hsa::signal_value_offset, now_ns());
  // Read before the program can see the end and give the signal back.
  const auto mailbox = completed->event_mailbox;
  const auto event = completed->event_id;
  std::atomic_ref(completed->value).fetch_sub(1, std::memory_order_seq_cst);
  if (mailbox != 0) {
    if (auto* const slot = machine().word<std::uint64_t>(mailbox)) {
      std::atomic_ref(*slot).store(event, std::memory_order_release);
    }
    machine().events.set(event);
  }
}

}  // namespace berth::emulator
