// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/settings.hpp"

#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "interpose/capture/environment.hpp"

namespace berth::interpose {
namespace {

constexpr double ns_per_second = 1e9;

std::int64_t nanoseconds_of(std::string_view seconds) noexcept {
  const double value = seconds.empty() ? 0 : std::strtod(seconds.data(), nullptr);
  return value > 0 && value < 1e9 ? static_cast<std::int64_t>(value * ns_per_second) : 0;
}

// 0 for what is no number as a whole.
long long number_of(std::string_view text) noexcept {
  char* end = nullptr;
  const long long value = text.empty() ? 0 : std::strtoll(text.data(), &end, 10);
  return end != nullptr && *end == '\0' ? value : 0;
}

constexpr std::array<std::pair<std::string_view, int>, 6> signals{{{"USR1", SIGUSR1},
                                                                   {"USR2", SIGUSR2},
                                                                   {"HUP", SIGHUP},
                                                                   {"WINCH", SIGWINCH},
                                                                   {"URG", SIGURG},
                                                                   {"IO", SIGIO}}};

int signal_of(std::string_view name) noexcept {
  if (name.starts_with("SIG")) {
    name.remove_prefix(3);
  }
  for (const auto& [known, number] : signals) {
    if (known == name) {
      return number;
    }
  }
  return 0;
}

// Appends to a path of fixed size.
class path_writer {
public:
  explicit path_writer(std::array<char, settings::most_path>& to) noexcept : to_(to) {}
  void put(char one) noexcept {
    if (at_ + 1 < to_.size()) {
      to_[at_++] = one;
    } else {
      fits_ = false;
    }
  }
  void put(std::string_view text) noexcept {
    for (const char one : text) {
      put(one);
    }
  }
  void put_number(long long value) noexcept {
    std::array<char, 24> digits{};
    put({digits.data(),
         static_cast<std::size_t>(std::snprintf(digits.data(), digits.size(), "%lld", value))});
  }
  [[nodiscard]] bool end() noexcept {
    to_[at_] = '\0';
    return fits_;
  }

private:
  std::array<char, settings::most_path>& to_;
  std::size_t at_ = 0;
  bool fits_ = true;
};

void put_field(path_writer& out, char field) noexcept {
  switch (field) {
    case 'p':
      return out.put_number(::getpid());
    case 'h': {
      std::array<char, HOST_NAME_MAX + 1> host{};
      ::gethostname(host.data(), host.size() - 1);
      return out.put(std::string_view(host.data()));
    }
    case 'r': {
      const std::string_view rank = rank_of_environment();
      return out.put(rank.empty() ? std::string_view("0") : rank);
    }
    case '%':
      return out.put('%');
    default:
      out.put('%');
      return out.put(field);
  }
}

// Where the extension of the file's name begins; the end where there is none.
std::size_t extension_of(std::string_view pattern) noexcept {
  const auto name = pattern.rfind('/') + 1;  // npos + 1 is 0
  const auto dot = pattern.rfind('.');
  return dot == std::string_view::npos || dot <= name ? pattern.size() : dot;
}

// Absolute, because the program may go to another folder before the file is made, or made again.
void put_pattern(settings& into, std::string_view pattern) noexcept {
  if (pattern.empty()) {
    return;
  }
  std::array<char, settings::most_path> folder{};
  path_writer out(into.path);
  if (pattern.front() != '/' && ::getcwd(folder.data(), folder.size()) != nullptr) {
    for (const char one : std::string_view(folder.data())) {
      out.put(one == '%' ? std::string_view("%%") : std::string_view(&one, 1));
    }
    out.put('/');
  }
  out.put(pattern);
  if (!out.end()) {
    into.path.fill('\0');
  }
}

}  // namespace

settings settings_of_environment() noexcept {
  settings found;
  put_pattern(found, variable("BERTH_RECORD"));
  if (variable("BERTH_RECORD_DEVICE_TIMES") == "off") {
    found.times = device_times::off;
  }
  const auto stacks = variable("BERTH_RECORD_STACKS");
  found.sites = stacks == "off"   ? call_sites::off
                : stacks == "all" ? call_sites::all
                                  : call_sites::automatic;
  found.contents = variable("BERTH_RECORD_CONTENT") == "1" ? contents::hashed : contents::unread;
  found.delay_ns = nanoseconds_of(variable("BERTH_RECORD_DELAY"));
  found.duration_ns = nanoseconds_of(variable("BERTH_RECORD_DURATION"));
  found.toggle_signal = signal_of(variable("BERTH_RECORD_SIGNAL"));
  found.only_process = number_of(variable("BERTH_RECORD_ONLY"));
  if (const long long mebibytes = number_of(variable("BERTH_RECORD_MEMORY"));
      mebibytes > 0 && mebibytes < 1 << 20) {
    found.memory = static_cast<std::size_t>(mebibytes) << 20;
  }
  return found;
}

bool expand_path(const settings& from, unsigned attempt,
                 std::array<char, settings::most_path>& to) noexcept {
  const std::string_view pattern(from.path.data());
  const auto extension = extension_of(pattern);
  path_writer out(to);
  bool is_numbered = attempt == 0;
  for (std::size_t at = 0; at <= pattern.size(); ++at) {
    if (at >= extension && !is_numbered) {
      is_numbered = true;
      out.put('.');
      out.put_number(::getpid());
      if (attempt > 1) {
        out.put('.');
        out.put_number(attempt);
      }
    }
    if (at == pattern.size()) {
      break;
    }
    if (pattern[at] == '%' && at + 1 < pattern.size()) {
      put_field(out, pattern[++at]);
    } else {
      out.put(pattern[at]);
    }
  }
  return out.end();
}

const char* rank_of_environment() noexcept {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') {
      return value;
    }
  }
  return "";
}

}  // namespace berth::interpose
