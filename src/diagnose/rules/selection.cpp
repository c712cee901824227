// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace berth::diagnose {
namespace {

// Copies with the same key are of the same place, without building its text for each.
using place_key = std::tuple<trace::name_id, stack_place>;

place_key key_of(const workload& work, const copy& which) {
  const auto& events = work.events();
  const auto source =
      which.framework_operator != trace::no_row ? which.framework_operator : which.call;
  return {source != trace::no_row ? events.name(source) : 0, which.place};
}

}  // namespace

bool is_tiny(const copy& which) noexcept {
  return which.details->bytes && *which.details->bytes <= tiny_bytes;
}

bool is_host_copy(const copy& which) noexcept {
  return which.details->direction == direction::host_to_device ||
         which.details->direction == direction::device_to_host;
}

bool is_timed(const copy& which) noexcept {
  return which.details->time != trace::timing::unknown;
}

bool is_of_file(const copy& which) noexcept {
  return which.details->pages == trace::host_pages::of_file;
}

bool is_fixed(const copy& which) noexcept {
  return which.details->by == trace::carrier::copy_engine;
}

bool has_failed(const workload& work, const copy& which) noexcept {
  const auto& events = work.events();
  return events.status(which.event) != 0 ||
         (which.call != trace::no_row && events.status(which.call) != 0);
}

std::optional<double> sums::working_rate() const noexcept {
  if (without_bytes == count || rated_working_ns <= 0) {
    return std::nullopt;
  }
  return gb_per_s(rated_bytes, std::chrono::nanoseconds(rated_working_ns));
}

sums sum_of(const workload& work, const selection& chosen) {
  sums total;
  std::map<std::uint32_t, std::vector<interval>> by_device;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    ++total.count;
    total.duration_ns += which.duration();
    total.working_ns += which.working_ns();
    if (which.details->bytes) {
      total.bytes += *which.details->bytes;
    } else {
      ++total.without_bytes;
    }
    if (!is_timed(which)) {
      ++total.untimed;
      continue;
    }
    total.timed_by_device += which.details->time == trace::timing::device ? 1U : 0U;
    if (which.details->bytes) {
      total.rated_bytes += *which.details->bytes;
      total.rated_working_ns += which.working_ns();
    }
    by_device[which.device].push_back(working_interval(which));
  }
  std::vector<interval> everywhere;
  for (auto& [device, parts] : by_device) {
    const interval_set busy(std::move(parts));
    total.busy_ns += busy.length();
    everywhere.insert(everywhere.end(), busy.parts().begin(), busy.parts().end());
  }
  total.wall_ns = interval_set(std::move(everywhere)).length();
  return total;
}

std::vector<measure> evidence_of(const sums& total) {
  std::vector<measure> evidence{{"copies", static_cast<double>(total.count), unit::count}};
  if (total.without_bytes < total.count) {
    evidence.push_back({"bytes", static_cast<double>(total.bytes), unit::bytes});
  }
  if (total.without_bytes > 0) {
    evidence.push_back(
        {"copies of unknown bytes", static_cast<double>(total.without_bytes), unit::count});
  }
  if (total.untimed > 0) {
    evidence.push_back({"copies of unknown time", static_cast<double>(total.untimed), unit::count});
  }
  if (total.untimed < total.count || total.count == 0) {
    evidence.push_back({"time", static_cast<double>(total.wall_ns), unit::nanoseconds});
  }
  if (const auto rate = total.working_rate()) {
    evidence.push_back({"rate reached", *rate, unit::gb_per_s});
  }
  return evidence;
}

std::optional<double> ratio_to_kernels(const workload& work, const sums& total) noexcept {
  const auto kernels = work.totals().kernel_busy_ns;
  return kernels > 0
             ? std::optional(static_cast<double>(total.busy_ns) / static_cast<double>(kernels))
             : std::nullopt;
}

bool is_symptom(const workload& work, const sums& total) {
  if (const auto ratio = ratio_to_kernels(work, total)) {
    return *ratio > symptom_ratio;
  }
  const auto rest = 1.0 - work.share_of_span(total.wall_ns);
  return !kernel_order(work).without_times() ||
         work.share_of_span(total.wall_ns) > symptom_ratio * rest;
}

