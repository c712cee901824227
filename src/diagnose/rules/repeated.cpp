// SPDX-License-Identifier: Apache-2.0
// Data that is copied again although nothing has changed: by the hash of its content, where the
// trace has one.
//
// A copy is repeated if the same content lies at its destination already, put there by a copy, and
// no other copy, fill or allocation has touched that place since; or if the same source with the
// same content has gone the same way before, to whatever place. Whether a kernel, or the host, has
// written to the destination meanwhile is not in a trace: so the saving is "at most".
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr std::size_t fewest_repeated = 3;

// What lies where, as far as copies have put it there.
class known_contents {
public:
  struct range {
    std::uint64_t end;
    std::uint64_t content;
  };

  // Forgets all that touches [begin, begin + bytes).
  void forget(std::uint64_t begin, bytes_t bytes) {
    const auto end = begin + std::min(bytes, ~std::uint64_t{0} - begin);
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second.end > begin) {
      --next;
    }
    while (next != ranges_.end() && next->first < end) {
      next = ranges_.erase(next);
    }
    ranges_.erase(begin);
  }

  [[nodiscard]] bool holds(std::uint64_t begin, bytes_t bytes, std::uint64_t content) const {
    const auto found = ranges_.find(begin);
    return found != ranges_.end() && found->second.end - begin == bytes &&
           found->second.content == content;
  }

  void put(std::uint64_t begin, bytes_t bytes, std::uint64_t content) {
    forget(begin, bytes);
    ranges_.emplace(begin, range{begin + std::min(bytes, ~std::uint64_t{0} - begin), content});
  }

private:
  std::map<std::uint64_t, range> ranges_;  // by their begin; they do not overlap
};

// Something that changes what is known, in order of time: a copy, or memory that is written or
// given anew.
struct change {
  std::int64_t time;
  std::uint32_t copy;  // trace::no_row: none
  std::uint64_t address;
  bytes_t bytes;
};

std::vector<change> changes_of(const workload& work) {
  std::vector<change> changes;
  const auto& events = work.events();
  const auto copies = work.copies();
  for (std::uint32_t index = 0; index < copies.size(); ++index) {
    const auto& details = *copies[index].details;
    if (details.destination_address && details.bytes && !has_failed(work, copies[index])) {
      changes.push_back({copies[index].begin, index, *details.destination_address, *details.bytes});
    }
  }
  for (const auto& call : memory_calls_of(events)) {
    if (call.gives() && call.address && call.status == 0) {
      changes.push_back({call.time.end, trace::no_row, *call.address, call.bytes.value_or(1)});
    }
  }
  for (trace::row index = 0; index < events.size(); ++index) {
    const auto* const details = events.details(index);
    if (events.kind(index) == trace::event_kind::fill && details != nullptr &&
        details->destination_address) {
      changes.push_back({events.begin(index), trace::no_row, *details->destination_address,
                         details->bytes.value_or(1)});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const change& a, const change& b) { return a.time < b.time; });
  return changes;
}

selection repeated_copies(const workload& work) {
  // Device, direction, source, bytes and content of what has been sent.
  std::set<std::tuple<std::uint32_t, direction, std::uint64_t, bytes_t, std::uint64_t>> sent;
  known_contents known;
  selection repeated;
  for (const auto& next : changes_of(work)) {
    const auto* const which = next.copy != trace::no_row ? &work.copies()[next.copy] : nullptr;
    if (which == nullptr || !which->details->content) {
      known.forget(next.address, next.bytes);
      continue;
    }
    const auto& details = *which->details;
    const bool is_there = known.holds(next.address, next.bytes, *details.content);
    const bool was_sent = details.source_address &&
                          !sent.insert({which->device, details.direction, *details.source_address,
                                        next.bytes, *details.content})
                               .second;
    known.put(next.address, next.bytes, *details.content);
    if ((is_there || was_sent) && is_host_copy(*which) && !is_tiny(*which)) {
      repeated.push_back(next.copy);
    }
  }
  std::sort(repeated.begin(), repeated.end());
  return repeated;
}

constexpr wording once{
    .pytorch =
        "Move what does not change to the GPU once, before the loop (buffers of a module, masks, "
        "constants), and use that tensor again instead of x.to(device) in each step.",
    .hip =
        "Copy what does not change once, before the loop, and keep its device buffer; for zeros "
        "use hipMemsetAsync, for a fresh copy of it a device to device copy.",
    .cuda =
        "Copy what does not change once, before the loop, and keep its device buffer; for zeros "
        "use cudaMemsetAsync, for a fresh copy of it a device to device copy."};

}  // namespace

void find_repeated_copies(const workload& work, std::vector<finding>& findings) {
  const auto repeated = repeated_copies(work);
  if (repeated.size() < fewest_repeated) {
    return;
  }
  const auto total = sum_of(work, repeated);
  auto found = gains_without(work, repeated);
  const auto all = sum_of(work, select_with_untimed(work, [](const copy&) { return true; }));
  const auto of_bytes = static_cast<double>(total.bytes) / static_cast<double>(all.bytes);
  const bool counts_by_time = work.share_of_span(found.total_ns) >= small_share;
  if (!counts_by_time && (total.untimed * 2 <= total.count || of_bytes < fault_share)) {
    return;
  }
  auto evidence = evidence_of(total);
  evidence.push_back({"share of all bytes", of_bytes, unit::share});
  finding result{
      .rule = "repeated-copies",
      .severity = severity::advice,
      .headline = fmt::format("{} {} data again that was there before, unchanged: {}, {} of all "
                              "bytes between host and GPU{}.",
                              copies_of(total.count), total.count == 1 ? "brings" : "bring",
                              format_bytes(total.bytes), percent(of_bytes),
                              counts_by_time ? ", in " + milliseconds(total.wall_ns) : ""),
      .evidence = std::move(evidence),
      .places = places_of(work, repeated),
      .lost_ns = found.total_ns,
      .saving = std::nullopt,
      .fix = {in_terms_of(work, once)},
      .gains = {}};
  if (counts_by_time) {
    result.saving = saving{found.total_ns, bound::at_most, provenance::modelled,
                           "if nothing writes to the destination between the copies; samples of "
                           "the content are equal, not each byte was compared"};
    result.gains = std::move(found.each);
  }
  findings.push_back(std::move(result));
}

}  // namespace berth::diagnose
