// SPDX-License-Identifier: Apache-2.0
// berth's own few kernels, as requests: a driver that has code for them runs it (CUDA: embedded
// PTX, HIP: compiled at run time), the simulator does what the request declares. A request is all
// that a driver knows of a kernel, so it names every byte that the kernel touches.
//
// Pattern: the test data of fill and verify. Byte k of pattern `seed` is byte k % 8 (little endian)
// of pattern_word(seed, k / 8), so that any part of a buffer can be made and checked on either
// side.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "berth/units.hpp"

namespace berth::runtime {

enum class builtin_kernel : std::uint8_t { copy, fill, touch, spin, verify, scatter };

// Copies by compute units. Any alignment; 16-byte aligned ends are the fast case. The ranges must
// not overlap.
struct kernel_copy {
  void* dst = nullptr;
  const void* src = nullptr;
  bytes_t bytes = 0;
};

// Writes the pattern. Pre: dst is 8-byte aligned, offset a multiple of 8.
struct kernel_fill {
  void* dst = nullptr;
  bytes_t bytes = 0;
  std::uint64_t seed = 0;
  bytes_t offset = 0;  // of dst's first byte within the pattern
};

enum class touch_access : std::uint8_t {
  read,
  write,  // reads a byte and writes it back: contents stay
};

// Touches one byte in each `stride`: brings managed pages to the device. Pre: stride > 0.
struct kernel_touch {
  void* first = nullptr;
  bytes_t bytes = 0;
  bytes_t stride = 4096;
  touch_access access = touch_access::read;
};

// One thread that runs until *release is not 0, or until about `at_most` has passed on the device's
// clock. Holds a stream while work is queued behind it. release may be null: then it takes at_most.
// Pre: release, if any, is a 4-byte aligned address that both sides can use (pinned, mapped, fine);
// at_most > 0 and at most 10 s, so that a lost release never hangs a device.
struct kernel_spin {
  const volatile std::uint32_t* release = nullptr;
  std::chrono::nanoseconds at_most{0};
};

// Adds to *mismatches how many bytes differ from the pattern. Pre: data is 8-byte aligned, offset a
// multiple of 8; mismatches is 8-byte aligned device memory (atomics do not reach host memory over
// every link); the caller sets it to 0 first.
struct kernel_verify {
  const void* data = nullptr;
  bytes_t bytes = 0;
  std::uint64_t seed = 0;
  bytes_t offset = 0;  // of data's first byte within the pattern
  std::uint64_t* mismatches = nullptr;
};

enum class scatter_way : std::uint8_t {
  spread,   // packed bytes to the entries' places
  collect,  // the entries' bytes, packed
};

// One range of a scatter, beside bytes [place, place + bytes) of the packed run.
struct scatter_entry {
  void* memory = nullptr;
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;
};

// Copies between one packed run and many ranges. Any alignment; 16-byte aligned ends are the fast
// case. Pre: no range overlaps another or the packed run; the table is 8-byte aligned page-locked
// host memory that neither side changes until the kernel has ended.
struct kernel_scatter {
  void* packed = nullptr;
  const scatter_entry* table = nullptr;
  std::uint64_t entries = 0;
  scatter_way way = scatter_way::spread;
};

// The alternatives stand in the order of builtin_kernel.
using kernel_request = std::variant<kernel_copy, kernel_fill, kernel_touch, kernel_spin,
                                    kernel_verify, kernel_scatter>;

constexpr builtin_kernel kind_of(const kernel_request& request) noexcept {
  return static_cast<builtin_kernel>(request.index());
}

// How much of the device a kernel takes. 0: the driver's choice (enough to saturate it).
struct launch_shape {
  unsigned blocks = 0;
  unsigned threads = 0;  // in a block; at most 1024, a multiple of 64
};

// Word `index` of pattern `seed`: the SplitMix64 sequence (Steele, Lea, Flood 2014), addressable.
constexpr std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// The same on the host: writes and checks bytes [offset, offset + bytes) of the pattern. Any
// alignment, any offset.
void write_pattern(void* dst, bytes_t bytes, std::uint64_t seed, bytes_t offset = 0) noexcept;
[[nodiscard]] std::uint64_t count_mismatches(const void* data, bytes_t bytes, std::uint64_t seed,
                                             bytes_t offset = 0) noexcept;

}  // namespace berth::runtime
