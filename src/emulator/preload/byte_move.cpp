// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/byte_move.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "emulator/preload/emulated_machine.hpp"

namespace berth::emulator {
namespace {

constexpr std::uint64_t slice_bytes = std::uint64_t{1} << 20U;

std::optional<std::uint32_t> gpu_of(const std::optional<located>& end) {
  return end && end->on_device ? std::optional(end->gpu) : std::nullopt;
}

// Repeats the pattern over the range; `phase` is how far into the pattern it begins.
void fill(char* to, std::uint64_t bytes, const std::string& pattern, std::uint64_t phase) {
  if (pattern.size() == 1) {
    std::memset(to, pattern.front(), bytes);
    return;
  }
  const auto first = std::min<std::uint64_t>(bytes, pattern.size());
  for (std::uint64_t at = 0; at < first; ++at) {
    to[at] = pattern[(phase + at) % pattern.size()];
  }
  // What is there doubles until the range is full: whole patterns, so the phase fits.
  for (std::uint64_t made = first; made < bytes;) {
    const auto more = std::min(made, bytes - made);
    std::memcpy(to + made, to, more);
    made += more;
  }
}

}  // namespace

move_execution::move_execution(emulated_machine& machine, byte_move what, const move_origin& origin,
                               std::uint64_t start_ns)
    : machine_(machine),
      what_(std::move(what)),
      origin_(origin),
      kernel_(origin.kernel),
      start_ns_(start_ns) {
  classify();
  duration_ns_ = static_cast<std::uint64_t>(std::llround(modelled_ns()));
  if (is_fill()) {
    return;
  }
  if (const auto slow = machine_.faults.occurs(fault_kind::copy_slow, what_.shape.bytes())) {
    duration_ns_ += slow->delay_ns;
    not_before_ns_ = steady_time_ns() + slow->delay_ns;
  }
  corrupt_ = machine_.faults.occurs(fault_kind::copy_corrupt, what_.shape.bytes()).has_value();
}

void move_execution::classify() {
  const auto to = machine_.locate(what_.destination);
  destination_gpu_ = gpu_of(to);
  destination_kind_ = to ? to->kind : "none";
  if (is_fill()) {
    return;
  }
  const auto from = machine_.locate(what_.source);
  source_gpu_ = gpu_of(from);
  source_kind_ = from ? from->kind : "none";
  if (source_gpu_ && destination_gpu_) {
    direction_ = *source_gpu_ == *destination_gpu_ ? "device_to_device" : "peer_to_peer";
  } else if (source_gpu_) {
    direction_ = "device_to_host";
  } else {
    direction_ = destination_gpu_ ? "host_to_device" : "host_to_host";
  }
}

// From the machine model, by the device whose link or memory the bytes pass.
double move_execution::modelled_ns() const {
  const auto bytes = what_.shape.bytes();
  const auto& gpus = machine_.spec.gpus;
  const auto by = origin_.by;
  if (is_fill()) {
    // Memory is only written where a copy also reads.
    const auto& cost = gpus[origin_.gpu].cost(
        destination_gpu_ ? transfer::within_device : transfer::device_to_host, by);
    return destination_gpu_ ? cost.nanoseconds(bytes) / 2 : cost.nanoseconds(bytes);
  }
  if (source_gpu_ && destination_gpu_ && *source_gpu_ != *destination_gpu_) {
    for (const auto& peer : machine_.spec.peers) {
      if (peer.from == *source_gpu_ && peer.to == *destination_gpu_) {
        return peer.cost.nanoseconds(bytes);
      }
    }
    return 0;
  }
  if (source_gpu_ && destination_gpu_) {
    return gpus[*source_gpu_].cost(transfer::within_device, by).nanoseconds(bytes);
  }
  if (source_gpu_) {
    return gpus[*source_gpu_].cost(transfer::device_to_host, by).nanoseconds(bytes);
  }
  const auto gpu = destination_gpu_.value_or(origin_.gpu);
  return gpus[gpu].cost(transfer::host_to_device, by).nanoseconds(bytes);
}

// At most `budget` bytes of the current row. How many were moved: 0 only after a fault.
std::uint64_t move_execution::move_some(std::uint64_t budget) {
  const auto& shape = what_.shape;
  const auto row = done_ / shape.row_bytes;
  const auto within = done_ % shape.row_bytes;
  const auto slice = row / shape.rows;
  const auto row_of_slice = row % shape.rows;
  const auto to_address = what_.destination + slice * shape.destination_slice_pitch +
                          row_of_slice * shape.destination_pitch + within;
  auto bytes = std::min(budget, shape.row_bytes - within);
  const auto to = machine_.locate(to_address);
  if (!to) {
    fault_address_ = to_address;
    return 0;
  }
  bytes = std::min(bytes, to->available);
  if (is_fill()) {
    fill(to->host, bytes, what_.pattern, within);
    return bytes;
  }
  const auto from_address =
      what_.source + slice * shape.source_slice_pitch + row_of_slice * shape.source_pitch + within;
  const auto from = machine_.locate(from_address);
  if (!from) {
    fault_address_ = from_address;
    return 0;
  }
  bytes = std::min(bytes, from->available);
  if (to->trust == backing::certain && from->trust == backing::certain) {
    std::memmove(to->host, from->host, bytes);
  } else if (!copy_safely(to->host, from->host, bytes)) {
    fault_address_ = from->trust == backing::of_program ? from_address : to_address;
    return 0;
  }
  return bytes;
}

move_progress move_execution::advance() {
  const auto total = what_.shape.bytes();
  for (std::uint64_t budget = slice_bytes; budget > 0 && done_ < total;) {
    const auto moved = move_some(budget);
    if (moved == 0) {
      return move_progress::address_fault;
    }
    done_ += moved;
    budget -= moved;
  }
  if (done_ < total || (not_before_ns_ != 0 && steady_time_ns() < not_before_ns_)) {
    const auto part = static_cast<double>(done_) / static_cast<double>(total);
    machine_.clock.reached(start_ns_ +
                           static_cast<std::uint64_t>(part * static_cast<double>(duration_ns_)));
    return move_progress::going;
  }
  finish();
  return move_progress::done;
}

void move_execution::corrupt() {
  const auto place = machine_.locate(what_.destination + what_.shape.row_bytes / 2);
  if (place) {
    *place->host = static_cast<char>(~*place->host);
  }
}

void move_execution::finish() {
  if (corrupt_) {
    corrupt();
  }
  machine_.clock.reached(end_ns());
  if (!machine_.trace.wanted()) {
    return;
  }
  trace_line line(is_fill() ? "fill" : "copy");
  line.field("engine", origin_.by == carrier::dma ? std::string_view("dma") : "kernel")
      .field("gpu", origin_.gpu)
      .field("queue", origin_.queue)
      .field("bytes", what_.shape.bytes())
      .field("packets", origin_.packets);
  if (!is_fill()) {
    line.field("direction", direction_)
        .address("source", what_.source)
        .field("source_kind", source_kind_);
  }
  line.address("destination", what_.destination).field("destination_kind", destination_kind_);
  if (!kernel_.empty()) {
    line.field("kernel", kernel_);
  }
  machine_.trace.write(line.field("start_ns", start_ns_).field("end_ns", end_ns()));
}

}  // namespace berth::emulator
