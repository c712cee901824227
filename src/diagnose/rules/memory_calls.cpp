// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/memory_calls.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>

#include "trace/import/api_names.hpp"

namespace berth::diagnose {
namespace {

struct verb_pattern {
  std::string_view part;
  memory_verb verb;
  memory_kind kind;
};

// The first part that a name contains decides: hipHostUnregister contains neither of the others.
constexpr std::array verb_patterns{
    verb_pattern{"HostUnregister", memory_verb::unpin, memory_kind::registered},
    verb_pattern{"HostRegister", memory_verb::pin, memory_kind::registered},
    verb_pattern{"HostGetDevicePointer", memory_verb::ask, memory_kind::unknown},
    verb_pattern{"Prefetch", memory_verb::prefetch, memory_kind::managed},
    verb_pattern{"MemAdvise", memory_verb::advise, memory_kind::managed},
};

struct verb_and_kind {
  memory_verb verb;
  memory_kind kind;
};

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

std::optional<verb_and_kind> meaning_of(std::string_view name) noexcept {
  const auto meaning = trace::meaning_of_call(name);
  if (meaning.api == trace::gpu_api::unknown) {
    return std::nullopt;
  }
  for (const auto& pattern : verb_patterns) {
    if (contains(name, pattern.part)) {
      return verb_and_kind{pattern.verb, pattern.kind};
    }
  }
  switch (meaning.kind) {
    case trace::event_kind::allocation:
      return verb_and_kind{memory_verb::allocate, meaning.memory};
    case trace::event_kind::free:
      return verb_and_kind{memory_verb::release, meaning.memory};
    default:
      return std::nullopt;
  }
}

// Names are few and calls many: each name is looked at once.
class meanings {
public:
  explicit meanings(const trace::trace& events) : events_(events), known_(events.name_count()) {}

  const std::optional<verb_and_kind>& of(trace::name_id name) {
    auto& entry = known_[name];
    if (!entry.is_known) {
      entry = {meaning_of(events_.text(name)), true};
    }
    return entry.meaning;
  }

private:
  struct entry {
    std::optional<verb_and_kind> meaning;
    bool is_known = false;
  };
  const trace::trace& events_;
  std::vector<entry> known_;
};

std::int64_t time_of_effect(const memory_call& call) noexcept {
  return call.gives() ? call.time.end : call.time.begin;
}

memory_call call_of(const trace::trace& events, trace::row index, const verb_and_kind& meaning) {
  memory_call made{.event = index,
                   .verb = meaning.verb,
                   .kind = meaning.kind,
                   .time = {events.begin(index), events.end(index)},
                   .status = events.status(index)};
  if (const auto* const details = events.details(index)) {
    // A null pointer is no memory: freeing it does nothing.
    if (details->destination_address.value_or(0) != 0) {
      made.address = details->destination_address;
    }
    made.found = details->destination_kind;
    if (made.verb == memory_verb::allocate && made.found != memory_kind::unknown) {
      made.kind = made.found;
    }
    made.bytes = details->bytes;
    made.flags = details->flags;
  }
  return made;
}

}  // namespace

std::vector<memory_call> memory_calls_of(const trace::trace& events) {
  meanings known(events);
  std::vector<memory_call> calls;
  for (trace::row index = 0; index < events.size(); ++index) {
    const auto kind = events.kind(index);
    if (kind != trace::event_kind::allocation && kind != trace::event_kind::free &&
        kind != trace::event_kind::other_call) {
      continue;
    }
    if (const auto& meaning = known.of(events.name(index))) {
      calls.push_back(call_of(events, index, *meaning));
    } else if (kind != trace::event_kind::other_call) {
      // By another name, but the source knows what it does: cuMemMap, cuArrayDestroy.
      const auto verb =
          kind == trace::event_kind::allocation ? memory_verb::allocate : memory_verb::release;
      calls.push_back(call_of(events, index, {verb, memory_kind::unknown}));
    }
  }
  std::stable_sort(calls.begin(), calls.end(), [](const memory_call& a, const memory_call& b) {
    return time_of_effect(a) < time_of_effect(b);
  });
  return calls;
}

std::vector<memory_life> lives_of(std::span<const memory_call> calls) {
  std::vector<memory_life> lives;
  std::unordered_map<std::uint64_t, std::size_t> open;  // by address: the life
  for (std::size_t index = 0; index < calls.size(); ++index) {
    const auto& call = calls[index];
    if (!call.address || call.status != 0) {
      continue;
    }
    if (call.gives()) {
      if (const auto [place, is_new] = open.try_emplace(*call.address, lives.size()); !is_new) {
        lives[place->second].taken = index;
        place->second = lives.size();
      }
      lives.push_back({index});
    } else if (call.takes()) {
      if (const auto found = open.find(*call.address); found != open.end()) {
        lives[found->second].taken = index;
        open.erase(found);
      }
    }
  }
  return lives;
}

interval recorded_time(const trace::trace& events) {
  interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (trace::row index = 0; index < events.size(); ++index) {
    all.begin = std::min(all.begin, events.begin(index));
    all.end = std::max(all.end, events.end(index));
  }
  return events.empty() ? interval{0, 0} : all;
}

interval time_of_work(const workload& work) {
  const auto& events = work.events();
  interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (trace::row index = 0; index < events.size(); ++index) {
    if (is_device_activity(events.kind(index))) {
      all.begin = std::min(all.begin, events.begin(index));
      all.end = std::max(all.end, events.end(index));
    }
  }
  return all.begin < all.end ? all : recorded_time(events);
}

double share_of(std::int64_t part, std::int64_t whole) noexcept {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

bytes_t saturating_product(bytes_t bytes, std::uint64_t count) noexcept {
  constexpr auto most = std::numeric_limits<bytes_t>::max();
  return count != 0 && bytes > most / count ? most : bytes * count;
}

std::string describe_call(const workload& work, trace::row call) {
  const auto& events = work.events();
  std::string text(events.name_text(call));
  const auto* const site = events.site(call);
  const auto place = site != nullptr ? place_in(events, *site) : stack_place{};
  return place.is_known() ? text + " at " + describe(events, place) : text;
}

bool has_facts(const workload& work) noexcept {
  return !work.events().about.facts.empty();
}

std::optional<std::string_view> fact(const workload& work, std::string_view key) {
  const auto& facts = work.events().about.facts;
  const auto found = facts.find(key);
  return found != facts.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
}

std::optional<std::int32_t> node_of_device(const workload& work, std::uint32_t device) {
  // What the recorder could watch stands under "coverage".
  auto text = fact(work, fmt::format("coverage.device.{}.numa_node", device));
  if (!text) {
    text = fact(work, fmt::format("device.{}.numa_node", device));
  }
  std::int32_t node = -1;
  if (!text) {
    const auto known = work.machine() != nullptr ? work.machine()->node_of(device) : std::nullopt;
    return known ? std::optional(static_cast<std::int32_t>(*known)) : std::nullopt;
  }
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), node);
  return error == std::errc() && end == text->data() + text->size() && node >= 0
             ? std::optional(node)
             : std::nullopt;
}

bool is_remote(const workload& work, const copy& which) {
  const auto host = which.details->host_node;
  const auto own = host.value_or(-1) >= 0 ? node_of_device(work, which.device) : std::nullopt;
  return own && *own != *host;
}

}  // namespace berth::diagnose
