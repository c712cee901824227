// SPDX-License-Identifier: Apache-2.0
// A compute queue (AQL): kernels and barriers. A kernel does what the runtime's own kernel of that
// name does, or what a host function in its place does, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/preload/hardware_queue.hpp"
#include "emulator/preload/hsa_abi.hpp"
#include "emulator/preload/kernel_hooks.hpp"
#include "emulator/preload/runtime_kernels.hpp"

namespace berth::emulator {

class aql_queue final : public hardware_queue {
public:
  using hardware_queue::hardware_queue;

protected:
  step_outcome take_packet(std::uint64_t read, std::uint64_t available) override;
  void move_ended() override;

private:
  template <typename Packet>
  [[nodiscard]] Packet* packet_at(std::uint64_t read) const noexcept;

  step_outcome take_dispatch(const hsa::dispatch_packet& packet);
  step_outcome start_kernel(const hsa::dispatch_packet& packet);
  step_outcome run_hook(const hsa::dispatch_packet& packet);
  step_outcome wait_for_word(const word_wait& wait);
  step_outcome take_barrier(const hsa::barrier_packet& packet, hsa::packet_type type);
  step_outcome take_vendor(const hsa::vendor_packet& packet);

  void record_kernel(const hsa::dispatch_packet& packet, std::string_view effect) const;
  void record_packet(std::string_view packet, std::uint64_t signal) const;
  // Completes the packet at the front, which had begun at start_ns_.
  void finish(std::uint64_t signal);
  void complete(std::uint64_t signal) const;

  // The packet at the front, once it was started.
  bool started_ = false;
  bool waited_ = false;
  std::uint64_t start_ns_ = 0;
  std::string kernel_;
  kernel_hook* hook_ = nullptr;
  std::uint64_t hook_calls_ = 0;
  std::optional<word_wait> wait_;
};

}  // namespace berth::emulator
