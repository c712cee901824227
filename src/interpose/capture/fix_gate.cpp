// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/fix_gate.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "interpose/capture/coverage.hpp"
#include "interpose/capture/kept_errno.hpp"
#include "interpose/capture/real_calls.hpp"

namespace berth::interpose {
namespace {

enum class gate : std::uint8_t { closed, opening, open, none };

// The state that all calls share.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): nobody can hand it over
std::atomic<fixing> mode{fixing::off};
std::atomic<gate> door{gate::closed};
std::atomic<fix::copy_function> engine{nullptr};     // written before the door is open
std::atomic<fix::end_function> engine_end{nullptr};  // likewise
std::atomic<pid_t> owner{0};                         // who has opened the door; 0: nobody yet
std::atomic<std::uint64_t> fixed_copies{0};
std::atomic<std::uint64_t> fixed_bytes{0};
std::atomic<std::uint64_t> differing_copies{0};
std::array<std::atomic<std::uint64_t>, fix::pass_count> passed_copies{};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

// Where calls of an interface go: the runtime's file, found once.
struct target {
  std::array<char, 1024> path{};
  std::atomic<bool> is_known{false};
  std::atomic<bool> is_being_found{false};
};
std::array<target, 2> targets{};  // NOLINT: as above

// libberth_fix.so lies beside this library.
bool find_engine(std::array<char, 4096>& path) noexcept {
  constexpr std::string_view file = "libberth_fix.so";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read only
  const char* const named = std::getenv("BERTH_FIX_LIBRARY");
  if (named != nullptr && *named != '\0') {
    const std::string_view whole(named);
    if (whole.size() >= path.size()) {
      return false;
    }
    std::memcpy(path.data(), whole.data(), whole.size());
    return true;
  }
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&find_engine), &own) == 0 ||
      own.dli_fname == nullptr) {
    return false;
  }
  const std::string_view here(own.dli_fname);
  const auto folder = here.substr(0, here.rfind('/') + 1);  // npos + 1 is 0
  if (folder.empty() || folder.size() + file.size() >= path.size()) {
    return false;
  }
  std::memcpy(path.data(), folder.data(), folder.size());
  std::memcpy(path.data() + folder.size(), file.data(), file.size());
  return true;
}

void open_door() noexcept {
  std::array<char, 4096> path{};
  void* const library = find_engine(path) ? ::dlopen(path.data(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* const function =
      library == nullptr ? nullptr : real_dlsym()(library, fix::copy_function_name);
  engine.store(reinterpret_cast<fix::copy_function>(function));
  engine_end.store(reinterpret_cast<fix::end_function>(
      library == nullptr ? nullptr : real_dlsym()(library, fix::end_function_name)));
  door.store(function == nullptr ? gate::none : gate::open, std::memory_order_release);
}

// `pass::none`: the engine can be asked.
fix::pass pass_door() noexcept {
  auto seen = door.load(std::memory_order_acquire);
  if (seen == gate::closed && door.compare_exchange_strong(seen, gate::opening)) {
    owner.store(::getpid());
    open_door();
    seen = door.load();
  }
  switch (seen) {
    case gate::open:
      return fix::pass::none;
    case gate::none:
      return fix::pass::no_library;
    default:
      return fix::pass::opening;
  }
}

// Null where the function is in no runtime: a library that wraps its calls must not be left out.
const char* library_of(fix::runtime of, const void* function) noexcept {
  auto& known = targets[static_cast<std::size_t>(of)];
  if (!known.is_known.load(std::memory_order_acquire)) {
    if (known.is_being_found.exchange(true)) {
      return nullptr;
    }
    Dl_info found{};
    const auto path = ::dladdr(function, &found) != 0 && found.dli_fname != nullptr
                          ? std::string_view(found.dli_fname)
                          : std::string_view{};
    if (runtime_of_path(path).is_one && path.size() < known.path.size()) {
      std::memcpy(known.path.data(), path.data(), path.size());
    }
    known.is_known.store(true, std::memory_order_release);
  }
  return known.path[0] == '\0' ? nullptr : known.path.data();
}

// The child of a fork has its parent's engine, which is of no use to it. Where there was none yet,
// it may have one of its own.
bool is_own_process() noexcept {
  const auto who = owner.load(std::memory_order_relaxed);
  return who == 0 || who == ::getpid();
}

void note_passed(fix::pass why) noexcept {
  passed_copies[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
}

fix::outcome ask(fix::request& what, bool way_is_known, const void* real) noexcept {
  const auto early = fix::judge_call({.of = what.of,
                                      .bytes = what.bytes,
                                      .stream = what.stream,
                                      .way_is_known = way_is_known,
                                      .rows = what.rows,
                                      .dst_pitch = what.dst_pitch,
                                      .src_pitch = what.src_pitch,
                                      .is_own_process = is_own_process()});
  if (early != fix::pass::none) {
    return {.why = early};
  }
  what.library = library_of(what.of, real);
  if (what.library == nullptr) {
    return {.why = fix::pass::other_runtime};
  }
  if (const auto why = pass_door(); why != fix::pass::none) {
    return {.why = why};
  }
  fix::outcome how;
  engine.load(std::memory_order_relaxed)(&what, &how);
  return how;
}

}  // namespace

void start_fixing() noexcept {
  const char* const word = std::getenv("BERTH_FIX");  // NOLINT(concurrency-mt-unsafe)
  mode.store(fixing_of(word == nullptr ? std::string_view{} : std::string_view(word)));
}

fixing fixing_now() noexcept {
  return mode.load(std::memory_order_relaxed);
}

void end_fixing() noexcept {
  const kept_errno kept;
  const auto end = door.load() == gate::open ? engine_end.load() : nullptr;
  if (end != nullptr && is_own_process()) {
    end();
  }
}

fix_counts count_fixed() noexcept {
  fix_counts counts{.mode = fixing_now(),
                    .copies = fixed_copies.load(),
                    .bytes = fixed_bytes.load(),
                    .differed = differing_copies.load()};
  for (std::size_t index = 0; index < fix::pass_count; ++index) {
    counts.passed[index] = passed_copies[index].load();
  }
  return counts;
}

bool fix_copy(fix::request& what, bool way_is_known, const void* real) noexcept {
  const kept_errno kept;
  what.check = fixing_now() == fixing::checked ? fix::self_check::every_copy : fix::self_check::off;
  const auto how = ask(what, way_is_known, real);
  if (how.differed) {
    differing_copies.fetch_add(1, std::memory_order_relaxed);
  }
  if (how.why != fix::pass::none) {
    note_passed(how.why);
    return false;
  }
  fixed_copies.fetch_add(1, std::memory_order_relaxed);
  fixed_bytes.fetch_add(what.bytes, std::memory_order_relaxed);
  return true;
}

}  // namespace berth::interpose