std::vector<place> places_of(const workload& work, const selection& chosen, std::size_t most) {
  struct entry {
    place sum;
    std::uint32_t example;
  };
  std::map<place_key, entry> by_key;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    auto& [sum, example] =
        by_key.try_emplace(key_of(work, which), entry{{{}, 0, bytes_t{0}, 0}, index}).first->second;
    ++sum.count;
    sum.time_ns += which.duration();
    if (sum.bytes && which.details->bytes) {
      *sum.bytes += *which.details->bytes;
    } else {
      sum.bytes.reset();
    }
  }
  std::vector<entry> entries;
  for (auto& [key, value] : by_key) {
    entries.push_back(std::move(value));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const entry& a, const entry& b) { return a.sum.time_ns > b.sum.time_ns; });
  entries.resize(std::min(entries.size(), most));
  std::vector<place> places;
  for (auto& [sum, example] : entries) {
    sum.where = work.describe_place(work.copies()[example]);
    places.push_back(std::move(sum));
  }
  return places;
}

namespace {

// What copies of one device gain, before it is known how much of that is wall time.
struct device_gains {
  std::vector<interval> working;
  std::int64_t needed_ns = 0;  // what remains of the copies
  std::int64_t sum_ns = 0;     // of the gains of each
};

// Turns what each copy would gain alone into what they gain together. On one link the time that
// remains is a sum; devices that copy side by side share the wall time.
void share_wall_time(const workload& work, std::map<std::uint32_t, device_gains>& devices,
                     gains& found) {
  std::map<std::uint32_t, double> factors;
  std::vector<interval> everywhere;
  std::int64_t busy_sum = 0;
  for (auto& [device, sums] : devices) {
    const interval_set busy(std::move(sums.working));
    const auto saved = std::clamp<std::int64_t>(busy.length() - sums.needed_ns, 0, sums.sum_ns);
    factors[device] =
        sums.sum_ns > 0 ? static_cast<double>(saved) / static_cast<double>(sums.sum_ns) : 0.0;
    busy_sum += busy.length();
    everywhere.insert(everywhere.end(), busy.parts().begin(), busy.parts().end());
  }
  const auto wall = interval_set(std::move(everywhere)).length();
  const double side_by_side =
      busy_sum > 0 ? static_cast<double>(wall) / static_cast<double>(busy_sum) : 0.0;
  for (auto& [copy, time] : found.each) {
    const double factor = factors[work.copies()[copy].device] * side_by_side;
    // Exact where nothing is shared: a double holds only 53 bits of a time.
    if (factor < 1.0) {
      time = static_cast<std::int64_t>(static_cast<double>(time) * factor);
    }
    found.total_ns += time;
  }
  std::erase_if(found.each, [](const gain& one) { return one.time_ns <= 0; });
}

// `remaining` gives the time in ns that is left of a copy, or nothing where it is not known.
template <typename Remaining>
gains gains_of(const workload& work, const selection& chosen, Remaining remaining) {
  gains found;
  std::map<std::uint32_t, device_gains> devices;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    const std::optional<double> expected = is_timed(which) ? remaining(which) : std::nullopt;
    if (!expected) {
      continue;
    }
    ++found.known;
    found.expected_ns += *expected;
    const auto working = which.working_ns();
    const auto left = *expected < static_cast<double>(working) ? std::llround(*expected) : working;
    auto& sums = devices[which.device];
    sums.working.push_back(working_interval(which));
    sums.needed_ns += left;
    sums.sum_ns += working - left;
    found.each.push_back({index, working - left});
  }
  share_wall_time(work, devices, found);
  return found;
}

}  // namespace

gains gains_against(const workload& work, const selection& chosen, host_end end, double reached) {
  return gains_of(work, chosen, [&](const copy& which) -> std::optional<double> {
    if (!which.details->bytes) {
      return std::nullopt;
    }
    const auto time = work.expected().time_ns(which.details->direction, end, *which.details->bytes);
    return time ? std::optional(*time / reached) : std::nullopt;
  });
}

gains gains_to(const workload& work, const selection& chosen,
               const std::function<std::optional<double>(const copy&)>& remaining) {
  return gains_of(work, chosen, remaining);
}

gains gains_without(const workload& work, const selection& chosen) {
  return gains_of(work, chosen, [](const copy&) { return std::optional(0.0); });
}

bool at_link_rate(const workload& work, const selection& chosen) {
  const auto found = gains_against(work, chosen, host_end::pinned);
  const auto working = static_cast<double>(sum_of(work, chosen).working_ns);
  return working > 0 && found.known == chosen.size() &&
         found.expected_ns >= link_rate_ratio * working;
}

