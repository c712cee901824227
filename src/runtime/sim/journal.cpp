// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/journal.hpp"

#include <fmt/format.h>

namespace berth::runtime::sim {
namespace {

constexpr std::size_t most_entries = std::size_t{1} << 20U;

void describe(const operation& of, executed_operation& into) {
  if (const auto* const copy = std::get_if<copy_work>(&of.what)) {
    into.source = copy->staged.empty() ? label_of(copy->src) : "pageable";
    into.destination = label_of(copy->dst);
    into.way = copy->way;
    into.bytes = copy->bytes();
  } else if (const auto* const fill = std::get_if<fill_work>(&of.what)) {
    into.destination = label_of(fill->dst);
    into.bytes = fill->dst.bytes;
  } else if (const auto* const kernel = std::get_if<kernel_work>(&of.what)) {
    into.source = kernel->reads.empty() ? "" : label_of(kernel->reads[0]);
    into.destination = kernel->writes.empty() ? "" : label_of(kernel->writes[0]);
    into.bytes = !kernel->reads.empty()    ? kernel->reads[0].bytes
                 : !kernel->writes.empty() ? kernel->writes[0].bytes
                                           : 0;
  } else if (const auto* const prefetch = std::get_if<prefetch_work>(&of.what)) {
    into.destination = label_of(prefetch->range);
    into.bytes = prefetch->range.bytes;
    into.way = prefetch->where == on_host ? direction::device_to_host : direction::host_to_device;
  }
}

}  // namespace

std::string to_string(const executed_operation& value) {
  std::string text = fmt::format("{} {}", value.number, value.what);
  if (value.way != direction::unknown) {
    text += fmt::format(" {}", berth::to_string(value.way));
  }
  if (value.by != engine::unknown) {
    text += fmt::format(" {}", berth::to_string(value.by));
  }
  text += fmt::format(" device {} stream {}", value.device, value.stream);
  if (value.bytes != 0) {
    text += fmt::format(" {} B", value.bytes);
  }
  if (!value.source.empty()) {
    text += fmt::format(" {}", value.source);
  }
  if (!value.destination.empty()) {
    text += fmt::format(" -> {}", value.destination);
  }
  return text + fmt::format(" submitted {} at {}..{}", value.submitted.count(),
                            value.started.count(), value.ended.count());
}

void journal::add(const operation& ended, engine by) {
  executed_operation entry{.number = ended.number,
                           .what = std::string(name_of(ended.what)),
                           .source = {},
                           .destination = {},
                           .way = direction::unknown,
                           .by = by,
                           .device = ended.device,
                           .stream = ended.stream,
                           .bytes = 0,
                           .submitted = std::chrono::nanoseconds(ended.submitted),
                           .started = std::chrono::nanoseconds(ended.started),
                           .ended = std::chrono::nanoseconds(ended.ended)};
  describe(ended, entry);
  entries_.push_back(std::move(entry));
  if (entries_.size() > most_entries) {
    entries_.pop_front();
  }
}

std::vector<executed_operation> journal::all() const {
  return {entries_.begin(), entries_.end()};
}

std::string journal::text() const {
  std::string text;
  for (const auto& entry : entries_) {
    text += to_string(entry);
    text += '\n';
  }
  return text;
}

}  // namespace berth::runtime::sim
