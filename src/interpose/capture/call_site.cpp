// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/call_site.hpp"

#include <unwind.h>

namespace berth::interpose {
namespace {

// Of the thread's time, in thousandths; and what it may spend before it has lived long.
constexpr std::uint64_t share_in_thousandths = 4;
constexpr std::uint64_t advance_ticks = 4'000'000;

struct unwinding {
  raw_stack* to;
  std::uintptr_t from;  // frames before this one are the recorder's own
  bool begun;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* state) {
  auto& what = *static_cast<unwinding*>(state);
  const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
  what.begun = what.begun || address == what.from;
  if (!what.begun) {
    return _URC_NO_REASON;
  }
  if (address == 0 || what.to->frames == raw_stack::most_frames) {
    return _URC_END_OF_STACK;
  }
  what.to->address[what.to->frames++] = address;
  return _URC_NO_REASON;
}

bool may_unwind(const thread_log& log, std::uint64_t now) noexcept {
  return log.unwinding * 1000 < share_in_thousandths * (now - log.began) + advance_ticks * 1000;
}

thread_log::known_site& slot_of(thread_log& log, const call_place& place) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(place.return_address);
  const auto frame = reinterpret_cast<std::uintptr_t>(place.frame);
  const auto hash = (address ^ (frame >> 4)) * 0x9E37'79B9'7F4A'7C15U;
  return log.sites[(hash >> 40) % log.sites.size()];
}

}  // namespace

std::uint32_t site_of(thread_log& log, const call_place& place, tick_source clock) noexcept {
  auto& known = slot_of(log, place);
  const auto address = reinterpret_cast<std::uintptr_t>(place.return_address);
  const auto frame = reinterpret_cast<std::uintptr_t>(place.frame);
  if (known.id != 0 && known.return_address == address && known.frame == frame) {
    return known.id;
  }
  const auto now = read_ticks(clock);
  raw_stack* const to = may_unwind(log, now) ? log.stacks.reserve() : nullptr;
  if (to == nullptr) {
    return 0;
  }
  *to = {};
  unwinding what{.to = to, .from = address, .begun = false};
  _Unwind_Backtrace(add_frame, &what);
  log.unwinding += read_ticks(clock) - now;
  if (to->frames == 0) {
    to->address[to->frames++] = address;  // the unwinder did not come that far
  }
  to->id = ++log.next_site;
  const auto id = to->id;
  log.stacks.commit();
  known = {address, frame, id};
  return id;
}

}  // namespace berth::interpose
