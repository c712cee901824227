// SPDX-License-Identifier: Apache-2.0
#include "interpose/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/units.hpp"
#include "core/descriptor.hpp"
#include "core/text.hpp"

namespace berth::interpose {
namespace {

namespace fs = std::filesystem;

// In the order of their enumerations.
constexpr const char* usual_kept_mib = "1024";
constexpr std::array<std::string_view, 3> device_times_words = {"auto", "off", "on"};
constexpr std::array<std::string_view, 3> stacks_words = {"auto", "off", "all"};

template <typename Meaning, std::size_t Count>
result<Meaning> parse_word(std::string_view text, const char* option,
                           const std::array<std::string_view, Count>& words) {
  const auto* const found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) {
    return static_cast<Meaning>(found - words.begin());
  }
  return error(errc::usage, fmt::format("'{}' is none of its words", text::printable(text)), option,
               fmt::format("one of {}", fmt::join(words, ", ")));
}

// "2.5": no exponent, no trailing zeros.
std::string in_seconds(std::chrono::nanoseconds time) {
  auto text = fmt::format("{}.{:09}", time.count() / 1'000'000'000, time.count() % 1'000'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text;
}

// --- The self-test ------------------------------------------------------------------------------

constexpr std::chrono::seconds most_self_test_time{20};
constexpr std::string_view answer_begin = "berth-preload ";

// Reads what comes until both are closed, or time is over.
struct spoken {
  std::string answer;  // of the library
  std::string errors;  // of the system's loader
  bool in_time = true;
};

void take_what_is_there(pollfd& from, std::string& into) {
  std::array<char, 4096> part{};
  const auto got = ::read(from.fd, part.data(), part.size());
  if (got > 0) {
    into.append(part.data(), static_cast<std::size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    from.fd = -1;
  }
}

spoken listen(int answers, int errors) {
  spoken heard;
  const auto deadline = std::chrono::steady_clock::now() + most_self_test_time;
  std::array<pollfd, 2> pipes = {pollfd{answers, POLLIN, 0}, pollfd{errors, POLLIN, 0}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    heard.in_time = left.count() > 0;
    if (!heard.in_time) {
      break;
    }
    if (::poll(pipes.data(), pipes.size(), static_cast<int>(left.count())) <= 0) {
      continue;
    }
    if (pipes[0].revents != 0) {
      take_what_is_there(pipes[0], heard.answer);
    }
    if (pipes[1].revents != 0) {
      take_what_is_there(pipes[1], heard.errors);
    }
  }
  return heard;
}

// What fork's child does: this program, with the library, says its version to nobody.
[[noreturn]] void become_test_program(const std::string& preload, int answers, int errors) {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int kept = ::fcntl(answers, F_DUPFD, 3);  // without FD_CLOEXEC
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  const auto number = std::to_string(kept);
  // NOLINTBEGIN(concurrency-mt-unsafe): the child of a fork has one thread
  ::unsetenv("BERTH_RECORD");
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  ::setenv("BERTH_PRELOAD_CHECK", number.c_str(), 1);
  // NOLINTEND(concurrency-mt-unsafe)
  ::execl("/proc/self/exe", "berth", "--version", nullptr);
  ::_exit(127);
}

error not_preloaded(const fs::path& recorder, const spoken& heard, int status) {
  std::string why;
  if (!heard.in_time) {
    why = "a small program with it did not end in time";
  } else if (WIFSIGNALED(status)) {
    why = fmt::format("a small program with it was ended by signal {}", WTERMSIG(status));
  } else if (const auto said = text::trim(heard.errors); !said.empty()) {
    why = text::shorten(text::printable(said.substr(0, said.find('\n'))), 300);
  } else {
    why = "a small program was started with it, and it did not answer";
  }
  return error(errc::gpu_not_supported, fmt::format("this system does not preload it: {}", why),
               recorder.string(),
               "check that it is of the same build as berth (berth version), that LD_PRELOAD works "
               "here (a hardened or static system may ignore it), and its rights");
}

}  // namespace

std::vector<program::variable> variables_of(const recording_options& options) {
  std::vector<program::variable> made{{.name = "BERTH_RECORD", .value = options.file}};
  const auto add = [&](const char* name, std::string value) {
    made.push_back({.name = name, .value = std::move(value)});
  };
  // They cost a small copy or launch some microseconds: too much for what must not become slower,
  // or is compared with it.
  if (options.device_times == device_times::off ||
      (options.device_times == device_times::automatic && options.copies != copies::left_alone)) {
    add("BERTH_RECORD_DEVICE_TIMES", "off");
  }
  if (options.stacks != call_sites::automatic) {
    add("BERTH_RECORD_STACKS",
        std::string(stacks_words.at(static_cast<std::size_t>(options.stacks))));
  }
  if (options.content == contents::hashed) {
    add("BERTH_RECORD_CONTENT", "1");
  }
  if (options.delay) {
    add("BERTH_RECORD_DELAY", in_seconds(*options.delay));
  }
  if (options.duration) {
    add("BERTH_RECORD_DURATION", in_seconds(*options.duration));
  }
  if (!options.signal.empty()) {
    add("BERTH_RECORD_SIGNAL", options.signal);
  }
  if (options.copies == copies::never_fixed) {
    add(fix_variable, "0");
  }
  const auto add_default = [&](const char* name, const char* value) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read only
    const char* const wish = std::getenv(name);
    if (wish == nullptr || *wish == '\0') {
      add(name, value);
    }
  };
  if (options.copies == copies::fixed) {
    add_default(fix_variable, "1");
  }
  if (options.pinned == freed_pinned::kept) {
    add_default(fix_pinned_variable, usual_kept_mib);
  }
  return made;
}

result<device_times> parse_device_times(std::string_view text) {
  return parse_word<device_times>(text, "--device-times", device_times_words);
}

result<call_sites> parse_stacks(std::string_view text) {
  return parse_word<call_sites>(text, "--stacks", stacks_words);
}

result<toggle_signal> parse_toggle_signal(std::string_view text) {
  struct known {
    std::string_view name;
    int number;
  };
  // Those that the recorder knows.
  constexpr std::array<known, 6> signals{{{"USR1", SIGUSR1},
                                          {"USR2", SIGUSR2},
                                          {"HUP", SIGHUP},
                                          {"WINCH", SIGWINCH},
                                          {"URG", SIGURG},
                                          {"IO", SIGIO}}};
  auto name = text::to_lower(text);
  if (name.starts_with("sig")) {
    name.erase(0, 3);
  }
  for (const auto& one : signals) {
    if (name == text::to_lower(one.name)) {
      return toggle_signal{.name = std::string(one.name), .number = one.number};
    }
  }
  return error(errc::usage, fmt::format("'{}' cannot switch a recording", text::printable(text)),
               "--signal", "one of USR1, USR2, HUP, WINCH, URG, IO that the program does not use");
}

result<std::chrono::nanoseconds> parse_seconds(std::string_view text) {
  const bool plain =
      !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  return try_parse_duration(plain ? std::string(text) + "s" : std::string(text));
}

result<fs::path> find_recorder() {
  auto found = program::find_library({.file = "libberth_preload.so",
                                      .variable = "BERTH_PRELOAD_LIBRARY",
                                      .installed = BERTH_PRELOAD_INSTALLED});
  if (found && found->string().find_first_of(": ") != std::string::npos) {
    return error(errc::usage, "LD_PRELOAD cannot hold a path with a blank or a colon",
                 found->string(),
                 "let BERTH_PRELOAD_LIBRARY name a copy of the library in another folder");
  }
  return found;
}

result<std::string> try_preloading(const fs::path& recorder) {
  std::array<int, 2> answers{};
  std::array<int, 2> errors{};
  if (::pipe2(answers.data(), O_CLOEXEC) != 0) {
    return error(errc::internal, std::strerror(errno), "pipe");  // NOLINT(concurrency-mt-unsafe)
  }
  const descriptor answer(answers[0]);
  descriptor answer_end(answers[1]);
  if (::pipe2(errors.data(), O_CLOEXEC) != 0) {
    return error(errc::internal, std::strerror(errno), "pipe");  // NOLINT(concurrency-mt-unsafe)
  }
  const descriptor said(errors[0]);
  descriptor said_end(errors[1]);
  const auto preload = program::preload_list(std::span(&recorder, 1));
  const auto child = ::fork();
  if (child < 0) {
    return error(errc::internal, std::strerror(errno), "fork");  // NOLINT(concurrency-mt-unsafe)
  }
  if (child == 0) {
    become_test_program(preload, answer_end.get(), said_end.get());
  }
  answer_end.close();
  said_end.close();
  const auto heard = listen(answer.get(), said.get());
  if (!heard.in_time) {
    ::kill(child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string_view line = text::trim(heard.answer);
  if (!line.starts_with(answer_begin) || !heard.in_time || status != 0) {
    return not_preloaded(recorder, heard, status);
  }
  return std::string(line.substr(answer_begin.size()));
}

}  // namespace berth::interpose
