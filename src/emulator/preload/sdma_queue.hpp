// SPDX-License-Identifier: Apache-2.0
// A queue of a DMA engine (SDMA): copies, and the packets around them that wait, signal and stamp.
#pragma once

#include <cstdint>

#include "emulator/preload/hardware_queue.hpp"

namespace berth::emulator {

class sdma_queue final : public hardware_queue {
public:
  using hardware_queue::hardware_queue;

protected:
  step_outcome take_packet(std::uint64_t read, std::uint64_t available) override;
  void move_ended() override;

private:
  [[nodiscard]] const std::uint32_t* packet_at(std::uint64_t read) const noexcept;
  step_outcome take_copy(std::uint64_t read, std::uint64_t available);
  step_outcome take_linear(std::uint64_t read, std::uint64_t available);
  step_outcome take_rect(const std::uint32_t* packet);
  step_outcome take_fill(const std::uint32_t* packet);
  step_outcome take_poll(const std::uint32_t* packet);
  step_outcome take_atomic(const std::uint32_t* packet);
  step_outcome take_trap(const std::uint32_t* packet);
  template <typename Word>
  step_outcome take_write(const std::uint32_t* packet, std::uint32_t words, Word value,
                          std::string_view name);
  void record(std::string_view packet, std::uint64_t address) const;

  std::uint64_t move_bytes_of_ring_ = 0;
  bool polled_ = false;  // the poll packet at the front was found unsatisfied before
};

}  // namespace berth::emulator
