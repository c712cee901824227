// SPDX-License-Identifier: Apache-2.0
// What a program did with whole pieces of memory: the calls that allocate, free, pin, advise and
// ask for addresses, in the order in which they took effect, and the life of each piece from the
// call that gave it to the call that took it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/interval.hpp"
#include "diagnose/workload.hpp"

namespace berth::diagnose {

enum class memory_verb : std::uint8_t {
  allocate,
  release,
  pin,    // register memory that the program has
  unpin,  // and give it back
  ask,    // for the address under which a device reaches host memory
  prefetch,
  advise,
};

struct memory_call {
  trace::row event;
  memory_verb verb;
  // What the call gives, or by its contract takes; unknown where it takes several kinds.
  memory_kind kind = memory_kind::unknown;
  // What the memory really is, as the recorder knows it.
  memory_kind found = memory_kind::unknown;
  std::optional<std::uint64_t> address = {};
  std::optional<bytes_t> bytes = {};
  std::optional<std::uint64_t> flags = {};
  interval time = {0, 0};
  std::int32_t status = 0;  // 0: it succeeded

  [[nodiscard]] constexpr bool gives() const noexcept {
    return verb == memory_verb::allocate || verb == memory_verb::pin;
  }
  [[nodiscard]] constexpr bool takes() const noexcept {
    return verb == memory_verb::release || verb == memory_verb::unpin;
  }
};

// In order of effect: a call that gives memory has done so at its end, one that takes it may have
// done so from its begin on.
[[nodiscard]] std::vector<memory_call> memory_calls_of(const trace::trace& events);

inline constexpr std::size_t never = static_cast<std::size_t>(-1);

// Indices of calls.
struct memory_life {
  std::size_t given;
  std::size_t taken = never;
};
// Of all pieces whose address is known, in order of the calls that gave them. A piece whose address
// is given again without a call that took it ends there: that call was missed.
[[nodiscard]] std::vector<memory_life> lives_of(std::span<const memory_call> calls);

// From the first to the last event of the trace, whatever it is.
[[nodiscard]] interval recorded_time(const trace::trace& events);
// From the first to the last activity of the devices; of the trace where there is none.
[[nodiscard]] interval time_of_work(const workload& work);

// Share of a length; 0 of none.
[[nodiscard]] double share_of(std::int64_t part, std::int64_t whole) noexcept;
// What a file may claim is no reason to overflow.
[[nodiscard]] bytes_t saturating_product(bytes_t bytes, std::uint64_t count) noexcept;

// "hipHostMalloc at fill.cpp:12"; the name alone where the trace has no stack for it.
[[nodiscard]] std::string describe_call(const workload& work, trace::row call);

// Recorded by berth, which knows the environment: other sources have no facts.
[[nodiscard]] bool has_facts(const workload& work) noexcept;
// The value of a fact; nothing where the trace lacks it.
[[nodiscard]] std::optional<std::string_view> fact(const workload& work, std::string_view key);
// The NUMA node that a device is near; nothing where the trace does not say.
[[nodiscard]] std::optional<std::int32_t> node_of_device(const workload& work,
                                                         std::uint32_t device);
// Known to have its host end on another node than its device.
[[nodiscard]] bool is_remote(const workload& work, const copy& which);

}  // namespace berth::diagnose
