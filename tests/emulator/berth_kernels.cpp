// SPDX-License-Identifier: Apache-2.0
// Host functions in place of berth's own kernels (src/runtime/builtin_kernels.cu), for
// `emulate --kernels`: with them the conformance suite runs on emulated devices. Each does what
// runtime/kernels.hpp promises; an address that the device may not access faults.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "berth/emulated_kernel.hpp"
#include "runtime/kernels.hpp"

namespace {

using berth::emulated_launch;
using berth::emulated_progress;
using word = std::uint64_t;

template <typename Arguments>
Arguments arguments_of(const emulated_launch& launch) {
  Arguments given;
  std::memcpy(&given, launch.arguments, sizeof(given));
  return given;
}

template <typename Type = unsigned char>
Type* at(const emulated_launch& launch, word address) {
  return static_cast<Type*>(launch.host_address(address));
}

std::uint64_t pattern_offset(word first_word) {
  return first_word * sizeof(word);
}

constexpr std::uint64_t ns_per_tick = 10;  // of the emulated devices' clock

}  // namespace

extern "C" emulated_progress berth_emulated_berth_copy(emulated_launch* launch) {
  struct arguments {
    word to, from, bytes;
  };
  const auto given = arguments_of<arguments>(*launch);
  auto* const to = at(*launch, given.to);
  const auto* const from = at(*launch, given.from);
  if (to != nullptr && from != nullptr) {
    std::memcpy(to, from, given.bytes);
  }
  return emulated_progress::done;
}

extern "C" emulated_progress berth_emulated_berth_fill(emulated_launch* launch) {
  struct arguments {
    word to, bytes, seed, first_word;
  };
  const auto given = arguments_of<arguments>(*launch);
  if (auto* const to = at(*launch, given.to)) {
    berth::runtime::write_pattern(to, given.bytes, given.seed, pattern_offset(given.first_word));
  }
  return emulated_progress::done;
}

extern "C" emulated_progress berth_emulated_berth_touch(emulated_launch* launch) {
  struct arguments {
    word first, bytes, stride, write;
  };
  const auto given = arguments_of<arguments>(*launch);
  auto* const first = at<volatile unsigned char>(*launch, given.first);
  for (word place = 0; first != nullptr && place < given.bytes; place += given.stride) {
    const unsigned char value = first[place];
    if (given.write != 0) {
      first[place] = value;
    }
  }
  return emulated_progress::done;
}

// Until it is released, or its time has passed, on both clocks.
extern "C" emulated_progress berth_emulated_berth_spin(emulated_launch* launch) {
  struct arguments {
    word release, ticks;
  };
  using clock_type = std::chrono::steady_clock;
  static auto& begun = *new std::map<const void*, clock_type::time_point>();
  const auto given = arguments_of<arguments>(*launch);
  const std::chrono::nanoseconds at_most(given.ticks * ns_per_tick);
  if (launch->calls == 0) {
    begun[launch->arguments] = clock_type::now();
  }
  const auto took = clock_type::now() - begun[launch->arguments];
  const auto* const release =
      given.release != 0 ? at<const volatile std::uint32_t>(*launch, given.release) : nullptr;
  const bool released = given.release != 0 && (release == nullptr || *release != 0);
  launch->device_ns =
      static_cast<std::uint64_t>(std::min<std::chrono::nanoseconds>(took, at_most).count());
  return released || took >= at_most ? emulated_progress::done : emulated_progress::again;
}

extern "C" emulated_progress berth_emulated_berth_verify(emulated_launch* launch) {
  struct arguments {
    word data, bytes, seed, first_word, mismatches;
  };
  const auto given = arguments_of<arguments>(*launch);
  const auto* const data = at(*launch, given.data);
  auto* const mismatches = at<word>(*launch, given.mismatches);
  if (data != nullptr && mismatches != nullptr) {
    *mismatches += berth::runtime::count_mismatches(data, given.bytes, given.seed,
                                                    pattern_offset(given.first_word));
  }
  return emulated_progress::done;
}

// One entry after the other; the first that the device may not access ends it.
extern "C" emulated_progress berth_emulated_berth_scatter(emulated_launch* launch) {
  struct arguments {
    word packed, table, entries, collect;
  };
  struct entry {
    word memory, place, bytes;
  };
  static_assert(sizeof(entry) == sizeof(berth::runtime::scatter_entry));
  const auto given = arguments_of<arguments>(*launch);
  for (word index = 0; index < given.entries; ++index) {
    const auto* const one = at<const entry>(*launch, given.table + index * sizeof(entry));
    if (one == nullptr) {
      break;
    }
    if (one->bytes == 0) {
      continue;
    }
    auto* const run = at(*launch, given.packed + one->place);
    auto* const memory = at(*launch, one->memory);
    if (run == nullptr || memory == nullptr) {
      break;
    }
    if (given.collect != 0) {
      std::memcpy(run, memory, one->bytes);
    } else {
      std::memcpy(memory, run, one->bytes);
    }
  }
  return emulated_progress::done;
}
