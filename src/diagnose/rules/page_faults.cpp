// SPDX-License-Identifier: Apache-2.0
// Managed memory that moves by page faults: kernels stop at each page that is not there yet, and
// where host and GPU use the memory in turns, all of it moves again each time (the second symptom,
// on GPUs that migrate).
//
// Faults are served in batches, and between two batches the kernel waits for the driver: the time
// from the first to the last migration of a row without a longer pause counts as waiting, as far as
// kernels ran in it. A prefetch beside kernels moves pages, too, but at a rate that faults never
// reach.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

// Between batches of faults an H200 pauses for 20 to 100 us.
constexpr std::int64_t longest_pause_ns = 100'000;
constexpr double times_to_and_fro = 2.0;

struct page_fault {
  interval time;
  bytes_t bytes;
};

// What moved one way.
struct moved_pages {
  std::uint64_t count = 0;
  bytes_t bytes = 0;

  void add(std::optional<bytes_t> more) noexcept {
    ++count;
    bytes += std::min(more.value_or(0), ~bytes_t{0} - bytes);
  }
};

struct page_moves {
  moved_pages to_device;  // all of them, by faults or not
  moved_pages to_host;
  moved_pages by_faults;  // to the device while kernels ran there
  std::vector<interval> times;
  std::map<std::uint32_t, std::vector<page_fault>> faults;  // by device and ascending begin
};

page_moves moves_of(const workload& work) {
  const auto& events = work.events();
  page_moves all;
  for (trace::row index = 0; index < events.size(); ++index) {
    const auto* const details = events.details(index);
    if (events.kind(index) != trace::event_kind::migration || details == nullptr) {
      continue;
    }
    const interval time{events.begin(index), events.end(index)};
    all.times.push_back(time);
    if (details->direction == direction::device_to_host) {
      all.to_host.add(details->bytes);
    } else if (details->direction == direction::host_to_device) {
      const auto device = events.stream_of(index).device.value_or(no_device);
      all.to_device.add(details->bytes);
      if (work.kernels_of(device).covered(time) > 0) {
        all.by_faults.add(details->bytes);
        all.faults[device].push_back({time, details->bytes.value_or(0)});
      }
    }
  }
  for (auto& [device, faults] : all.faults) {
    std::stable_sort(faults.begin(), faults.end(), [](const page_fault& a, const page_fault& b) {
      return a.time.begin < b.time.begin;
    });
  }
  return all;
}

// With pauses that are short enough filled in.
interval_set with_pauses(const std::vector<page_fault>& faults) {
  std::vector<interval> times;
  for (const auto& [time, bytes] : faults) {
    if (!times.empty() && time.begin - times.back().end <= longest_pause_ns) {
      times.back().end = std::max(times.back().end, time.end);
    } else {
      times.push_back(time);
    }
  }
  return interval_set(std::move(times));
}

// Of those that begin within the time.
bytes_t bytes_within(const std::vector<page_fault>& faults, interval window) {
  const auto first = std::lower_bound(
      faults.begin(), faults.end(), window.begin,
      [](const page_fault& one, std::int64_t time) { return one.time.begin < time; });
  bytes_t bytes = 0;
  for (auto fault = first; fault != faults.end() && fault->time.begin < window.end; ++fault) {
    bytes += std::min(fault->bytes, ~bytes_t{0} - bytes);
  }
  return bytes;
}

struct waiting_kernels {
  std::map<std::uint32_t, interval_set> by_device;  // when they waited
  std::int64_t wall_ns = 0;
  std::uint64_t count = 0;
  std::vector<place> places;
};

void keep_longest(std::vector<place>& places, std::size_t most) {
  std::stable_sort(places.begin(), places.end(),
                   [](const place& a, const place& b) { return a.time_ns > b.time_ns; });
  places.resize(std::min(places.size(), most));
}

