// SPDX-License-Identifier: Apache-2.0
// Symptom 3: host and GPU take turns on one buffer, so that the same data goes to and fro. That
// costs the copies, and the host's part, in which the device waits for its data.
//
// A round trip is an upload, kernels, a download, and the next upload of the same data. "The same
// data" is the host address where the trace has addresses; without, it is the same size and the
// same kind of host memory in strict turns on one stream, which is a suspicion and is called one: a
// pipeline whose results are as large as its inputs looks the same. Traffic of equal sizes that
// does not take turns, or whose addresses differ, is no ping-pong.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr std::uint64_t fewest_trips = 3;

// How it is known that two copies carry the same data.
enum class identity : std::uint8_t { address, size };

// Host address where known; else 0 and the size and kind stand for it.
using buffer_key = std::tuple<std::uint32_t, std::uint64_t, bytes_t, memory_kind>;

// The host's part of a trip: the device waits for it.
struct host_turn {
  std::uint32_t upload;  // that ends it
  interval time;
};

struct round_trips {
  selection copies;  // the downloads and the uploads that bring the data back
  std::vector<host_turn> turns;
  std::uint64_t count = 0;
};

std::optional<std::uint64_t> host_address(const copy& which) {
  return which.details->direction == direction::host_to_device ? which.details->source_address
                                                               : which.details->destination_address;
}

std::map<buffer_key, selection> by_buffer(const workload& work, identity how) {
  std::map<buffer_key, selection> buffers;
  const auto chosen = select_with_untimed(work, [&](const copy& which) {
    return which.details->bytes && !is_tiny(which) && (how == identity::address || is_timed(which));
  });
  for (const auto index : chosen) {
    const auto& which = work.copies()[index];
    const auto address = host_address(which);
    if (address.has_value() == (how == identity::address)) {
      buffers[{which.device, address.value_or(0), *which.details->bytes,
               address ? memory_kind::unknown : which.host_kind()}]
          .push_back(index);
    }
  }
  return buffers;
}

// Upload, kernels, download, and an upload that begins when the download has ended.
bool is_round_trip(const kernel_order& kernels, const copy& before, const copy& down,
                   const copy& after) {
  return before.details->direction == direction::host_to_device &&
         down.details->direction == direction::device_to_host &&
         after.details->direction == direction::host_to_device && before.end <= down.begin &&
         down.end <= after.begin && kernels.any_between(down.device, {before.end, down.begin});
}

// Whether the host goes over the data before it sends it back. Only devices know that they idle.
bool is_turn_of_host(const copy& down, const copy& after) {
  return down.details->time == trace::timing::device &&
         after.details->time == trace::timing::device &&
         is_pace_of_cpu(*down.details->bytes, {down.end, after.begin});
}

round_trips trips_of(const workload& work, const kernel_order& kernels, const selection& buffer,
                     identity how) {
  round_trips found;
  for (std::size_t at = 1; at + 1 < buffer.size(); ++at) {
    const auto copies = work.copies();
    const auto& before = copies[buffer[at - 1]];
    const auto& down = copies[buffer[at]];
    const auto& after = copies[buffer[at + 1]];
    // Equal sizes on several streams are buffers that work in turns: a pipeline.
    const bool one_stream = before.stream == down.stream && down.stream == after.stream;
    if ((how == identity::address || one_stream) && is_round_trip(kernels, before, down, after)) {
      found.copies.push_back(buffer[at]);
      found.copies.push_back(buffer[at + 1]);
      if (how == identity::address && is_turn_of_host(down, after)) {
        found.turns.push_back({buffer[at + 1], {down.end, after.begin}});
      }
      ++found.count;
    }
  }
  return found;
}

// Of all buffers that make enough trips, each copy once.
round_trips all_trips(const workload& work, identity how) {
  round_trips all;
  const kernel_order kernels(work);
  for (const auto& [key, buffer] : by_buffer(work, how)) {
    const auto found = trips_of(work, kernels, buffer, how);
    if (found.count >= fewest_trips) {
      all.count += found.count;
      all.copies.insert(all.copies.end(), found.copies.begin(), found.copies.end());
      all.turns.insert(all.turns.end(), found.turns.begin(), found.turns.end());
    }
  }
  std::sort(all.copies.begin(), all.copies.end());
  all.copies.erase(std::unique(all.copies.begin(), all.copies.end()), all.copies.end());
  return all;
}

constexpr wording stay{
    .pytorch =
        "Keep the tensor on the GPU between steps and do the host's part there (x.mul_() and "
        "the like run on CUDA tensors); copy back only what the host must see.",
    .hip =
        "Keep the buffer on the GPU and do the host's part in a kernel; where the host must see "
        "it, copy it once at the end, not every step.",
    .cuda =
        "Keep the buffer on the GPU and do the host's part in a kernel; where the host must see "
        "it, copy it once at the end, not every step."};

