// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/content.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace berth::trace::recording {
namespace {

// Beyond these a file is wrong, whatever its checksums say.
constexpr std::uint64_t most_calls = 1U << 16;
constexpr std::size_t most_words = 1U << 12;
constexpr std::size_t most_events = 1U << 30;
constexpr std::uint64_t most_frames = 1U << 10;
constexpr std::int64_t longest_time = 366LL * 24 * 3600 * 1'000'000'000;
// All durations together stay below so many times the longest, so that sums of them are no problem.
constexpr std::int64_t duration_share = 20;

struct role_word {
  std::string_view word;
  role value;
};

constexpr std::array role_words{
    role_word{"dst", role::dst},
    role_word{"src", role::src},
    role_word{"dst_memory", role::dst_memory},
    role_word{"src_memory", role::src_memory},
    role_word{"bytes", role::bytes},
    role_word{"rows", role::rows},
    role_word{"way", role::way},
    role_word{"memory", role::memory},
    role_word{"flags", role::flags},
    role_word{"stream", role::stream},
    role_word{"event", role::event},
    role_word{"device", role::device},
    role_word{"peer", role::peer},
    role_word{"dst_device", role::dst_device},
    role_word{"src_device", role::src_device},
    role_word{"advice", role::advice},
    role_word{"location", role::location},
    role_word{"mode", role::mode},
    role_word{"value", role::value},
    role_word{"name", role::name},
    role_word{"batch", role::batch},
    role_word{"stack", role::stack},
    role_word{"host_pages", role::host_pages},
    role_word{"host_node", role::host_node},
    role_word{"content", role::content},
    role_word{"fixed", role::fixed},
    role_word{"call_stream", role::call_stream},
    role_word{"correlation", role::correlation},
};

role role_of(std::string_view word) noexcept {
  const auto* const found =
      std::find_if(role_words.begin(), role_words.end(),
                   [&](const role_word& candidate) { return candidate.word == word; });
  return found != role_words.end() ? found->value : role::unknown;
}

}  // namespace

// Reads one block's payload into the content.
class block_decoder {
public:
  block_decoder(content& into, std::span<const std::byte> payload) : to_(into), in_(payload) {}

  // False where the payload breaks the grammar.
  bool decode(block_type type) {
    switch (type) {
      case block_type::process:
        return read_pairs(to_.process);
      case block_type::calls:
        return read_calls();
      case block_type::events:
        return read_events();
      case block_type::stacks:
        return read_stacks();
      case block_type::modules:
        return read_modules();
      case block_type::strings:
        return read_strings();
      case block_type::coverage:
        return read_pairs(to_.coverage);
      case block_type::dropped:
        return read_dropped();
      case block_type::end:
        return read_pairs(to_.end.emplace());
    }
    ++to_.passed.unknown_blocks;
    return true;
  }

private:
  bool read_pairs(pairs& into) {
    const auto count = in_.get_varint();
    for (std::uint64_t index = 0; index < count && in_.good(); ++index) {
      std::string key(in_.get_string());
      const auto value = in_.get_string();
      if (in_.good()) {
        into.insert_or_assign(std::move(key), std::string(value));
      }
    }
    return in_.good();
  }

  std::uint32_t word_id(std::string_view word) {
    const auto [place, is_new] =
        to_.word_ids_.try_emplace(std::string(word), static_cast<std::uint32_t>(to_.words_.size()));
    if (is_new) {
      to_.words_.emplace_back(word);
      to_.word_roles_.push_back(role_of(word));
    }
    return place->second;
  }

