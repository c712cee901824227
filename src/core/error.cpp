// SPDX-License-Identifier: Apache-2.0
// The table of errors and the value that carries one.
#include "berth/error.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

// Ascending by number. docs/errors.md explains each (a test compares).
constexpr std::array table{
    error_info{errc::usage, "usage", error_scope::call, "The call or command line makes no sense."},
    error_info{errc::file_unreadable, "file-unreadable", error_scope::call,
               "A file cannot be opened or read."},
    error_info{errc::file_unwritable, "file-unwritable", error_scope::call,
               "An output file cannot be created or written."},
    error_info{errc::input_empty, "input-empty", error_scope::call, "The input holds nothing."},
    error_info{errc::input_unknown_format, "input-unknown-format", error_scope::call,
               "No reader recognises the input."},
    error_info{errc::input_malformed, "input-malformed", error_scope::call,
               "The input breaks its own format."},
    error_info{errc::input_encoding, "input-encoding", error_scope::call,
               "The input holds text that is not UTF-8."},
    error_info{errc::input_out_of_range, "input-out-of-range", error_scope::call,
               "The input holds a number or a length that cannot be true."},
    error_info{
        errc::input_truncated, "input-truncated", error_scope::call,
        "The input ends in the middle; what was whole was used and the result is marked CUT."},
    error_info{errc::input_compression, "input-compression", error_scope::call,
               "Compressed data that does not decompress."},
    error_info{errc::gpu_no_runtime, "gpu-no-runtime", error_scope::call,
               "No GPU runtime library is on this machine."},
    error_info{errc::gpu_runtime_unusable, "gpu-runtime-unusable", error_scope::call,
               "A GPU runtime library that lacks calls, is too old or does not start."},
    error_info{errc::gpu_no_device, "gpu-no-device", error_scope::call,
               "The GPU runtime works and has no device."},
    error_info{errc::gpu_device_out_of_range, "gpu-device-out-of-range", error_scope::call,
               "There is no device of this index."},
    error_info{errc::gpu_out_of_memory, "gpu-out-of-memory", error_scope::call,
               "The memory asked for is not there."},
    error_info{errc::gpu_invalid_value, "gpu-invalid-value", error_scope::call,
               "An address, a size or an option that the GPU runtime refuses."},
    error_info{errc::gpu_invalid_handle, "gpu-invalid-handle", error_scope::call,
               "A stream or event that is none, or that belongs to another device."},
    error_info{errc::gpu_not_supported, "gpu-not-supported", error_scope::call,
               "This GPU runtime or device cannot do it."},
    error_info{errc::gpu_not_permitted, "gpu-not-permitted", error_scope::call,
               "The system does not allow this user to do it."},
    error_info{errc::gpu_not_ready, "gpu-not-ready", error_scope::call,
               "A result was asked for before its work has completed."},
    error_info{errc::gpu_already_registered, "gpu-already-registered", error_scope::call,
               "Host memory that is page-locked already."},
    error_info{errc::gpu_not_registered, "gpu-not-registered", error_scope::call,
               "Host memory that was never registered."},
    error_info{errc::gpu_launch_failed, "gpu-launch-failed", error_scope::call,
               "A kernel could not be started."},
    error_info{errc::gpu_kernel_unavailable, "gpu-kernel-unavailable", error_scope::call,
               "berth's own kernels cannot be built for this device."},
    error_info{errc::gpu_capture, "gpu-capture", error_scope::stream,
               "The call is not allowed while a stream captures a graph."},
    error_info{errc::gpu_device_lost, "gpu-device-lost", error_scope::device,
               "Earlier work broke the device's context; nothing on it can be used."},
    error_info{errc::gpu_shut_down, "gpu-shut-down", error_scope::process,
               "The GPU runtime has shut down, as it does when the process ends."},
    error_info{errc::gpu_unexpected, "gpu-unexpected", error_scope::call,
               "The GPU runtime reported an error that berth has no own word for."},
    error_info{errc::memory_invalid_size, "memory-invalid-size", error_scope::call,
               "A size that cannot be allocated."},
    error_info{errc::memory_invalid_alignment, "memory-invalid-alignment", error_scope::call,
               "An alignment that cannot be had."},
    error_info{errc::memory_foreign_pointer, "memory-foreign-pointer", error_scope::call,
               "An address that this resource did not give out."},
    error_info{errc::memory_double_free, "memory-double-free", error_scope::call,
               "An address that was freed already."},
    error_info{errc::memory_over_budget, "memory-over-budget", error_scope::call,
               "More pinned memory than the budget allows."},
    error_info{errc::memory_context_closed, "memory-context-closed", error_scope::call,
               "A call to something whose context is gone."},
    error_info{errc::transfer_overlap, "transfer-overlap", error_scope::call,
               "Source and destination of a copy overlap."},
    error_info{errc::transfer_wrong_direction, "transfer-wrong-direction", error_scope::call,
               "The ends of a copy do not fit the direction that was expected."},
    error_info{errc::transfer_out_of_range, "transfer-out-of-range", error_scope::call,
               "A copy reaches beyond the end of an allocation."},
    error_info{errc::transfer_unmapped, "transfer-unmapped", error_scope::call,
               "Host memory that is not mapped, or cannot be read or written as asked."},
    error_info{errc::transfer_cancelled, "transfer-cancelled", error_scope::call,
               "The copy engine ended before the copy did."},
    error_info{errc::transfer_forked, "transfer-forked", error_scope::process,
               "A call in the child of a fork, where the copy engine has no threads."},
    error_info{errc::transfer_callback, "transfer-callback", error_scope::call,
               "A producer or consumer of a copy failed."},
    error_info{errc::transfer_not_kept, "transfer-not-kept", error_scope::call,
               "A range to forget that is not kept."},
    error_info{errc::transfer_wrong_data, "transfer-wrong-data", error_scope::call,
               "A copy arrived with other bytes than were sent."},
    error_info{errc::internal, "internal", error_scope::call, "A fault in berth itself."},
};

const error_info& info_of(errc code) noexcept {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [code](const error_info& row) { return row.code == code; });
  assert(found != table.end() && "every errc has a row in the table");
  return found != table.end() ? *found : table.back();
}

}  // namespace

error::error(errc code, std::string message, std::string where, std::string hint)
    : code_(code), message_(std::move(message)), where_(std::move(where)), hint_(std::move(hint)) {}

std::string error::id() const {
  return error_id(code_);
}

error_scope error::scope() const noexcept {
  return info_of(code_).scope;
}

error error::with(memory_shortage amounts) && {
  shortage_ = amounts;
  return std::move(*this);
}

std::string error::to_string() const {
  std::string text = id() + ": ";
  if (!where_.empty()) {
    text += where_ + ": ";
  }
  text += message_;
  if (!hint_.empty()) {
    text += " (" + hint_ + ")";
  }
  return text;
}

exception::exception(error what) : std::runtime_error(what.to_string()), error_(std::move(what)) {}

void throw_error(const error& what) {
  const auto group = static_cast<std::uint16_t>(what.code()) / 100;
  switch (group) {
    case 10:
      throw usage_error(what);
    case 11:
      throw input_error(what);
    case 12:
      if (what.code() == errc::gpu_out_of_memory) {
        throw out_of_memory_error(what);
      }
      throw gpu_error(what);
    case 13:
      throw memory_error(what);
    case 14:
      throw transfer_error(what);
    default:
      throw exception(what);
  }
}

std::span<const error_info> error_table() noexcept {
  return table;
}

std::string error_id(errc code) {
  return fmt::format("BTH-{}", static_cast<unsigned>(code));
}

}  // namespace berth
