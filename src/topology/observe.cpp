// SPDX-License-Identifier: Apache-2.0
#include "topology/observe.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "core/text.hpp"
#include "core/watched_child.hpp"
#include "topology/identity.hpp"
#include "topology/live_reader.hpp"
#include "topology/nvml.hpp"

namespace berth::topology {
namespace {

using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

// What a child process sends: one of these, then what belongs to it.
constexpr char tag_asks = '?';
constexpr char tag_answers = '=';
constexpr char tag_done = '.';

milliseconds until(steady::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - steady::now()));
}

void send_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::write(to, bytes.data(), bytes.size());
    if (sent < 0 && errno != EINTR) {
      ::_exit(1);
    }
    bytes.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
  }
}

void append_text(std::string& to, std::string_view text) {
  to += fmt::format("{:08x}", text.size());
  to += text;
}

std::string frame_of(const question& asked, const answer* said) {
  std::string frame(1, said == nullptr ? tag_asks : tag_answers);
  frame += static_cast<char>(asked.kind);
  append_text(frame, asked.path);
  if (said != nullptr) {
    frame += static_cast<char>(said->kind);
    append_text(frame, said->text);
  }
  return frame;
}

// Takes frames from what a child sent, which may end in the middle.
class frames {
public:
  explicit frames(std::string_view sent) : rest_(sent) {}

  // What was asked last and not answered, if anything. Answers go into `known`.
  std::optional<question> take(answers& known) {
    std::optional<question> pending;
    while (!rest_.empty()) {
      const char tag = rest_.front();
      rest_.remove_prefix(1);
      if (tag == tag_done) {
        is_done_ = true;
        break;
      }
      question asked;
      if (!take_kind(asked.kind) || !take_text(asked.path)) {
        break;
      }
      pending = asked;
      answer said;
      if (tag == tag_answers) {
        if (!take_kind(said.kind) || !take_text(said.text)) {
          break;
        }
        known[asked] = std::move(said);
        pending.reset();
      }
    }
    return pending;
  }
  [[nodiscard]] bool is_done() const noexcept { return is_done_; }

private:
  template <typename Kind>
  bool take_kind(Kind& kind) {
    if (rest_.empty()) {
      return false;
    }
    kind = static_cast<Kind>(rest_.front());
    rest_.remove_prefix(1);
    return true;
  }
  bool take_text(std::string& text) {
    constexpr std::size_t digits = 8;
    const auto size = rest_.size() < digits
                          ? std::nullopt
                          : parse_number("0x" + std::string(rest_.substr(0, digits)));
    if (!size || rest_.size() - digits < *size) {
      return false;
    }
    text = rest_.substr(digits, *size);
    rest_.remove_prefix(digits + *size);
    return true;
  }

  std::string_view rest_;
  bool is_done_ = false;
};

void note(answers& known, std::string_view what) {
  auto& notes = known[{question_kind::content, std::string(added::notes)}];
  notes.kind = answer_kind::text;
  notes.text += std::string(what) + "\n";
}

// The reader's questions, asked in a child. One that gets no answer is given up, and the reading
// goes on without it.
void ask_files(answers& known, steady::time_point end, milliseconds patience) {
  constexpr int most_children = 8;
  for (int turn = 0; turn < most_children; ++turn) {
    const auto seen = watch_child(
        [&](int to) {
          machine_files files(file_source(""), known,
                              [&](const question& asked, const answer* said) {
                                send_all(to, frame_of(asked, said));
                              });
          static_cast<void>(survey_of(files, machine::survey_kind::live));
          send_all(to, std::string(1, tag_done));
        },
        {.end = end, .patience = patience});
    frames sent(seen.sent);
    const auto pending = sent.take(known);
    if (sent.is_done()) {
      return;
    }
    if (seen.how == child_ending::late) {
      note(known, "the time for reading was over before all was read");
    }
    if (!pending) {
      note(known, "reading ended early; what follows in the reader's order is missing");
      return;
    }
    known[*pending] = {answer_kind::failed,
                       fmt::format("no answer within {} ms", patience.count())};
    if (seen.how == child_ending::late) {
      return;
    }
  }
}

