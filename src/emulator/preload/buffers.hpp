// SPDX-License-Identifier: Apache-2.0
// Buffer objects: what the driver allocates, and the GPU's address space over them.
//
// Words
//   buffer    an allocation of the driver: a range of GPU addresses and where the emulator finds it
//   gtt       host memory that the driver gives (the name of its table for the GPU)
//   user      host memory that user space brought: what a program registers, and with AMD's runtime
//             also all page-locked memory
//   located   what a GPU address means: host address, how far it is contiguous, what it belongs to
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string_view>

namespace berth::emulator {

enum class buffer_kind : std::uint8_t { device, gtt, user, doorbell, remap };
enum class buffer_origin : std::uint8_t { own, imported };

[[nodiscard]] constexpr std::string_view to_string(buffer_kind kind) noexcept {
  constexpr std::array<std::string_view, 5> names = {"device", "gtt", "user", "doorbell", "remap"};
  return names[static_cast<std::size_t>(kind)];
}

struct buffer {
  std::uint64_t handle = 0;
  std::uint64_t address = 0;  // of the GPU
  std::uint64_t bytes = 0;
  char* host = nullptr;
  std::uint64_t offset = 0;  // in the memory file; without meaning for user memory
  std::uint32_t gpu = 0;     // index
  std::uint32_t flags = 0;   // as the program gave them
  buffer_kind kind = buffer_kind::gtt;
  buffer_origin origin = buffer_origin::own;
};

// Whether the program may have unmapped the memory behind an address.
enum class backing : std::uint8_t { certain, of_program };

struct located {
  char* host = nullptr;
  std::uint64_t available = 0;  // bytes from here to the end of the buffer
  std::uint32_t gpu = 0;        // index; has a meaning for device memory only
  bool on_device = false;
  std::string_view kind;  // "device", "gtt", "user", "managed"
  backing trust = backing::certain;
};

class buffer_table {
public:
  // The handle that it has from now on.
  std::uint64_t add(buffer made) {
    const std::unique_lock hold(lock_);
    made.handle = ++last_handle_;
    by_address_.insert_or_assign(made.address, made.handle);
    return by_handle_.emplace(made.handle, made).first->first;
  }

  [[nodiscard]] std::optional<buffer> find(std::uint64_t handle) const {
    const std::shared_lock hold(lock_);
    const auto found = by_handle_.find(handle);
    return found == by_handle_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<buffer> remove(std::uint64_t handle) {
    const std::unique_lock hold(lock_);
    const auto found = by_handle_.find(handle);
    if (found == by_handle_.end()) {
      return std::nullopt;
    }
    const buffer gone = found->second;
    const auto range = by_address_.find(gone.address);
    if (range != by_address_.end() && range->second == handle) {
      by_address_.erase(range);
    }
    by_handle_.erase(found);
    return gone;
  }

  // The buffer that an address lies in.
  [[nodiscard]] std::optional<located> locate(std::uint64_t address) const {
    const std::shared_lock hold(lock_);
    auto above = by_address_.upper_bound(address);
    if (above == by_address_.begin()) {
      return std::nullopt;
    }
    const auto& found = by_handle_.at((--above)->second);
    const auto within = address - found.address;
    if (within >= found.bytes) {
      return std::nullopt;
    }
    return located{
        .host = found.host + within,
        .available = found.bytes - within,
        .gpu = found.gpu,
        .on_device = found.kind == buffer_kind::device,
        .kind = to_string(found.kind),
        .trust = found.kind == buffer_kind::user ? backing::of_program : backing::certain};
  }

private:
  mutable std::shared_mutex lock_;
  std::map<std::uint64_t, buffer> by_handle_;
  std::map<std::uint64_t, std::uint64_t> by_address_;  // to handles
  std::uint64_t last_handle_ = 0;
};

}  // namespace berth::emulator
