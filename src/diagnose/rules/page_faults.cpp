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
#include <unordered_map>
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

// What moved one way.
struct moved_pages {
  std::uint64_t count = 0;
  bytes_t bytes = 0;

  void add(std::optional<bytes_t> more) noexcept {
    ++count;
    bytes += std::min(more.value_or(0), ~bytes_t{0} - bytes);
  }
};

struct moves {
  moved_pages to_device;  // all of them, by faults or not
  moved_pages to_host;
  moved_pages by_faults;  // to the device while kernels ran there
  std::vector<interval> times;
  std::map<std::uint32_t, std::vector<interval>> faults;  // by device
};

moves moves_of(const workload& work) {
  const auto& events = work.events();
  moves all;
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
        all.faults[device].push_back(time);
      }
    }
  }
  return all;
}

// With pauses that are short enough filled in.
interval_set with_pauses(std::vector<interval> times) {
  std::sort(times.begin(), times.end(),
            [](const interval& a, const interval& b) { return a.begin < b.begin; });
  for (std::size_t next = 1; next < times.size(); ++next) {
    auto& before = times[next - 1];
    if (times[next].begin - before.end <= longest_pause_ns) {
      before.end = std::max(before.end, times[next].begin);
    }
  }
  return interval_set(std::move(times));
}

struct waiting_kernels {
  std::map<std::uint32_t, interval_set> by_device;  // when they waited
  std::int64_t wall_ns = 0;
  std::uint64_t count = 0;
  std::vector<place> places;
};

// The calls that asked for kernels, by the recorder's number.
std::unordered_map<std::uint64_t, trace::row> launches_of(const trace::trace& events) {
  std::unordered_map<std::uint64_t, trace::row> launches;
  for (trace::row index = 0; index < events.size(); ++index) {
    const auto number = events.correlation(index);
    if (number && events.kind(index) == trace::event_kind::launch_call) {
      launches.insert_or_assign(*number, index);
    }
  }
  return launches;
}

// Kernels of one name and one place in the program together.
class kernel_places {
public:
  explicit kernel_places(const workload& work)
      : work_(work), launches_(launches_of(work.events())) {}

  void add(trace::row kernel, std::int64_t waited_ns) {
    const auto& events = work_.events();
    const auto number = events.correlation(kernel);
    const auto launch = number ? launches_.find(*number) : launches_.end();
    const auto call = launch != launches_.end() ? launch->second : trace::no_row;
    const auto* const site = call != trace::no_row ? events.site(call) : nullptr;
    auto& sum = sums_[{events.name(kernel), site}];
    sum.call = call;
    ++sum.count;
    sum.time_ns += waited_ns;
  }

  [[nodiscard]] std::vector<place> largest() const {
    constexpr std::size_t most = 3;
    std::vector<place> places;
    for (const auto& [key, sum] : sums_) {
      auto where = fmt::format("kernel {}", work_.events().text(key.first));
      if (sum.call != trace::no_row) {
        where += ", " + describe_call(work_, sum.call);
      }
      places.push_back({std::move(where), sum.count, std::nullopt, sum.time_ns, counted::calls});
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const place& a, const place& b) { return a.time_ns > b.time_ns; });
    places.resize(std::min(places.size(), most));
    return places;
  }

private:
  struct sum_of_kernels {
    trace::row call = trace::no_row;
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
  };
  const workload& work_;
  std::unordered_map<std::uint64_t, trace::row> launches_;
  std::map<std::pair<trace::name_id, const trace::call_site*>, sum_of_kernels> sums_;
};

waiting_kernels waiting_for(const workload& work, moves& all) {
  waiting_kernels waiting;
  std::vector<interval> everywhere;
  for (auto& [device, times] : all.faults) {
    auto waits = intersected(with_pauses(std::move(times)), work.kernels_of(device));
    everywhere.insert(everywhere.end(), waits.parts().begin(), waits.parts().end());
    waiting.by_device.emplace(device, std::move(waits));
  }
  waiting.wall_ns = interval_set(std::move(everywhere)).length();
  const auto& events = work.events();
  kernel_places places(work);
  for (trace::row index = 0; index < events.size(); ++index) {
    if (events.kind(index) != trace::event_kind::kernel) {
      continue;
    }
    const auto found = waiting.by_device.find(events.stream_of(index).device.value_or(no_device));
    const auto waited = found != waiting.by_device.end()
                            ? found->second.covered({events.begin(index), events.end(index)})
                            : 0;
    if (waited > 0) {
      ++waiting.count;
      places.add(index, waited);
    }
  }
  waiting.places = places.largest();
  return waiting;
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
std::optional<double> times_over(const workload& work, const moves& all) {
  const auto managed = managed_bytes(work.events());
  return managed > 0 ? std::optional(static_cast<double>(all.to_device.bytes) /
                                     static_cast<double>(managed))
                     : std::nullopt;
}

bool go_to_and_fro(const moves& all, std::optional<double> times, std::uint64_t kernels) {
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

std::string sentence_on_faults(const moves& all, const waiting_kernels& waiting, bool to_and_fro) {
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

std::vector<measure> evidence_of_moves(const workload& work, const moves& all,
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
std::optional<saving> saving_by_prefetch(const workload& work, const moves& all,
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
  auto all = moves_of(work);
  const auto waiting = waiting_for(work, all);
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
  findings.push_back({.rule = "managed-page-faults",
                      .severity = is_most_of_kernels && share >= material_share ? severity::fault
                                                                                : severity::advice,
                      .headline = sentence_on_faults(all, waiting, to_and_fro),
                      .evidence = evidence_of_moves(work, all, waiting, times),
                      .places = waiting.places,
                      .lost_ns = waiting.wall_ns,
                      .saving = saved,
                      .fix = std::move(fix),
                      .gains = {}});
}

}  // namespace berth::diagnose
