// SPDX-License-Identifier: Apache-2.0
#include "emulator/launch.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/units.hpp"
#include "emulator/shared_machine.hpp"
#include "emulator/topology/overlay.hpp"

namespace berth::emulator {
namespace {

namespace fs = std::filesystem;

std::string system_text(int number) {
  return std::strerror(number);  // NOLINT(concurrency-mt-unsafe)
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? value : "";
}

class descriptor {
public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&&) = delete;
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  [[nodiscard]] int get() const noexcept { return number_; }

private:
  int number_;
};

// The memory that all processes of the machine share. It has no name: they open it through this
// process, and it goes with the last of them, even if we are killed.
result<descriptor> make_shared_memory(std::uint64_t slice_bytes) {
  descriptor file(::memfd_create("berth-emulator", MFD_CLOEXEC));
  const auto bytes = shared_file_bytes(slice_bytes);
  if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return error(errc::file_unwritable, system_text(errno), "memory of the emulated machine");
  }
  void* const at =
      ::mmap(nullptr, first_slice_offset, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) {
    return error(errc::file_unwritable, system_text(errno), "memory of the emulated machine");
  }
  initialise(*static_cast<machine_ledger*>(at));
  ::munmap(at, first_slice_offset);
  return file;
}

std::string preload_list(const fs::path& library) {
  std::string list;
#ifdef BERTH_PRELOAD_FIRST  // a sanitizer's runtime, which must come before all else
  list += BERTH_PRELOAD_FIRST ":";
#endif
  list += library.string();
  if (const auto before = environment("LD_PRELOAD"); !before.empty()) {
    list += ":" + before;
  }
  return list;
}

// What fork's child does: nothing that allocates, and no way back.
[[noreturn]] void become(char* const* arguments, int failure_pipe) {
  ::execvp(arguments[0], arguments);
  const int why = errno;
  [[maybe_unused]] const auto told = ::write(failure_pipe, &why, sizeof(why));
  ::_exit(127);
}

// The signals that must not end us before the program: from a terminal it gets them too.
constexpr std::array<int, 4> guarded_signals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

// Keeps them waiting while the overlay folder is there and no guard deals with them.
class held_signals {
public:
  held_signals() noexcept {
    sigset_t all;
    sigemptyset(&all);
    for (const int number : guarded_signals) {
      sigaddset(&all, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &held_);
  }
  held_signals(const held_signals&) = delete;
  held_signals& operator=(const held_signals&) = delete;
  ~held_signals() { release(); }

  void release() const noexcept { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  void hold_again() const noexcept { ::pthread_sigmask(SIG_SETMASK, &held_, nullptr); }

private:
  sigset_t before_{};
  sigset_t held_{};
};

class signal_guard {
public:
  explicit signal_guard(pid_t program) {
    child() = program;
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    struct sigaction forward {};
    forward.sa_handler = [](int number) { ::kill(child().load(), number); };
    ::sigaction(SIGINT, &ignore, &before_[0]);
    ::sigaction(SIGQUIT, &ignore, &before_[1]);
    ::sigaction(SIGTERM, &forward, &before_[2]);
    ::sigaction(SIGHUP, &forward, &before_[3]);
  }
  signal_guard(const signal_guard&) = delete;
  signal_guard& operator=(const signal_guard&) = delete;
  ~signal_guard() {
    for (std::size_t index = 0; index < guarded_signals.size(); ++index) {
      ::sigaction(guarded_signals[index], &before_[index], nullptr);
    }
  }

private:
  static std::atomic<pid_t>& child() {
    static std::atomic<pid_t> running{0};
    return running;
  }

  std::array<struct sigaction, guarded_signals.size()> before_{};
};

result<program_end> wait_for(pid_t program, const held_signals& signals) {
  const signal_guard guard(program);
  signals.release();
  int status = 0;
  int failure = 0;
  while (::waitpid(program, &status, 0) < 0 && failure == 0) {
    failure = errno == EINTR ? 0 : errno;
  }
  signals.hold_again();
  if (failure != 0) {
    return error(errc::internal, system_text(failure), "waitpid");
  }
  return WIFSIGNALED(status) ? program_end{.exit_status = 0, .signal = WTERMSIG(status)}
                             : program_end{.exit_status = WEXITSTATUS(status), .signal = 0};
}

result<program_end> start(const launch_request& request, const fs::path& overlay,
                          const held_signals& signals) {
  std::vector<std::string> words = request.program;
  std::vector<char*> arguments;
  for (auto& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return error(errc::internal, system_text(errno), "pipe");
  }
  const descriptor reading(ends[0]);
  const auto list = preload_list(request.preload);
  const auto program = ::fork();
  if (program < 0) {
    ::close(ends[1]);
    return error(errc::internal, system_text(errno), "fork");
  }
  if (program == 0) {
    signals.release();
    ::setenv("LD_PRELOAD", list.c_str(), 1);         // NOLINT(concurrency-mt-unsafe)
    ::setenv(overlay_variable, overlay.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    become(arguments.data(), ends[1]);
  }
  ::close(ends[1]);
  int why = 0;
  if (::read(reading.get(), &why, sizeof(why)) == static_cast<ssize_t>(sizeof(why))) {
    int ignored = 0;
    ::waitpid(program, &ignored, 0);
    return error(errc::usage, fmt::format("cannot be started: {}", system_text(why)),
                 request.program.front(), "name a program, or a path to one");
  }
  return wait_for(program, signals);
}

// A path that programs can use from any folder.
std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.empty() ? path : fs::absolute(path, ignored).string();
}

error bad_fault(std::string what) {
  return error(errc::usage, std::move(what), "--fault",
               "KIND[,nth=N|all][,from=SIZE][,by=DURATION][,kernel=NAME][,memory=device|gtt|user] "
               "with a kind of "
               "allocation-fails, queue-fails, kernel-faults, copy-slow, copy-corrupt");
}

result<void> apply_option(fault_spec& fault, std::string_view name, std::string_view value) {
  if (name == "nth") {
    if (value == "all") {
      fault.nth = 0;
      return {};
    }
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), fault.nth);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size() || fault.nth == 0) {
      return bad_fault(fmt::format("'{}' is no count from 1 on", value));
    }
    return {};
  }
  if (name == "from") {
    const auto bytes = try_parse_bytes(value);
    fault.at_least = bytes ? *bytes : 0;
    return bytes ? result<void>() : result<void>(bytes.error());
  }
  if (name == "by" && fault.kind == fault_kind::copy_slow) {
    const auto delay = try_parse_duration(value);
    fault.delay_ns = delay ? static_cast<std::uint64_t>(delay->count()) : 0;
    return delay ? result<void>() : result<void>(delay.error());
  }
  if (name == "kernel" && fault.kind == fault_kind::kernel_faults) {
    fault.only = value;
    return {};
  }
  if (name == "memory" && fault.kind == fault_kind::allocation_fails) {
    constexpr std::array<std::string_view, 3> kinds = {"device", "gtt", "user"};
    fault.only = value;
    return std::find(kinds.begin(), kinds.end(), value) != kinds.end()
               ? result<void>()
               : result<void>(bad_fault(fmt::format("'{}' is no kind of memory", value)));
  }
  return bad_fault(fmt::format("{} has no option '{}'", to_string(fault.kind), name));
}

}  // namespace

