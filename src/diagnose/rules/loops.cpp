// SPDX-License-Identifier: Apache-2.0
// Memory that is allocated or pinned over and over: each such call costs the host its time, and a
// pool, or a buffer that is kept, would have had the memory.
//
// What a pool would have saved is counted as a pool works: a call that gives memory of a kind and
// size counts if memory of the same kind and size was given back before and is not in use again.
// So neither many buffers that live side by side nor those that a program starts with are a loop.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr std::uint64_t fewest_repeats = 8;
// A pool gives memory again in about half of this (docs/performance.md).
constexpr std::int64_t pool_ns = 1000;

using shape = std::tuple<memory_verb, memory_kind, bytes_t>;

// Of one shape: calls that gave memory which a pool would have had, and the calls that gave that
// memory back.
struct repeats {
  std::uint64_t count = 0;
  std::size_t example = never;
  std::vector<std::size_t> calls;
};

// Stream-ordered allocation is a pool already.
bool is_pooled(const workload& work, const memory_call& call) {
  const auto name = work.events().name_text(call.event);
  return name.find("Async") != std::string_view::npos ||
         name.find("Pool") != std::string_view::npos;
}

std::map<shape, repeats> repeats_of(const workload& work, std::span<const memory_call> calls) {
  const auto lives = lives_of(calls);
  std::vector<std::optional<shape>> shapes(calls.size());  // by call: what it gives or takes
  for (const auto& life : lives) {
    const auto& given = calls[life.given];
    if (given.bytes && !is_pooled(work, given)) {
      shapes[life.given] = shape{given.verb, given.kind, *given.bytes};
      if (life.taken != never && calls[life.taken].takes()) {
        shapes[life.taken] = shapes[life.given];
      }
    }
  }
  std::map<shape, std::vector<std::size_t>> unused;  // by shape: the calls that gave it back
  std::map<shape, repeats> found;
  for (std::size_t index = 0; index < calls.size(); ++index) {
    if (!shapes[index]) {
      continue;
    }
    auto& spare = unused[*shapes[index]];
    if (calls[index].takes()) {
      spare.push_back(index);
    } else if (!spare.empty()) {
      auto& all = found[*shapes[index]];
      ++all.count;
      all.example = index;
      all.calls.insert(all.calls.end(), {spare.back(), index});
      spare.pop_back();
    }
  }
  return found;
}

struct loop_cost {
  std::uint64_t count = 0;   // calls that gave memory again
  std::int64_t wall_ns = 0;  // with those that gave it back; threads side by side count once
  std::vector<place> places;
};

loop_cost cost_of_loops(const workload& work) {
  const auto calls = memory_calls_of(work.events());
  const auto found = repeats_of(work, calls);
  const auto window = time_of_work(work);
  std::vector<interval> all;
  loop_cost cost;
  for (const auto& [what, repeated] : found) {
    if (repeated.count < fewest_repeats) {
      continue;
    }
    cost.count += repeated.count;
    std::int64_t time = 0;
    for (const auto index : repeated.calls) {
      const auto& call = calls[index].time;
      const interval inside{std::max(call.begin, window.begin), std::min(call.end, window.end)};
      if (inside.begin < inside.end) {
        all.push_back(inside);
        time += inside.length();
      }
    }
    const auto bytes = std::get<bytes_t>(what);
    cost.places.push_back(
        {fmt::format("{} of {}", describe_call(work, calls[repeated.example].event),
                     format_bytes(bytes)),
         repeated.count, saturating_product(bytes, repeated.count), time, counted::calls});
  }
  cost.wall_ns = interval_set(std::move(all)).length();
  std::stable_sort(cost.places.begin(), cost.places.end(),
                   [](const place& a, const place& b) { return a.time_ns > b.time_ns; });
  return cost;
}

constexpr wording keep{
    .pytorch =
        "Keep the tensors: pin_memory() once and copy_() into them, or let "
        "DataLoader(pin_memory=True) keep its buffers; do not call torch.cuda.empty_cache() in "
        "the loop.",
    .hip =
        "Allocate before the loop and keep the memory, or take it from a pool: hipMallocAsync for "
        "device memory, a pool on hipHostMalloc for pinned memory (docs/memory.md). Register "
        "memory once for as long as it lives, not for each copy.",
    .cuda =
        "Allocate before the loop and keep the memory, or take it from a pool: cudaMallocAsync for "
        "device memory, a pool on cudaMallocHost for pinned memory (docs/memory.md). Register "
        "memory once for as long as it lives, not for each copy."};

}  // namespace

void find_allocation_in_a_loop(const workload& work, std::vector<finding>& findings) {
  auto cost = cost_of_loops(work);
  const auto pool = pool_ns * static_cast<std::int64_t>(cost.count);
  const auto saved = std::max<std::int64_t>(0, cost.wall_ns - pool);
  const auto share = share_of(saved, time_of_work(work).length());
  if (cost.count == 0 || share < small_share) {
    return;
  }
  const auto each = cost.wall_ns / static_cast<std::int64_t>(cost.count);
  const auto shapes = cost.places.size();
  cost.places.resize(std::min<std::size_t>(shapes, 3));
  findings.push_back(
      {.rule = "allocation-in-a-loop",
       .severity = share >= fault_share ? severity::fault : severity::advice,
       .headline = fmt::format(
           "Memory is allocated or pinned {} times though memory of the same kind and size has "
           "just been given back: {} of host time, {} each with its release.",
           cost.count, milliseconds(cost.wall_ns), milliseconds(each)),
       .evidence = {{"repeated calls", static_cast<double>(cost.count), unit::count},
                    {"kinds and sizes", static_cast<double>(shapes), unit::count},
                    {"host time", static_cast<double>(cost.wall_ns), unit::nanoseconds},
                    {"time each", static_cast<double>(each), unit::nanoseconds},
                    {"time each from a pool", static_cast<double>(pool_ns), unit::nanoseconds,
                     provenance::nominal}},
       .places = std::move(cost.places),
       .lost_ns = saved,
       .saving = saving{saved, bound::at_most, provenance::modelled,
                        "if a pool gives the memory in a microsecond, and the program waits for "
                        "these calls"},
       .fix = {in_terms_of(work, keep)},
       .gains = {}});
}

}  // namespace berth::diagnose