  bool read_call() {
    const auto index = in_.get_varint();
    call read;
    read.known = true;
    read.name = in_.get_string();
    read.api = in_.get_string();
    read.operation = in_.get_string();
    read.place.fill(-1);
    const auto roles = in_.get_varint();
    if (!in_.good() || index >= most_calls || roles > event_values::most_roles) {
      return false;
    }
    for (std::uint64_t at = 0; at < roles && in_.good(); ++at) {
      const auto word = word_id(in_.get_string());
      read.place[static_cast<std::size_t>(to_.word_roles_[word])] = static_cast<std::int16_t>(at);
      read.words.push_back(word);
    }
    if (!in_.good() || to_.words_.size() > most_words) {
      return false;
    }
    if (to_.calls.size() <= index) {
      to_.calls.resize(index + 1);
    }
    // A call keeps its meaning: events that came before were read by it.
    if (!to_.calls[index].known) {
      to_.calls[index] = std::move(read);
    }
    return true;
  }

  bool read_calls() {
    const auto count = in_.get_varint();
    for (std::uint64_t index = 0; index < count; ++index) {
      if (!read_call()) {
        return false;
      }
    }
    return in_.good();
  }

  std::uint32_t thread_id(std::uint64_t number) {
    const auto [place, is_new] =
        to_.thread_ids_.try_emplace(number, static_cast<std::uint32_t>(to_.threads.size()));
    if (is_new) {
      to_.threads.push_back(number);
    }
    return place->second;
  }

  bool read_events() {
    const auto thread = in_.get_varint();
    auto begin = static_cast<std::uint64_t>(in_.get_signed());
    if (!in_.good()) {
      return false;
    }
    last_.assign(to_.words_.size(), 0);
    const auto index = thread_id(thread);
    while (!in_.at_end()) {
      const auto number = in_.get_varint();
      if (!in_.good()) {
        return false;
      }
      if (number == extras_call || number >= to_.calls.size() || !to_.calls[number].known) {
        // How many values follow is not known, so nothing behind it can be read.
        ++to_.passed.unknown_calls;
        return true;
      }
      begin += static_cast<std::uint64_t>(in_.get_signed());
      if (!read_event(static_cast<std::uint32_t>(number), index,
                      static_cast<std::int64_t>(begin))) {
        return false;
      }
    }
    return true;
  }

  bool read_event(std::uint32_t number, std::uint32_t thread, std::int64_t begin) {
    event read;
    read.call = number;
    read.thread = thread;
    read.begin = begin;
    read.values = to_.values_.size();
    const auto duration = in_.get_varint();
    const auto flags = in_.get_varint();
    if ((flags & event_failed) != 0) {
      const auto status = in_.get_signed();
      read.status = status >= std::numeric_limits<std::int32_t>::min() &&
                            status <= std::numeric_limits<std::int32_t>::max() && status != 0
                        ? static_cast<std::int32_t>(status)
                        : -1;
    }
    extras_.clear();
    if ((flags & event_has_extras) != 0 && !read_extras()) {
      return false;
    }
    for (const auto word : to_.calls[number].words) {
      to_.values_.push_back(take(word));
      to_.extra_roles_.push_back(0);
    }
    if (!in_.good()) {
      to_.values_.resize(read.values);
      to_.extra_roles_.resize(read.values);
      return false;
    }
    for (const auto& [what, value] : extras_) {
      to_.values_.push_back(value);
      to_.extra_roles_.push_back(static_cast<std::uint8_t>(what));
    }
    read.extras = static_cast<std::uint32_t>(extras_.size());
    keep(read, duration);
    return true;
  }

  bool read_extras() {
    const auto count = in_.get_varint();
    if (to_.calls.empty() || count > event_values::most_roles) {
      return false;
    }
    const auto& known = to_.calls[extras_call].words;
    for (std::uint64_t index = 0; index < count && in_.good(); ++index) {
      const auto at = in_.get_varint();
      if (!in_.good() || at >= known.size()) {
        return false;
      }
      extras_.emplace_back(to_.word_roles_[known[at]], take(known[at]));
    }
    return in_.good();
  }

  std::uint64_t take(std::uint32_t word) {
    return last_[word] += static_cast<std::uint64_t>(in_.get_signed());
  }

