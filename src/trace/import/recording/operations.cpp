// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/operations.hpp"

#include <array>

namespace berth::trace::recording {
namespace {

struct meaning {
  std::string_view words;  // the operation, or its first words
  recording::action action;
  memory_kind memory = memory_kind::unknown;
  direction way = direction::unknown;
};

// The first that fits decides: the longer stand before the shorter.
constexpr std::array meanings{
    meaning{"copy_to_device", action::copy, {}, direction::host_to_device},
    meaning{"copy_to_host", action::copy, {}, direction::device_to_host},
    meaning{"copy_on_device", action::copy, {}, direction::device_to_device},
    meaning{"copy_peer", action::copy, {}, direction::peer_to_peer},
    meaning{"copy", action::copy},
    meaning{"fill", action::fill},
    meaning{"allocate_device", action::allocate, memory_kind::device},
    meaning{"allocate_array", action::allocate, memory_kind::device},
    meaning{"allocate_pinned", action::allocate, memory_kind::pinned},
    meaning{"allocate_managed", action::allocate, memory_kind::managed},
    meaning{"register_host", action::allocate, memory_kind::registered},
    meaning{"map_memory", action::allocate, memory_kind::device},
    meaning{"allocate", action::allocate},
    meaning{"free", action::release},
    meaning{"unregister_host", action::release},
    meaning{"unmap_memory", action::release_range},
    meaning{"launch", action::launch},
    meaning{"synchronize", action::synchronise},
    meaning{"advise", action::advise},
    meaning{"prefetch", action::prefetch},
    meaning{"device_address", action::ask_address},
};

constexpr bool begins_with_words(std::string_view text, std::string_view words) noexcept {
  return text.starts_with(words) && (text.size() == words.size() || text[words.size()] == '_');
}

}  // namespace

operation operation_of(std::string_view word) noexcept {
  operation found;
  found.completion = word.find("_async") != std::string_view::npos || word.starts_with("prefetch")
                         ? completion::later
                         : completion::in_call;
  for (const auto& candidate : meanings) {
    if (begins_with_words(word, candidate.words)) {
      found.action = candidate.action;
      found.memory = candidate.memory;
      found.way = candidate.way;
      break;
    }
  }
  return found;
}

}  // namespace berth::trace::recording
