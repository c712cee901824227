// SPDX-License-Identifier: Apache-2.0
#include "transfer/slot_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace berth::transfer {
namespace {

constexpr std::array<std::string_view, 3> names{"ordinary", "streaming", "demoted"};

#if defined(__x86_64__)

constexpr bytes_t line = 64;

void write_streaming(std::byte* to, const std::byte* from, bytes_t bytes) noexcept {
  const auto misplaced = reinterpret_cast<std::uintptr_t>(to) % line;
  const bytes_t before = std::min(bytes, misplaced == 0 ? 0 : line - misplaced);
  std::memcpy(to, from, before);
  bytes_t at = before;
  for (; at + line <= bytes; at += line) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
  // Streaming stores are not ordered by a release: this orders them before it.
  _mm_sfence();
}

// The instruction is a no-op on CPUs that do not know it.
__attribute__((target("cldemote"))) void demote(std::byte* first, bytes_t bytes) noexcept {
  for (bytes_t at = 0; at < bytes; at += line) {
    _cldemote(first + at);
  }
}

void write_demoted(std::byte* to, const std::byte* from, bytes_t bytes) noexcept {
  std::memcpy(to, from, bytes);
  demote(to, bytes);
}

#endif

}  // namespace

std::string_view to_string(slot_store value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

std::optional<slot_store> parse_slot_store(std::string_view text) noexcept {
  const auto* const found = std::find(names.begin(), names.end(), text);
  return found == names.end() ? std::nullopt
                              : std::optional(static_cast<slot_store>(found - names.begin()));
}

void write_slot(void* slot, const void* src, bytes_t bytes, slot_store how) noexcept {
#if defined(__x86_64__)
  switch (how) {
    case slot_store::streaming:
      write_streaming(static_cast<std::byte*>(slot), static_cast<const std::byte*>(src), bytes);
      return;
    case slot_store::demoted:
      write_demoted(static_cast<std::byte*>(slot), static_cast<const std::byte*>(src), bytes);
      return;
    case slot_store::ordinary:
      break;
  }
#else
  static_cast<void>(how);
#endif
  std::memcpy(slot, src, bytes);
}

}  // namespace berth::transfer