// Nobody has timed the copies: what can be said is how often they go, and how much.
void add_untimed(const workload& work, const round_trips& all, std::vector<finding>& findings) {
  const auto total = sum_of(work, all.copies);
  const auto copied = sum_of(work, select_with_untimed(work, [](const copy&) { return true; }));
  const auto share = static_cast<double>(total.bytes) / static_cast<double>(copied.bytes);
  if (share < fault_share) {
    return;
  }
  auto evidence = evidence_of(total);
  evidence.insert(evidence.begin(), {"round trips", static_cast<double>(all.count), unit::count});
  evidence.push_back({"share of all bytes", share, unit::share});
  findings.push_back(
      {.rule = "ping-pong",
       .severity = severity::advice,
       .headline = fmt::format("The same data goes to and fro: {} round trips move {}, {} of all "
                               "bytes (same host addresses; the time of the copies is unknown).",
                               all.count, format_bytes(total.bytes), percent(share)),
       .evidence = std::move(evidence),
       .places = places_of(work, all.copies),
       .lost_ns = 0,
       .saving = std::nullopt,
       .fix = {in_terms_of(work, stay)},
       .gains = {}});
}

// Wall time in which the host has the data and no device does anything.
std::int64_t idle_in(const workload& work, const std::vector<host_turn>& turns) {
  std::vector<interval> times;
  std::map<std::uint32_t, interval_set> busy;
  interval_set working;
  for (const auto& turn : turns) {
    times.push_back(turn.time);
    const auto device = work.copies()[turn.upload].device;
    if (busy.try_emplace(device).second) {
      working = united(working, work_of_device(work, device));
    }
  }
  return without(interval_set(std::move(times)), working).length();
}

// The idle time goes to the uploads that end it, by the length of their turns. `each` is in order
// of the copies, and stays so.
void add_idle(std::vector<gain>& each, const std::vector<host_turn>& turns, std::int64_t idle_ns) {
  std::int64_t sum = 0;
  for (const auto& turn : turns) {
    sum += turn.time.length();
  }
  const auto known = static_cast<std::ptrdiff_t>(each.size());
  const auto before = [](const gain& one, std::uint32_t copy) { return one.copy < copy; };
  for (const auto& turn : turns) {
    const auto share = static_cast<double>(turn.time.length()) / static_cast<double>(sum);
    const auto part = static_cast<std::int64_t>(static_cast<double>(idle_ns) * share);
    const auto end = each.begin() + known;
    const auto place = std::lower_bound(each.begin(), end, turn.upload, before);
    if (place != end && place->copy == turn.upload) {
      place->time_ns += part;
    } else {
      each.push_back({turn.upload, part});
    }
  }
  std::sort(each.begin(), each.end(), [](const gain& a, const gain& b) { return a.copy < b.copy; });
}

std::string sentence_on_trips(const round_trips& all, const sums& total, std::int64_t idle_ns,
                              double share, identity how) {
  const bool certain = how == identity::address;
  return fmt::format(
      "The same data {} to and fro: {} round trips move {} in {}{}{} of the span ({}).",
      certain ? "goes" : "seems to go", all.count, format_bytes(total.bytes),
      milliseconds(total.wall_ns),
      idle_ns > 0 ? fmt::format(", and the GPU idles {} while the host has it: together ",
                                milliseconds(idle_ns))
                  : ", ",
      percent(share),
      certain ? "same host addresses"
              : "from equal sizes in strict turns: the trace has no addresses");
}

void find_by(const workload& work, identity how, std::vector<finding>& findings) {
  const auto all = all_trips(work, how);
  const auto total = sum_of(work, all.copies);
  const auto idle = idle_in(work, all.turns);
  const auto share = work.share_of_span(total.wall_ns + idle);
  if (all.copies.empty()) {
    return;
  }
  if (share < material_share) {
    if (total.untimed * 2 > total.count) {
      add_untimed(work, all, findings);
    }
    return;
  }
  auto found = gains_without(work, all.copies);
  add_idle(found.each, all.turns, idle);
  const bool certain = how == identity::address;
  auto evidence = evidence_of(total);
  evidence.insert(evidence.begin(), {"round trips", static_cast<double>(all.count), unit::count});
  if (idle > 0) {
    evidence.push_back(
        {"GPU idle in the host's part", static_cast<double>(idle), unit::nanoseconds});
  }
  evidence.push_back({"share of the span", share, unit::share});
  findings.push_back(
      {.rule = "ping-pong",
       // A suspicion is no fault: a pipeline with results as large as its inputs looks the same.
       .severity = certain && share >= fault_share ? severity::fault : severity::advice,
       .headline = sentence_on_trips(all, total, idle, share, how),
       .evidence = std::move(evidence),
       .places = places_of(work, all.copies),
       .lost_ns = found.total_ns + idle,
       .saving = saving{found.total_ns + idle, bound::at_most, provenance::modelled,
                        "if the data stays on the GPU and the host's part runs there at no cost"},
       .fix = {in_terms_of(work, stay)},
       .gains = std::move(found.each)});
}

}  // namespace

selection round_trips_by_address(const workload& work) {
  return all_trips(work, identity::address).copies;
}

void find_ping_pong(const workload& work, std::vector<finding>& findings) {
  find_by(work, identity::address, findings);
  find_by(work, identity::size, findings);
}

}  // namespace berth::diagnose
