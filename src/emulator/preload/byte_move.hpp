// SPDX-License-Identifier: Apache-2.0
// Copies and fills in execution, whoever carries them: an SDMA engine or one of the runtime's
// kernels. They are done in slices, so that the queues of all devices make progress side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/machine_spec.hpp"

namespace berth::emulator {

struct emulated_machine;

// A block of up to three dimensions. Distances are from the start of one row or slice to that of
// the next; without a meaning where there is only one.
struct block_shape {
  std::uint64_t row_bytes = 0;
  std::uint64_t rows = 1;
  std::uint64_t slices = 1;
  std::uint64_t destination_pitch = 0;
  std::uint64_t source_pitch = 0;
  std::uint64_t destination_slice_pitch = 0;
  std::uint64_t source_slice_pitch = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return row_bytes * rows * slices; }
};

struct byte_move {
  std::uint64_t destination = 0;
  std::uint64_t source = 0;  // without a meaning if there is a pattern
  block_shape shape = {};
  std::string pattern = {};  // a fill with these bytes, repeated; empty: a copy
};

// Who executes a move, for the trace.
struct move_origin {
  std::uint32_t queue = 0;
  std::uint32_t gpu = 0;  // index
  carrier by = carrier::dma;
  std::uint32_t packets = 1;
  std::string_view kernel;  // of the runtime; empty for an SDMA engine
};

enum class move_progress : std::uint8_t { going, done, address_fault };

class move_execution {
public:
  move_execution(emulated_machine& machine, byte_move what, const move_origin& origin,
                 std::uint64_t start_ns);

  // One slice. On address_fault `fault_address` is what no device may access.
  move_progress advance();

  [[nodiscard]] std::uint64_t end_ns() const noexcept { return start_ns_ + duration_ns_; }
  [[nodiscard]] std::uint64_t fault_address() const noexcept { return fault_address_; }

private:
  void classify();
  [[nodiscard]] double modelled_ns() const;
  [[nodiscard]] bool is_fill() const noexcept { return !what_.pattern.empty(); }
  std::uint64_t move_some(std::uint64_t budget);
  void finish();
  void corrupt();

  emulated_machine& machine_;
  byte_move what_;
  move_origin origin_;
  std::string kernel_;
  std::uint64_t start_ns_;
  std::uint64_t duration_ns_ = 0;
  std::uint64_t not_before_ns_ = 0;  // of the host's clock: a slow copy
  std::uint64_t done_ = 0;           // bytes
  std::uint64_t fault_address_ = 0;
  std::string_view direction_;
  std::string_view source_kind_ = "none";
  std::string_view destination_kind_ = "none";
  std::optional<std::uint32_t> source_gpu_;
  std::optional<std::uint32_t> destination_gpu_;
  bool corrupt_ = false;
};

}  // namespace berth::emulator
