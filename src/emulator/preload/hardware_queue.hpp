// SPDX-License-Identifier: Apache-2.0
// A user-mode queue of a device: a ring of packets that the program fills, and an engine that
// takes them out in small steps. No step waits: one thread serves all queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "emulator/preload/byte_move.hpp"

namespace berth::emulator {

struct emulated_machine;

enum class step_outcome : std::uint8_t {
  idle,        // the ring is empty
  waiting,     // for a signal, a word in memory, or for ever after a fault
  progressed,  // there may be more at once
};

// Where a ring lies and who it belongs to. Counts are bytes for SDMA and packets for AQL.
struct queue_ring {
  std::uint32_t id = 0;
  std::uint32_t gpu = 0;  // index
  char* base = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t* write = nullptr;  // the program's count of what it has put in
  std::uint64_t* read = nullptr;   // ours of what we have taken out
};

class hardware_queue {
public:
  hardware_queue(emulated_machine& machine, const queue_ring& ring);
  hardware_queue(const hardware_queue&) = delete;
  hardware_queue& operator=(const hardware_queue&) = delete;
  virtual ~hardware_queue() = default;

  [[nodiscard]] std::uint32_t id() const noexcept { return ring_.id; }
  [[nodiscard]] std::uint32_t gpu() const noexcept { return ring_.gpu; }

  step_outcome step();

protected:
  // Deals with the packet at `read`, which is there. `progressed` means that it is done with, and
  // that the engine has called `consume`; or that a move is under way.
  virtual step_outcome take_packet(std::uint64_t read, std::uint64_t available) = 0;
  // A move of this queue has ended at now_ns().
  virtual void move_ended() = 0;

  [[nodiscard]] emulated_machine& machine() const noexcept { return machine_; }
  [[nodiscard]] const queue_ring& ring() const noexcept { return ring_; }
  [[nodiscard]] std::uint64_t now_ns() const noexcept { return now_ns_; }
  void advance_to(std::uint64_t moment_ns);
  void consume(std::uint64_t count);

  void start_move(byte_move what, carrier by, std::uint32_t packets, std::string_view kernel);
  // Later than the completion of a signal that this queue has waited for.
  void follow_signal(std::uint64_t value_address, bool has_waited);
  // Stops the queue for good and reports why.
  void fault_at(std::uint64_t address);
  void hang(const std::string& why);

private:
  void note_arrivals(std::uint64_t written);
  [[nodiscard]] std::uint64_t arrival_of(std::uint64_t position);

  emulated_machine& machine_;
  queue_ring ring_;
  std::uint64_t read_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t written_;
  // When the ring was seen filled up to a position, on the devices' clock.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> arrivals_;
  std::optional<move_execution> move_;
  bool stopped_ = false;
};

}  // namespace berth::emulator