  // Times that cannot be true would break every sum over them.
  void keep(event read, std::uint64_t duration) {
    const auto first = to_.events.empty() ? read.begin : to_.events.front().begin;
    // Differences of two int64 may overflow; those of their halves cannot.
    const auto half = read.begin / 2 - first / 2;
    constexpr auto largest = std::numeric_limits<std::int64_t>::max() - 4 * longest_time;
    if (duration > static_cast<std::uint64_t>(longest_time - to_.duration_sum_) ||
        half > longest_time / 2 || half < -longest_time / 2 || read.begin > largest ||
        read.begin < -largest || to_.events.size() >= most_events) {
      ++to_.passed.absurd_times;
      return;
    }
    read.duration = static_cast<std::int64_t>(duration);
    to_.duration_sum_ += read.duration / duration_share;
    to_.events.push_back(read);
  }

  bool read_stacks() {
    while (!in_.at_end()) {
      const auto id = in_.get_varint();
      const auto frames = in_.get_varint();
      if (!in_.good() || frames > most_frames) {
        return false;
      }
      std::vector<std::uint64_t> addresses;
      std::uint64_t address = 0;
      for (std::uint64_t index = 0; index < frames && in_.good(); ++index) {
        address += static_cast<std::uint64_t>(in_.get_signed());
        addresses.push_back(address);
      }
      if (!in_.good()) {
        return false;
      }
      to_.stacks.insert_or_assign(id, std::move(addresses));
    }
    return true;
  }

  bool read_modules() {
    while (!in_.at_end()) {
      const auto begin = in_.get_varint();
      mapped_module read;
      read.size = in_.get_varint();
      read.offset = in_.get_varint();
      read.path = in_.get_string();
      read.build_id = in_.get_string();
      if (!in_.good()) {
        return false;
      }
      if (read.size > 0 && begin + read.size > begin) {
        replace_modules(begin, std::move(read));
      }
    }
    return true;
  }

  void replace_modules(std::uint64_t begin, mapped_module read) {
    const auto end = begin + read.size;
    auto place = to_.modules.upper_bound(begin);
    if (place != to_.modules.begin() &&
        std::prev(place)->first + std::prev(place)->second.size > begin) {
      --place;
    }
    while (place != to_.modules.end() && place->first < end) {
      place = to_.modules.erase(place);
    }
    to_.modules.emplace(begin, std::move(read));
  }

  bool read_strings() {
    while (!in_.at_end()) {
      const auto id = in_.get_varint();
      const auto text = in_.get_string();
      if (!in_.good()) {
        return false;
      }
      to_.strings.insert_or_assign(id, std::string(text));
    }
    return true;
  }

  bool read_dropped() {
    while (!in_.at_end()) {
      dropped_events read;
      read.thread = in_.get_varint();
      read.events = in_.get_varint();
      read.first_time = in_.get_varint();
      read.last_time = in_.get_varint();
      if (!in_.good()) {
        return false;
      }
      to_.dropped.push_back(read);
    }
    return true;
  }

  content& to_;
  byte_reader in_;
  std::vector<std::uint64_t> last_;  // value of each word
  std::vector<std::pair<role, std::uint64_t>> extras_;
};

std::optional<std::uint64_t> content::get(const event& of, role what) const noexcept {
  const auto& known = calls[of.call];
  if (const auto place = known.place[static_cast<std::size_t>(what)]; place >= 0) {
    return values_[of.values + static_cast<std::uint64_t>(place)];
  }
  const auto first = of.values + known.words.size();
  for (auto index = first; index < first + of.extras; ++index) {
    if (extra_roles_[index] == static_cast<std::uint8_t>(what)) {
      return values_[index];
    }
  }
  return std::nullopt;
}

void content::add(const block& one) {
  if (!block_decoder(*this, one.payload).decode(one.type)) {
    ++passed.broken_blocks;
  }
}

result<content> read_content(block_reader& blocks,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  content read;
  while (true) {
    auto found = blocks.next();
    if (!found) {
      return found.error();
    }
    if (!*found) {
      return read;
    }
    read.add(**found);
    if (progress) {
      progress(blocks.source().file_bytes_read(), blocks.source().file_bytes());
    }
  }
}

}  // namespace berth::trace::recording
