// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/device_log.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interpose/capture/locked.hpp"

namespace berth::interpose {
namespace {

constexpr std::size_t most_records = 16384;
constexpr std::size_t most_known = 16384;  // a power of two
constexpr std::size_t most_text_bytes = std::size_t{256} << 10;
constexpr std::size_t longest_text = 4096;

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;
  for (const char one : text) {
    hash = (hash ^ static_cast<unsigned char>(one)) * 0x100'0000'01B3U;
  }
  return hash | 1;  // 0 marks a free place
}

}  // namespace

device_log::device_log() noexcept
    : memory_(most_records * sizeof(device_record) + most_known * sizeof(known_text) +
              most_text_bytes) {
  if (memory_.all().empty()) {
    return;
  }
  auto* at = memory_.all().data();
  records_ = {reinterpret_cast<device_record*>(at), most_records};
  at += records_.size_bytes();
  known_ = {reinterpret_cast<known_text*>(at), most_known};
  at += known_.size_bytes();
  texts_ = {at, most_text_bytes};
}

void device_log::add(const device_record& record) noexcept {
  const locked hold(lock_);
  if (count_ < records_.size()) {
    records_[count_++] = record;
  } else {
    ++dropped_;
  }
}

void device_log::note_dropped(std::uint64_t records) noexcept {
  const locked hold(lock_);
  dropped_ += records;
}

std::uint32_t device_log::intern(std::string_view text) noexcept {
  text = text.substr(0, longest_text);
  const auto hash = hash_of(text);
  const locked hold(lock_);
  if (known_.empty()) {
    return 0;
  }
  auto place = hash % most_known;
  while (known_[place].hash != 0 && known_[place].hash != hash) {
    place = (place + 1) % most_known;
  }
  if (known_[place].hash == hash) {
    return known_[place].id;
  }
  if (last_id_ >= most_known / 2) {
    return 0;
  }
  trace::recording::byte_writer to(texts_.subspan(text_bytes_));
  to.put_varint(last_id_ + 1);
  to.put_string(text);
  if (!to.fits()) {
    return 0;
  }
  text_bytes_ += to.size();
  known_[place] = {hash, ++last_id_};
  return last_id_;
}

bool device_log::take_records(trace::recording::byte_writer& to) noexcept {
  const locked hold(lock_);
  if (count_ == 0) {
    return false;
  }
  event_encoder encoder(to, 0, records_[0].begin);
  std::size_t done = 0;
  while (done < count_ && to.room() >= event_encoder::most_event_bytes) {
    encoder.put(records_[done++]);
  }
  std::move(records_.begin() + static_cast<std::ptrdiff_t>(done),
            records_.begin() + static_cast<std::ptrdiff_t>(count_), records_.begin());
  count_ -= done;
  taken_ += done;
  return true;
}

bool device_log::take_strings(trace::recording::byte_writer& to) noexcept {
  const locked hold(lock_);
  if (text_bytes_ == 0) {
    return false;
  }
  for (const std::byte one : texts_.first(text_bytes_)) {
    to.put_byte(std::to_integer<std::uint8_t>(one));
  }
  text_bytes_ = 0;
  return true;
}

std::uint64_t device_log::take_dropped() noexcept {
  const locked hold(lock_);
  return std::exchange(dropped_, 0);
}

void device_log::reset() noexcept {
  lock_ = PTHREAD_MUTEX_INITIALIZER;
  count_ = 0;
  text_bytes_ = 0;
  if (last_id_ != 0) {  // else there is nothing to forget, and no page to touch
    std::fill(known_.begin(), known_.end(), known_text{});
  }
  last_id_ = 0;
  dropped_ = 0;
  taken_ = 0;
}

}  // namespace berth::interpose
