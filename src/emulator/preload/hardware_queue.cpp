// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/hardware_queue.hpp"

#include <algorithm>

#include "emulator/preload/emulated_machine.hpp"

namespace berth::emulator {

hardware_queue::hardware_queue(emulated_machine& machine, const queue_ring& ring)
    : machine_(machine), ring_(ring), read_(std::atomic_ref(*ring.read).load()), written_(read_) {}

step_outcome hardware_queue::step() {
  if (stopped_) {
    return step_outcome::idle;
  }
  note_arrivals(std::atomic_ref(*ring_.write).load(std::memory_order_acquire));
  if (move_) {
    const auto progress = move_->advance();
    if (progress == move_progress::address_fault) {
      fault_at(move_->fault_address());
    } else if (progress == move_progress::done) {
      now_ns_ = move_->end_ns();
      move_.reset();
      move_ended();
    }
    return step_outcome::progressed;
  }
  if (written_ <= read_) {
    return step_outcome::idle;
  }
  advance_to(arrival_of(read_));
  return take_packet(read_, written_ - read_);
}

void hardware_queue::note_arrivals(std::uint64_t written) {
  if (written > written_) {
    written_ = written;
    machine_.clock.start_at(boot_time_ns());
    arrivals_.emplace_back(written, machine_.clock.now_ns());
  }
}

std::uint64_t hardware_queue::arrival_of(std::uint64_t position) {
  while (!arrivals_.empty() && arrivals_.front().first <= position) {
    arrivals_.pop_front();
  }
  return arrivals_.empty() ? 0 : arrivals_.front().second;
}

void hardware_queue::advance_to(std::uint64_t moment_ns) {
  now_ns_ = std::max(now_ns_, moment_ns);
  machine_.clock.reached(now_ns_);
}

void hardware_queue::consume(std::uint64_t count) {
  read_ += count;
  std::atomic_ref(*ring_.read).store(read_, std::memory_order_release);
}

void hardware_queue::start_move(byte_move what, carrier by, std::uint32_t packets,
                                std::string_view kernel) {
  const move_origin origin{
      .queue = ring_.id, .gpu = ring_.gpu, .by = by, .packets = packets, .kernel = kernel};
  move_.emplace(machine_, std::move(what), origin, now_ns_);
}

void hardware_queue::follow_signal(std::uint64_t value_address, bool has_waited) {
  const auto completed = machine_.clock.completed_ns(value_address);
  // A signal that the host has set says nothing of when: no earlier than all that has ended.
  advance_to(completed == 0 && has_waited ? machine_.clock.now_ns() : completed);
}

void hardware_queue::fault_at(std::uint64_t address) {
  stopped_ = true;
  machine_.trace.write(trace_line("memory_fault")
                           .field("gpu", ring_.gpu)
                           .field("queue", ring_.id)
                           .address("address", address));
  machine_.events.raise({.kind = kfd::event_type::memory,
                         .address = address,
                         .kfd_id = machine_.spec.gpus[ring_.gpu].kfd_id});
}

void hardware_queue::hang(const std::string& why) {
  stopped_ = true;
  say_once(why + ": the queue stops, as a GPU would hang");
  machine_.trace.write(
      trace_line("hang").field("gpu", ring_.gpu).field("queue", ring_.id).field("why", why));
  machine_.events.raise({.kind = kfd::event_type::hw_exception,
                         .address = 0,
                         .kfd_id = machine_.spec.gpus[ring_.gpu].kfd_id});
}

}  // namespace berth::emulator