result<program_end> run_on(const machine_plan& plan, const launch_request& request) {
  auto spec = spec_of(plan);
  auto memory = make_shared_memory(spec.slice_bytes);
  if (!memory) {
    return memory.error();
  }
  spec.memory_file = fmt::format("/proc/{}/fd/{}", ::getpid(), memory->get());
  spec.faults = request.faults;
  spec.trace_file = absolute(request.trace_file);
  spec.kernel_library = absolute(request.kernel_library);
  for (const auto& path : {spec.trace_file, spec.kernel_library}) {
    if (path.find('\n') != std::string::npos) {
      return error(errc::usage, "a path with a line break", path);
    }
  }
  if (!spec.trace_file.empty()) {
    const descriptor file(
        ::open(spec.trace_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) {
      return error(errc::file_unwritable, system_text(errno), spec.trace_file);
    }
  }
  const held_signals signals;  // outlives the folder
  const auto overlay = overlay_folder::create();
  if (!overlay) {
    return overlay.error();
  }
  if (const auto written = write_overlay(*overlay, plan, spec); !written) {
    return written.error();
  }
  return start(request, overlay->root(), signals);
}

result<std::filesystem::path> find_preload_library() {
  constexpr std::string_view file = "libberth_emulator.so";
  std::vector<fs::path> places;
  if (const auto given = environment("BERTH_EMULATOR_LIBRARY"); !given.empty()) {
    places.emplace_back(given);
  }
  std::error_code ignored;
  const auto here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  places.push_back(here / file);
  places.push_back(here / ".." / "lib" / file);
  places.push_back(here / ".." / "lib" / "berth" / file);
#ifdef BERTH_EMULATOR_INSTALLED
  places.emplace_back(BERTH_EMULATOR_INSTALLED);
#endif
  for (const auto& place : places) {
    if (fs::exists(place, ignored)) {
      return fs::canonical(place, ignored);
    }
  }
  return error(errc::file_unreadable, "not found", std::string(file),
               "BERTH_EMULATOR_LIBRARY can say where it is");
}

result<fault_spec> parse_fault(std::string_view text) {
  const auto end = std::min(text.find(','), text.size());
  const auto kind = parse_fault_kind(text.substr(0, end));
  if (!kind) {
    return bad_fault(fmt::format("'{}' is no fault", text.substr(0, end)));
  }
  fault_spec fault{.kind = *kind, .nth = 1, .at_least = 0, .delay_ns = 0, .only = {}};
  text.remove_prefix(std::min(end + 1, text.size()));
  while (!text.empty()) {
    const auto stop = std::min(text.find(','), text.size());
    const auto option = text.substr(0, stop);
    const auto equals = option.find('=');
    if (equals == std::string_view::npos) {
      return bad_fault(fmt::format("'{}' is no NAME=VALUE", option));
    }
    if (const auto applied =
            apply_option(fault, option.substr(0, equals), option.substr(equals + 1));
        !applied) {
      return applied.error();
    }
    text.remove_prefix(std::min(stop + 1, text.size()));
  }
  if (fault.kind == fault_kind::copy_slow && fault.delay_ns == 0) {
    return bad_fault("copy-slow needs by=DURATION");
  }
  return fault;
}

}  // namespace berth::emulator