waiting_kernels waiting_for(const workload& work, const page_moves& all) {
  waiting_kernels waiting;
  std::vector<interval> everywhere;
  for (const auto& [device, faults] : all.faults) {
    auto waits = intersected(with_pauses(faults), work.kernels_of(device));
    everywhere.insert(everywhere.end(), waits.parts().begin(), waits.parts().end());
    waiting.by_device.emplace(device, std::move(waits));
  }
  waiting.wall_ns = interval_set(std::move(everywhere)).length();
  const auto& events = work.events();
  std::map<trace::name_id, place> by_name;
  for (trace::row index = 0; index < events.size(); ++index) {
    const auto device = events.stream_of(index).device.value_or(no_device);
    const auto found = waiting.by_device.find(device);
    if (events.kind(index) != trace::event_kind::kernel || found == waiting.by_device.end()) {
      continue;
    }
    const interval time{events.begin(index), events.end(index)};
    if (const auto waited = found->second.covered(time); waited > 0) {
      auto& sum = by_name
                      .try_emplace(events.name(index),
                                   place{fmt::format("kernel {}", events.name_text(index)), 0,
                                         bytes_t{0}, 0, counted::calls})
                      .first->second;
      ++waiting.count;
      ++sum.count;
      sum.time_ns += waited;
      *sum.bytes += bytes_within(all.faults.at(device), time);
    }
  }
  constexpr std::size_t most = 3;
  for (auto& [name, sum] : by_name) {
    waiting.places.push_back(std::move(sum));
  }
  keep_longest(waiting.places, most);
  return waiting;
}

// Where the memory comes from: launches of kernels have no stacks.
std::vector<place> places_of_allocations(const workload& work) {
  constexpr std::size_t most = 2;
  std::map<std::string, place> by_place;
  for (const auto& call : memory_calls_of(work.events())) {
    if (call.verb != memory_verb::allocate || call.status != 0 ||
        call.kind != memory_kind::managed) {
      continue;
    }
    auto where = describe_call(work, call.event);
    auto& sum =
        by_place.try_emplace(where, place{where, 0, bytes_t{0}, 0, counted::calls}).first->second;
    ++sum.count;
    *sum.bytes += std::min(call.bytes.value_or(0), ~bytes_t{0} - *sum.bytes);
    sum.time_ns += call.time.length();
  }
  std::vector<place> places;
  for (auto& [where, sum] : by_place) {
    places.push_back(std::move(sum));
  }
  keep_longest(places, most);
  return places;
}

bytes_t managed_bytes(const trace::trace& events) {
  bytes_t all = 0;
  for (const auto& call : memory_calls_of(events)) {
    if (call.verb == memory_verb::allocate && call.status == 0 &&
        call.kind == memory_kind::managed) {
      all += std::min(call.bytes.value_or(0), ~bytes_t{0} - all);
    }
  }
  return all;
}

// How many times as much as there is went to the device; nothing where that is not known.
std::optional<double> times_over(const workload& work, const page_moves& all) {
  const auto managed = managed_bytes(work.events());
  return managed > 0 ? std::optional(static_cast<double>(all.to_device.bytes) /
                                     static_cast<double>(managed))
                     : std::nullopt;
}

bool go_to_and_fro(const page_moves& all, std::optional<double> times, std::uint64_t kernels) {
  return all.to_host.bytes >= all.to_device.bytes / 2 &&
         (times ? *times >= times_to_and_fro : kernels > 1);
}

std::optional<machine::estimate> time_of_prefetch(const workload& work, machine::operation which,
                                                  bytes_t bytes) {
  const auto* const profile = work.expected().profile();
  return profile != nullptr && bytes > 0 ? profile->expected_time(which, bytes) : std::nullopt;
}

double rate_of_moves(bytes_t bytes, std::int64_t time_ns) {
  return time_ns > 0 ? gb_per_s(bytes, std::chrono::nanoseconds(time_ns)) : 0.0;
}

void add_rate_of_prefetch(const workload& work, machine::operation which, std::string name,
                          bytes_t bytes, std::vector<measure>& evidence) {
  const auto time = time_of_prefetch(work, which, bytes);
  if (time && time->time.count() > 0) {
    evidence.push_back({std::move(name), gb_per_s(bytes, time->time), unit::gb_per_s, time->known});
  }
}

constexpr wording prefetch_it{
    .pytorch =
        "Managed memory comes from an extension or an allocator (RMM, CuPy's malloc_managed): use "
        "plain CUDA tensors, or prefetch before the GPU's part, and back before the host's.",
    .hip =
        "Move it in one go: hipMemPrefetchAsync to the device before the kernels, and to "
        "hipCpuDeviceId before the host's part. Where one side alone uses the data for long: "
        "hipMalloc and one hipMemcpy.",
    .cuda =
        "Move it in one go: cudaMemPrefetchAsync to the device before the kernels, and to "
        "cudaCpuDeviceId before the host's part. Where one side alone uses the data for long: "
        "cudaMalloc and one cudaMemcpy."};

constexpr wording divide_it{
    .pytorch = "Do the host's part on the GPU, so that the data stays there.",
    .hip =
        "The same pages go to and fro: give the data one owner, do the host's part in a kernel, "
        "or divide it into what the host and what the GPU uses.",
    .cuda =
        "The same pages go to and fro: give the data one owner, do the host's part in a kernel, "
        "or divide it into what the host and what the GPU uses."};