kernel_order::kernel_order(const workload& work) : work_(&work) {
  const auto& events = work.events();
  if (work.totals().kernels > 0) {
    return;
  }
  for (trace::row index = 0; index < events.size(); ++index) {
    if (events.kind(index) == trace::event_kind::launch_call && events.status(index) == 0) {
      launches_.push_back(events.begin(index));
    }
  }
  std::sort(launches_.begin(), launches_.end());
}

bool kernel_order::any_between(std::uint32_t device, interval window) const {
  const auto next = std::lower_bound(launches_.begin(), launches_.end(), window.begin);
  return (next != launches_.end() && *next < window.end) ||
         work_->kernels_of(device).covered(window) > 0;
}

interval_set work_of_device(const workload& work, std::uint32_t device) {
  std::vector<interval> copying;
  for (const auto& which : work.copies()) {
    if (which.device == device) {
      copying.push_back({which.begin, which.end});
    }
  }
  return united(work.kernels_of(device), interval_set(std::move(copying)));
}

bool is_pace_of_cpu(bytes_t bytes, interval time) noexcept {
  // About 10 GB/s, into fresh pages a tenth of that, at best some 20.
  constexpr double slowest = 1.0;
  constexpr double fastest = 25.0;
  if (time.length() <= 0) {
    return false;
  }
  const auto rate = gb_per_s(bytes, std::chrono::nanoseconds(time.length()));
  return rate >= slowest && rate <= fastest;
}

std::int64_t start_of_work(const workload& work, std::uint32_t device) {
  constexpr std::int64_t parts = 50;
  const auto& kernels = work.kernels_of(device);
  std::int64_t left = kernels.length() / parts;
  for (const auto& busy : kernels.parts()) {
    if (busy.length() >= left) {
      return busy.begin + left;
    }
    left -= busy.length();
  }
  return std::numeric_limits<std::int64_t>::max();
}

namespace {

// Where the data of one place on the device is replaced again and again, that is the work.
bool is_input_of_a_loop(const workload& work, const selection& uploads) {
  constexpr std::size_t many = 3;
  std::map<std::pair<std::uint32_t, std::uint64_t>, selection> by_place;
  for (const auto index : uploads) {
    const auto& which = work.copies()[index];
    if (const auto address = which.details->destination_address) {
      by_place[{which.device, *address}].push_back(index);
    }
  }
  const kernel_order kernels(work);
  std::size_t replaced = 0;
  for (const auto& [place, copies] : by_place) {
    std::size_t turns = 0;
    for (std::size_t next = 1; next < copies.size(); ++next) {
      const auto& before = work.copies()[copies[next - 1]];
      const auto& after = work.copies()[copies[next]];
      turns += kernels.any_between(after.device, {before.end, after.begin}) ? 1U : 0U;
    }
    replaced += turns >= many ? copies.size() : 0;
  }
  return replaced * 2 > uploads.size();
}

}  // namespace

selection initial_uploads(const workload& work, bool (*wanted)(memory_kind)) {
  constexpr double nearly_all = 0.9;
  std::map<std::uint32_t, std::int64_t> starts;
  const auto uploads = select(work, [&](const copy& which) {
    return wanted(which.host_kind()) && which.details->direction == direction::host_to_device &&
           !is_tiny(which) && !is_fixed(which);
  });
  selection early;
  for (const auto index : uploads) {
    const auto& which = work.copies()[index];
    const auto [start, is_new] = starts.try_emplace(which.device, 0);
    if (is_new) {
      start->second = start_of_work(work, which.device);
    }
    if (which.begin <= start->second) {
      early.push_back(index);
    }
  }
  const auto all_time = static_cast<double>(sum_of(work, uploads).duration_ns);
  const auto early_time = static_cast<double>(sum_of(work, early).duration_ns);
  return early_time >= nearly_all * all_time && !is_input_of_a_loop(work, early) ? early
                                                                                 : selection{};
}

selection lasting_copies(const workload& work, bool (*wanted)(memory_kind)) {
  auto chosen = select(work, [&](const copy& which) {
    return wanted(which.host_kind()) && !is_tiny(which) && !is_fixed(which);
  });
  const auto once = initial_uploads(work, wanted);
  const auto found = gains_against(work, once, host_end::pinned);
  const auto at_stake = found.known > 0 ? found.total_ns : sum_of(work, once).wall_ns;
  if (work.totals().kernels > 0 && work.share_of_span(at_stake) < material_share) {
    std::erase_if(chosen, [&](std::uint32_t index) {
      return std::binary_search(once.begin(), once.end(), index);
    });
  }
  return chosen;
}

