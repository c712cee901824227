// SPDX-License-Identifier: Apache-2.0
#include "core/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <utility>

#include <fmt/format.h>

namespace berth::program {
namespace {

namespace fs = std::filesystem;

std::string reason(int number) {
  return std::strerror(number);  // NOLINT(concurrency-mt-unsafe)
}

// The signals that must not end us before the program: from a terminal it gets them too.
constexpr std::array<int, 4> guarded_signals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
// Those that mean something to programs only: they are passed on while the program runs, and are
// nobody's before and after.
constexpr std::array<int, 4> handed_on_signals = {SIGUSR1, SIGUSR2, SIGALRM, SIGIO};

// The program's process, for the signal handler.
std::atomic<pid_t>& running_program() {
  static std::atomic<pid_t> running{0};
  return running;
}

// Ignores what the terminal also sends to the program, and passes on what it does not.
class signal_guard {
public:
  signal_guard(pid_t program, const std::vector<int>& passed) {
    running_program() = program;
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    struct sigaction forward {};
    forward.sa_handler = [](int number) { ::kill(running_program().load(), number); };
    set(SIGINT, ignore);
    set(SIGQUIT, ignore);
    set(SIGTERM, forward);
    set(SIGHUP, forward);
    for (const int number : handed_on_signals) {
      set(number, forward);
    }
    for (const int number : passed) {
      set(number, forward);
    }
  }
  signal_guard(const signal_guard&) = delete;
  signal_guard& operator=(const signal_guard&) = delete;
  ~signal_guard() {
    for (const auto& one : std::views::reverse(before_)) {
      ::sigaction(one.number, &one.action, nullptr);
    }
  }

private:
  struct replaced {
    int number;
    struct sigaction action;
  };

  void set(int number, const struct sigaction& action) {
    before_.push_back({.number = number, .action = {}});
    ::sigaction(number, &action, &before_.back().action);
  }

  std::vector<replaced> before_;
};

// What fork's child does: no way back.
[[noreturn]] void become(const start_request& request, char* const* arguments, int failure_pipe) {
  for (const auto& [name, value] : request.environment) {
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  if (!request.pid_variable.empty()) {
    std::array<char, 16> digits{};
    std::to_chars(digits.data(), digits.data() + digits.size() - 1, ::getpid());
    ::setenv(request.pid_variable.c_str(), digits.data(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ::execvp(arguments[0], arguments);
  const int why = errno;
  [[maybe_unused]] const auto told = ::write(failure_pipe, &why, sizeof(why));
  ::_exit(127);
}

result<ending> wait_for(pid_t program, const start_request& request, const held_signals& signals) {
  const signal_guard guard(program, request.passed_signals);
  signals.release();
  int status = 0;
  int failure = 0;
  while (::waitpid(program, &status, 0) < 0 && failure == 0) {
    failure = errno == EINTR ? 0 : errno;
  }
  signals.hold_again();
  if (failure != 0) {
    return error(errc::internal, reason(failure), "waitpid");
  }
  return WIFSIGNALED(status) ? ending{.exit_status = 0, .signal = WTERMSIG(status)}
                             : ending{.exit_status = WEXITSTATUS(status), .signal = 0};
}

}  // namespace

sigset_t held_signals::all() noexcept {
  sigset_t made;
  sigemptyset(&made);
  for (const int number : guarded_signals) {
    sigaddset(&made, number);
  }
  return made;
}

held_signals::held_signals() noexcept {
  auto held = all();
  for (const int number : handed_on_signals) {
    sigaddset(&held, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &held_);
}

held_signals::~held_signals() {
  sigset_t nobodys;
  sigemptyset(&nobodys);
  for (const int number : handed_on_signals) {
    sigaddset(&nobodys, number);
  }
  const timespec at_once{};
  while (::sigtimedwait(&nobodys, nullptr, &at_once) > 0) {
  }
  release();
}

held_signals_watch::held_signals_watch(std::function<void()> tidy)
    : signals_([] {
        const auto held = held_signals::all();
        return ::signalfd(-1, &held, SFD_CLOEXEC);
      }()),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      watcher_([this, tidy = std::move(tidy)] { watch(tidy); }) {}

held_signals_watch::~held_signals_watch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto told = ::write(stop_.get(), &one, sizeof(one));
  watcher_.join();
}

void held_signals_watch::watch(const std::function<void()>& tidy) const {
  std::array<pollfd, 2> ready = {pollfd{signals_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
  while (::poll(ready.data(), ready.size(), -1) < 0) {
  }
  signalfd_siginfo came{};
  if (ready[1].revents != 0 || ::read(signals_.get(), &came, sizeof(came)) != sizeof(came)) {
    return;
  }
  tidy();
  const int number = static_cast<int>(came.ssi_signo);
  const auto held = held_signals::all();
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(number, &usual, nullptr);
  ::kill(::getpid(), number);
  ::pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
  ::_exit(128 + number);
}

result<ending> run(const start_request& request, const held_signals& signals) {
  std::vector<std::string> words = request.words;
  std::vector<char*> arguments;
  for (auto& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return error(errc::internal, reason(errno), "pipe");
  }
  const descriptor reading(ends[0]);
  const auto program = ::fork();
  if (program < 0) {
    ::close(ends[1]);
    return error(errc::internal, reason(errno), "fork");
  }
  if (program == 0) {
    signals.release();
    become(request, arguments.data(), ends[1]);
  }
  ::close(ends[1]);
  int why = 0;
  if (::read(reading.get(), &why, sizeof(why)) == static_cast<ssize_t>(sizeof(why))) {
    int ignored = 0;
    ::waitpid(program, &ignored, 0);
    return error(errc::usage, fmt::format("cannot be started: {}", reason(why)),
                 request.words.front(), "name a program, or a path to one");
  }
  return wait_for(program, request, signals);
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? value : "";
}

std::string preload_list(std::span<const fs::path> libraries) {
  std::string list;
#ifdef BERTH_PRELOAD_FIRST  // a sanitizer's runtime, which must come before all else
  list += BERTH_PRELOAD_FIRST;
#endif
  for (const auto& library : libraries) {
    list += (list.empty() ? "" : ":") + library.string();
  }
  if (const auto before = environment("LD_PRELOAD"); !before.empty()) {
    list += ":" + before;
  }
  return list;
}

std::vector<std::string> names_with(std::string_view prefix) {
  std::vector<std::string> found;
  for (char* const* one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    if (text.starts_with(prefix)) {
      found.emplace_back(text.substr(0, text.find('=')));
    }
  }
  return found;
}

result<fs::path> find_library(const library_name& name) {
  std::vector<fs::path> places;
  std::error_code ignored;
  if (const auto given = environment(name.variable); !given.empty()) {
    // What was named and is not there must not be made up for by another.
    if (!fs::exists(given, ignored)) {
      return error(errc::file_unreadable, fmt::format("{} names no file", name.variable),
                   std::string(given), "correct it, or unset it");
    }
    places.emplace_back(given);
  }
  const auto here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  places.push_back(here / name.file);
  places.push_back(here / ".." / "lib" / name.file);
  places.push_back(here / ".." / "lib" / "berth" / name.file);
  if (!name.installed.empty()) {
    places.emplace_back(name.installed);
  }
  for (const auto& place : places) {
    if (fs::exists(place, ignored)) {
      return fs::canonical(place, ignored);
    }
  }
  return error(errc::file_unreadable, "not found", std::string(name.file),
               fmt::format("{} can say where it is", name.variable));
}

}  // namespace berth::program