void ask_nvidia(answers& known, steady::time_point end) {
  if (::access("/dev/nvidiactl", F_OK) != 0 && ::access("/proc/driver/nvidia/version", F_OK) != 0) {
    return;
  }
  const auto seen = watch_child([](int to) { send_all(to, ask_nvml() + std::string(1, tag_done)); },
                                {.end = end, .patience = until(end)});
  if (!seen.sent.ends_with(tag_done)) {
    note(known, "NVIDIA's library (NVML) did not answer in time");
    return;
  }
  known[{question_kind::content, std::string(added::nvml)}] = {
      answer_kind::text, seen.sent.substr(0, seen.sent.size() - 1)};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

std::string environment_text() {
  std::vector<std::string> lines;
  const auto host = host_name();
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view line(*one);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || !steers_gpus(line.substr(0, equals))) {
      continue;
    }
    const auto value = text::printable(line.substr(equals + 1));
    lines.push_back(std::string(line.substr(0, equals)) + "=" + without_names(value, host));
  }
  std::ranges::sort(lines);
  std::string text;
  for (const auto& line : lines) {
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> device_nodes(const file_source& source) {
  std::vector<std::string> nodes = {"/dev/kfd", "/dev/nvidiactl"};
  for (const auto* const folder : {"/dev", "/dev/dri"}) {
    const auto names = source.ask({question_kind::names, folder});
    for (const auto name : lines_of(names.text)) {
      if (name.starts_with("renderD") || name.starts_with("nvidia")) {
        nodes.push_back(fmt::format("{}/{}", folder, name));
      }
    }
  }
  return nodes;
}

// Asks for the right to open and opens nothing: opening may wake a device.
std::string access_text(const file_source& source) {
  std::string text;
  for (const auto& node : device_nodes(source)) {
    text += fmt::format("{} {}\n", node, ::access(node.c_str(), R_OK | W_OK) == 0 ? "yes" : "no");
  }
  return text;
}

// The least limit on the way from the process's group up to the root.
std::optional<std::uint64_t> least_limit(const file_source& source, std::string_view mount,
                                         std::string group, std::string_view file) {
  constexpr std::uint64_t no_limit = 1ULL << 60U;
  std::optional<std::uint64_t> least;
  while (true) {
    const auto said =
        source.ask({question_kind::content, fmt::format("{}{}/{}", mount, group, file)});
    const auto bytes = said.kind == answer_kind::text ? parse_number(said.text) : std::nullopt;
    if (bytes && *bytes < no_limit) {
      least = std::min(least.value_or(*bytes), *bytes);
    }
    if (group.empty()) {
      return least;
    }
    group.erase(std::min(group.rfind('/'), group.size()));
  }
}

std::string memory_limit_text(const file_source& source, std::string_view groups) {
  for (const auto line : lines_of(groups)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
      continue;
    }
    const auto kinds = line.substr(first + 1, second - first - 1);
    std::string group(line.substr(second + 1));
    group.erase(group.find_last_not_of('/') + 1);
    const bool is_second = kinds.empty();
    if (!is_second && kinds != "memory") {
      continue;
    }
    const auto* const file = is_second ? "memory.max" : "memory.limit_in_bytes";
    const auto limit =
        least_limit(source, is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory", group, file);
    if (limit) {
      return fmt::format("memory_limit {} {} of the control group\n", *limit, file);
    }
  }
  return {};
}

std::string container_text(const file_source& source, std::string_view groups) {
  for (const auto* const mark : {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"}) {
    if (::access(mark, F_OK) == 0) {
      return fmt::format("container on {}\n", mark);
    }
  }
  for (const auto* const mark : {"docker", "kubepods", "containerd", "lxc", "libpod"}) {
    if (groups.find(mark) != std::string_view::npos) {
      return fmt::format("container on /proc/self/cgroup ({})\n", mark);
    }
  }
  // The init system of a whole machine, and no mark of a container.
  const auto init = source.ask({question_kind::content, "/proc/1/comm"});
  if (text::trim(init.text) == "systemd" && ::access("/run/systemd/system", F_OK) == 0) {
    return "container off /run/systemd/system\n";
  }
  return {};
}

// Only what was found: paths of control groups hold names of users and jobs.
std::string process_text(const file_source& source) {
  const auto groups = source.ask({question_kind::content, "/proc/self/cgroup"});
  return memory_limit_text(source, groups.text) + container_text(source, groups.text);
}

// What could not be read where the files were captured.
answers known_of(const file_source& source) {
  answers known;
  const auto said = source.ask({question_kind::content, std::string(added::unreadable)});
  if (said.kind != answer_kind::text) {
    return known;
  }
  for (const auto line : lines_of(said.text)) {
    const auto tab = line.find('\t');
    if (tab == std::string_view::npos || tab < 2) {
      continue;
    }
    const auto kind = static_cast<question_kind>(line.front());
    known[{kind, std::string(line.substr(1, tab - 1))}] = {answer_kind::failed,
                                                           std::string(line.substr(tab + 1))};
  }
  return known;
}

answers observe_this(const live_options& options) {
  const auto end = steady::now() + options.deadline;
  const file_source source("");
  const auto text_at = [](std::string_view path) {
    return question{question_kind::content, std::string(path)};
  };
  answers known;
  known[text_at(added::environment)] = {answer_kind::text, environment_text()};
  known[text_at(added::access)] = {answer_kind::text, access_text(source)};
  known[text_at(added::process)] = {answer_kind::text, process_text(source)};
  known[text_at(added::nvml)] = {};
  known[text_at(added::notes)] = {};
  ask_nvidia(known, end - options.patience);
  ask_files(known, end, options.patience);
  return known;
}

}  // namespace

bool is_live(const live_options& options) {
  return options.root.lexically_normal() == "/";
}

answers observe(const live_options& options) {
  if (is_live(options)) {
    return observe_this(options);
  }
  const file_source source(options.root);
  machine_files files(source, known_of(source));
  static_cast<void>(survey_of(files, machine::survey_kind::captured));
  return files.all();
}

machine::survey read_machine(const live_options& options) {
  machine_files files(observe(options));
  return survey_of(files,
                   is_live(options) ? machine::survey_kind::live : machine::survey_kind::captured);
}

}  // namespace berth::topology