std::string in_terms_of(const workload& work, const wording& ways) {
  const auto& about = work.events().about;
  if (about.framework == "PyTorch") {
    return std::string(ways.pytorch);
  }
  if (about.framework == "CuPy" && !ways.cupy.empty()) {
    return std::string(ways.cupy);
  }
  if (about.framework == "JAX" && !ways.jax.empty()) {
    return std::string(ways.jax);
  }
  return std::string(about.api == trace::gpu_api::hip ? ways.hip : ways.cuda);
}

std::vector<std::string> how_to_pin(const workload& work, const selection& chosen) {
  constexpr wording upload{
      .pytorch =
          "Pin the host tensors: DataLoader(pin_memory=True) or t.pin_memory() once, then "
          "t.to(device, non_blocking=True); the copy can then run beside kernels too.",
      .hip =
          "Allocate the host buffer with hipHostMalloc (hipHostFree frees it), or hipHostRegister "
          "one that lives long, and copy with hipMemcpyAsync.",
      .cuda =
          "Allocate the host buffer with cudaMallocHost (cudaFreeHost frees it), or "
          "cudaHostRegister one that lives long, and copy with cudaMemcpyAsync.",
      .cupy =
          "Keep the host array in pinned memory (cupyx.empty_pinned), fill it in place, and copy "
          "with gpu_array.set(host).",
      .jax =
          "Keep data on the GPU between calls, and host arrays in pinned memory (a sharding with "
          "memory_kind='pinned_host')."};
  constexpr wording download{
      .pytorch =
          "Copy results into a pinned tensor that is kept: out = torch.empty_like(g, "
          "device='cpu', pin_memory=True) once, then out.copy_(g, non_blocking=True), and wait "
          "for an event before reading it.",
      .hip = "Copy results into a buffer from hipHostMalloc that is kept (hipHostFree frees it).",
      .cuda =
          "Copy results into a buffer from cudaMallocHost that is kept (cudaFreeHost frees it).",
      .cupy =
          "Copy results into a pinned array that is kept: out = cupyx.empty_pinned(g.shape, "
          "g.dtype) once, then g.get(out=out).",
      .jax =
          "Fetch results less often, or with jax.device_put into pinned host memory (a sharding "
          "with memory_kind='pinned_host')."};
  std::vector<std::string> lines;
  const auto add_for = [&](direction way, const wording& ways) {
    if (std::any_of(chosen.begin(), chosen.end(), [&](std::uint32_t index) {
          return work.copies()[index].details->direction == way;
        })) {
      lines.push_back(in_terms_of(work, ways));
    }
  };
  add_for(direction::host_to_device, upload);
  add_for(direction::device_to_host, download);
  return lines;
}

std::string basis_of(const workload& work, direction way, host_end end) {
  const auto rate = work.expected().rate(way, end);
  if (!rate) {
    return work.expected().basis();
  }
  return fmt::format("{} {} at {} ({}: {})", end == host_end::pinned ? "pinned" : "pageable",
                     way == direction::device_to_host ? "D2H" : "H2D", format_rate(*rate),
                     to_string(work.expected().known(way, end)), work.expected().basis());
}

direction main_direction(const workload& work, const selection& chosen) {
  std::int64_t balance = 0;
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    balance += which.details->direction == direction::device_to_host ? -which.duration()
                                                                     : which.duration();
  }
  return balance >= 0 ? direction::host_to_device : direction::device_to_host;
}

std::string percent(double share) {
  const double value = share * 100;
  return value > 0 && value < 9.95 ? fmt::format("{:.1f} %", value)
                                   : fmt::format("{:.0f} %", value);
}

std::string compared_with_kernels(const workload& work, const sums& total) {
  const auto ratio = ratio_to_kernels(work, total);
  if (!ratio) {
    return kernel_order(work).without_times() ? percent(work.share_of_span(total.wall_ns)) +
                                                    " of the span (when kernels ran is not known)"
                                              : "without any kernel";
  }
  constexpr double readable = 9.995;  // beyond 1000 % a factor says more
  return *ratio < readable ? percent(*ratio) + " of kernel time"
                           : fmt::format("{:.0f} times the kernel time", *ratio);
}

std::string copies_of(std::uint64_t count, std::string_view adjective) {
  return fmt::format("{} {}{}{}", count, adjective, adjective.empty() ? "" : " ",
                     count == 1 ? "copy" : "copies");
}

std::string milliseconds(std::int64_t time_ns) {
  return format_duration(std::chrono::nanoseconds(time_ns));
}

}  // namespace berth::diagnose
