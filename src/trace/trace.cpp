// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.hpp"

#include <cassert>
#include <utility>

namespace berth::trace {
namespace {

constexpr std::uint64_t no_correlation = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint32_t> known(std::uint32_t index) noexcept {
  return index == no_row ? std::nullopt : std::optional(index);
}

}  // namespace

memory_kind transfer::host_kind() const noexcept {
  switch (direction) {
    case direction::host_to_device:
    case direction::host_to_host:
      return source_kind;
    case direction::device_to_host:
      return destination_kind;
    default:
      return memory_kind::unknown;
  }
}

trace::trace() {
  intern({});
}

void trace::reserve(std::size_t events) {
  kinds_.reserve(events);
  begins_.reserve(events);
  durations_.reserve(events);
  names_.reserve(events);
  thread_indices_.reserve(events);
  stream_indices_.reserve(events);
  correlations_.reserve(events);
  transfer_indices_.reserve(events);
  site_indices_.reserve(events);
}

row trace::add(const new_event& event) {
  assert(kinds_.size() < no_row);
  kinds_.push_back(event.kind);
  begins_.push_back(event.begin);
  durations_.push_back(event.duration);
  names_.push_back(event.name);
  thread_indices_.push_back(event.thread);
  stream_indices_.push_back(event.stream);
  correlations_.push_back(event.correlation.value_or(no_correlation));
  transfer_indices_.push_back(event.transfer);
  site_indices_.push_back(event.call_site);
  const auto added = static_cast<row>(kinds_.size() - 1);
  if (event.status != 0) {
    failures_.emplace(added, event.status);
  }
  return added;
}

std::uint32_t trace::add_transfer(const transfer& details) {
  transfers_.push_back(details);
  return static_cast<std::uint32_t>(transfers_.size() - 1);
}

name_id trace::intern(std::string_view text) {
  if (const auto found = text_ids_.find(text); found != text_ids_.end()) {
    return found->second;
  }
  const auto id = static_cast<name_id>(texts_.size());
  texts_.emplace_back(text);
  text_ids_.emplace(texts_.back(), id);
  return id;
}

std::uint32_t trace::intern_thread(std::string_view process, std::string_view id) {
  std::string key(process);
  key += '\0';
  key += id;
  const auto [place, is_new] =
      thread_ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(threads_.size()));
  if (is_new) {
    threads_.push_back({std::string(process), std::string(id)});
  }
  return place->second;
}

std::uint32_t trace::intern_stream(const stream& which) {
  const auto [place, is_new] = stream_ids_.try_emplace(std::pair(which.device, which.id),
                                                       static_cast<std::uint32_t>(streams_.size()));
  if (is_new) {
    streams_.push_back(which);
  }
  return place->second;
}

std::uint32_t trace::intern_call_site(std::vector<name_id> frames) {
  const auto [place, is_new] =
      site_ids_.try_emplace(std::move(frames), static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back({place->first});
  }
  return place->second;
}

std::optional<std::uint32_t> trace::thread_of(row index) const noexcept {
  return known(thread_indices_[index]);
}

stream trace::stream_of(row index) const noexcept {
  const auto which = stream_indices_[index];
  return which == no_row ? stream{} : streams_[which];
}

std::optional<std::uint64_t> trace::correlation(row index) const noexcept {
  const auto number = correlations_[index];
  return number == no_correlation ? std::nullopt : std::optional(number);
}

std::int32_t trace::status(row index) const noexcept {
  const auto found = failures_.find(index);
  return found == failures_.end() ? 0 : found->second;
}

const call_site* trace::site(row index) const noexcept {
  const auto which = site_indices_[index];
  return which == no_row ? nullptr : &sites_[which];
}

const transfer* trace::details(row index) const noexcept {
  const auto which = transfer_indices_[index];
  return which == no_row ? nullptr : &transfers_[which];
}

transfer* trace::details(row index) noexcept {
  const auto which = transfer_indices_[index];
  return which == no_row ? nullptr : &transfers_[which];
}

}  // namespace berth::trace