std::string sentence_on_faults(const page_moves& all, const waiting_kernels& waiting,
                               bool to_and_fro) {
  auto text = fmt::format(
      "Managed memory moves by page faults: {} {} {} in all for {} migrations that bring {} at {}",
      waiting.count, waiting.count == 1 ? "kernel waits" : "kernels wait",
      milliseconds(waiting.wall_ns), all.by_faults.count, format_bytes(all.by_faults.bytes),
      format_rate(rate_of_moves(all.by_faults.bytes, waiting.wall_ns)));
  if (to_and_fro) {
    text += fmt::format("; {} go back to the host, so the same pages go to and fro",
                        format_bytes(all.to_host.bytes));
  }
  return text + ".";
}

std::vector<measure> evidence_of_moves(const workload& work, const page_moves& all,
                                       const waiting_kernels& waiting,
                                       std::optional<double> times) {
  using machine::operation;
  std::vector<measure> evidence{
      {"migrations", static_cast<double>(all.times.size()), unit::count},
      {"bytes to the GPU", static_cast<double>(all.to_device.bytes), unit::bytes},
      {"bytes to the host", static_cast<double>(all.to_host.bytes), unit::bytes},
      {"time of migrations", static_cast<double>(interval_set(all.times).length()),
       unit::nanoseconds},
      {"kernels that wait", static_cast<double>(waiting.count), unit::count},
      {"waiting", static_cast<double>(waiting.wall_ns), unit::nanoseconds},
      {"rate reached", rate_of_moves(all.by_faults.bytes, waiting.wall_ns), unit::gb_per_s}};
  add_rate_of_prefetch(work, operation::managed_prefetch_to_device, "prefetch to the GPU",
                       all.by_faults.bytes, evidence);
  add_rate_of_prefetch(work, operation::managed_prefetch_to_host, "prefetch to the host",
                       all.to_host.bytes, evidence);
  if (times) {
    evidence.push_back({"times all of it moved to the GPU", std::round(*times), unit::count});
  }
  return evidence;
}

// Against a prefetch of what the faults brought. What the host waits for its own faults is not in a
// trace, and not counted.
std::optional<saving> saving_by_prefetch(const workload& work, const page_moves& all,
                                         const waiting_kernels& waiting) {
  const auto time =
      time_of_prefetch(work, machine::operation::managed_prefetch_to_device, all.by_faults.bytes);
  if (!time) {
    return std::nullopt;
  }
  return saving{
      std::max<std::int64_t>(0, waiting.wall_ns - time->time.count()), bound::at_most,
      provenance::modelled,
      fmt::format("one prefetch to the GPU before each kernel, at {} ({})",
                  format_rate(gb_per_s(all.by_faults.bytes, time->time)), to_string(time->known))};
}

}  // namespace

void find_managed_page_faults(const workload& work, std::vector<finding>& findings) {
  const auto all = moves_of(work);
  auto waiting = waiting_for(work, all);
  const auto saved = saving_by_prefetch(work, all, waiting);
  const auto share = work.share_of_span(waiting.wall_ns);
  const auto at_stake = saved ? saved->time_ns : waiting.wall_ns;
  const bool at_rate_of_prefetch =
      saved && static_cast<double>(saved->time_ns) <=
                   (1.0 - slow_ratio) * static_cast<double>(waiting.wall_ns);
  if (waiting.count == 0 || at_rate_of_prefetch || work.share_of_span(at_stake) < small_share) {
    return;
  }
  const auto times = times_over(work, all);
  const bool to_and_fro = go_to_and_fro(all, times, waiting.count);
  const bool is_most_of_kernels = static_cast<double>(waiting.wall_ns) >
                                  symptom_ratio * static_cast<double>(work.totals().kernel_busy_ns);
  std::vector<std::string> fix{in_terms_of(work, prefetch_it)};
  if (to_and_fro) {
    fix.push_back(in_terms_of(work, divide_it));
  }
  auto places = std::move(waiting.places);
  for (auto& given : places_of_allocations(work)) {
    places.push_back(std::move(given));
  }
  findings.push_back({.rule = "managed-page-faults",
                      .severity = is_most_of_kernels && share >= material_share ? severity::fault
                                                                                : severity::advice,
                      .headline = sentence_on_faults(all, waiting, to_and_fro),
                      .evidence = evidence_of_moves(work, all, waiting, times),
                      .places = std::move(places),
                      .lost_ns = waiting.wall_ns,
                      .saving = saved,
                      .fix = std::move(fix),
                      .gains = {}});
}

}  // namespace berth::diagnose
