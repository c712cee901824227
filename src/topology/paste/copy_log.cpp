// SPDX-License-Identifier: Apache-2.0
// What AMD's runtime logs of its copies (AMD_LOG_LEVEL=4): the engine that each was given to, the
// kernels that copy, and copies that failed.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/words.hpp"

namespace berth::topology::paste {
namespace {

using machine::logged_copies;
using namespace std::string_view_literals;

struct way_word {
  std::string_view text;
  direction way;
};
constexpr std::array way_words = {
    way_word{"hipMemcpyHostToDevice", direction::host_to_device},
    way_word{"hipMemcpyDeviceToHost", direction::device_to_host},
    way_word{"from host to device", direction::host_to_device},
    way_word{"from device to host", direction::device_to_host},
    way_word{"HtoD", direction::host_to_device},
    way_word{"DtoH", direction::device_to_host},
    way_word{"H2D", direction::host_to_device},
    way_word{"D2H", direction::device_to_host},
};

direction way_in(std::string_view text) {
  for (const auto& known : way_words) {
    if (text.find(known.text) != std::string_view::npos) {
      return known.way;
    }
  }
  return direction::unknown;
}

// Behind that word, up to a blank or a comma.
std::string_view value_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = text.substr(at + word.size());
  return rest.substr(0, std::min(rest.find_first_of(" ,;]\t"), rest.size()));
}

struct logged_line {
  engine by = engine::unknown;
  std::string engine_name;
  direction way = direction::unknown;
  std::optional<std::int64_t> failure;
  std::uint32_t line = 0;
};

class copy_log_reader final : public reader {
public:
  bool begins(const line& one) override {
    const std::string_view text = one.text;
    return take_failure(one) || take_engine(one) || take_kernel(one) || take_call(text) ||
           is_log(text);
  }

  bool takes(const line& one) override { return begins(one); }

  void tells(writer& to) override {
    // Alike ones are told once, with their number, in the order of their first.
    std::map<std::tuple<engine, std::string, direction, std::optional<std::int64_t>>, std::size_t>
        known;
    std::vector<std::pair<logged_copies, std::uint32_t>> groups;
    for (const auto& one : lines_) {
      const auto [at, is_new] =
          known.try_emplace({one.by, one.engine_name, one.way, one.failure}, groups.size());
      if (is_new) {
        groups.emplace_back(logged_copies{.by = one.by,
                                          .engine_name = one.engine_name,
                                          .way = one.way,
                                          .failure = one.failure,
                                          .count = 0,
                                          .source = {}},
                            one.line);
      }
      ++groups[at->second].first.count;
    }
    for (auto& [group, line] : groups) {
      to.at(line);
      to.say().logged(std::move(group));
    }
  }

private:
  static constexpr std::size_t most_logged = 1 << 20;

  // "HSA Async Copy on copy_engine=2, dst=0x7f4a1853e000, ..."
  bool take_engine(const line& one) {
    const std::string_view text = one.text;
    const bool is_copy = text.find("HSA Async Copy") != std::string_view::npos ||
                         text.find("HSA Copy ") != std::string_view::npos;
    if (!is_copy) {
      return false;
    }
    add({.by = engine::dma,
         .engine_name = text::shorten(value_after(text, "copy_engine="), 20),
         .way = std::exchange(way_, direction::unknown),
         .failure = {},
         .line = one.number});
    if (const auto way = way_in(text); way != direction::unknown) {
      lines_.back().way = way;
    }
    return true;
  }

  // "ShaderName : __amd_rocclr_copyBuffer"
  bool take_kernel(const line& one) {
    if (one.text.find("ShaderName") == std::string::npos ||
        one.text.find("__amd_rocclr_copy") == std::string::npos) {
      return false;
    }
    add({.by = engine::kernel,
         .engine_name = {},
         .way = std::exchange(way_, direction::unknown),
         .failure = {},
         .line = one.number});
    return true;
  }

  // "HSA copy from host to device failed with code 4097": that of the line before it.
  bool take_failure(const line& one) {
    const std::string_view text = one.text;
    if (text.find("HSA copy") == std::string_view::npos ||
        text.find("failed with code") == std::string_view::npos) {
      return false;
    }
    const auto code = number_in(value_after(text, "failed with code "));
    if (lines_.empty() || lines_.back().failure || one.number - lines_.back().line > 2) {
      add({.by = engine::unknown, .engine_name = {}, .failure = {}, .line = one.number});
    }
    lines_.back().failure = static_cast<std::int64_t>(code.value_or(0) & 0xffffffffU);
    if (const auto way = way_in(text); way != direction::unknown) {
      lines_.back().way = way;
    }
    return true;
  }

  // "hipMemcpy ( 0x7f..., 0x55..., 40, hipMemcpyHostToDevice )" comes before the copy's own line.
  bool take_call(std::string_view text) {
    if (text.find("hipMemcpy") == std::string_view::npos ||
        text.find(" ( ") == std::string_view::npos) {
      return false;
    }
    way_ = way_in(text);
    return true;
  }

  // ":3:rocdevice.cpp            :434 : 99441719306 us: 350457: [tid:0x7f02e57efc00] ...", but for
  // what the runtime says of the machine at its start.
  static bool is_log(std::string_view text) {
    const bool has_head = text.size() > 3 && text[0] == ':' && text[1] >= '0' && text[1] <= '9' &&
                          text[2] == ':' && text.find(".cpp") != std::string_view::npos;
    return has_head && text.find("HMM support:") == std::string_view::npos;
  }

  void add(logged_line one) {
    if (lines_.size() >= most_logged) {
      lines_.pop_back();
    }
    lines_.push_back(std::move(one));
  }

  std::vector<logged_line> lines_;
  direction way_ = direction::unknown;
};

}  // namespace

std::unique_ptr<reader> make_copy_log_reader() {
  return std::make_unique<copy_log_reader>();
}

}  // namespace berth::topology::paste
