// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/fix_gate.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "interpose/capture/clock.hpp"
#include "interpose/capture/coverage.hpp"
#include "interpose/capture/environment.hpp"
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
std::atomic<fix::give_back_function> engine_give_back{nullptr};  // likewise
std::atomic<fix::pinned_function> engine_pinned{nullptr};        // likewise
std::atomic<std::uint64_t> last_fixed_ns{0};                     // 0: no rings since the last
std::atomic<std::uint64_t> idle_ns{0};                           // 0: rings stay
std::atomic<std::uint64_t> pinned_budget{0};                     // bytes; 0: nothing is kept
std::atomic<int> captures{0};                                    // under way
std::atomic<std::uint64_t> reused_blocks{0};
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

constexpr std::uint64_t second_in_ns = 1'000'000'000;
constexpr std::uint64_t default_idle_seconds = 10;
// Of seconds, or MiB: more is no sensible setting.
constexpr std::uint64_t most_of_a_setting = 1U << 20U;

// What is no number counts as not set.
std::uint64_t number_or(const char* name, std::uint64_t otherwise) noexcept {
  const auto word = variable(name);
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  return failure == std::errc{} && end == word.data() + word.size() && value <= most_of_a_setting
             ? value
             : otherwise;
}

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
  const auto find = [library](const char* name) {
    return library == nullptr ? nullptr : real_dlsym()(library, name);
  };
  engine_end.store(reinterpret_cast<fix::end_function>(find(fix::end_function_name)));
  engine_give_back.store(
      reinterpret_cast<fix::give_back_function>(find(fix::give_back_function_name)));
  engine_pinned.store(reinterpret_cast<fix::pinned_function>(find(fix::pinned_function_name)));
  const auto function = reinterpret_cast<fix::copy_function>(find(fix::copy_function_name));
  engine.store(function);
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

// Asks the library for a step; false also where there is none.
bool step_pinned(fix::pinned_request& what, const void* real) noexcept {
  const kept_errno kept;
  what.library = library_of(what.of, real);
  if (what.library == nullptr || !is_own_process() || pass_door() != fix::pass::none) {
    return false;
  }
  what.budget = pinned_budget.load(std::memory_order_relaxed);
  const auto function = engine_pinned.load(std::memory_order_relaxed);
  return function != nullptr && function(&what);
}

fix::pinned_request pinned_request_of(fix::pinned_step step, const pinned_block& block,
                                      void* memory) noexcept {
  fix::pinned_request made;
  made.step = step;
  made.of = row_of(block.call).api == api::hip ? fix::runtime::hip : fix::runtime::cuda;
  made.call = static_cast<std::uint32_t>(block.call);
  made.flags = block.flags;
  made.bytes = block.bytes;
  made.memory = memory;
  return made;
}

}  // namespace

void start_fixing() noexcept {
  const auto wanted = fixing_of(variable("BERTH_FIX"));
  idle_ns.store(number_or("BERTH_FIX_IDLE", default_idle_seconds) * second_in_ns);
  pinned_budget.store(wanted == fixing::off ? 0 : number_or("BERTH_FIX_PINNED", 0) << 20U);
  mode.store(wanted);
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

void note_idle_device() noexcept {
  const auto last = last_fixed_ns.load(std::memory_order_relaxed);
  const auto after = idle_ns.load(std::memory_order_relaxed);
  // Unregistering would spoil a capture of another thread.
  if (last == 0 || after == 0 || monotonic_ns() - last < after || captures.load() > 0 ||
      !is_own_process()) {
    return;
  }
  const auto give_back = engine_give_back.load();
  if (last_fixed_ns.exchange(0) != 0 && door.load() == gate::open && give_back != nullptr) {
    const kept_errno kept;
    give_back();
  }
}

bool keeps_pinned() noexcept {
  return pinned_budget.load(std::memory_order_relaxed) > 0;
}

bool take_pinned(const pinned_block& wanted, void*& memory, const void* real) noexcept {
  auto what = pinned_request_of(fix::pinned_step::take, wanted, nullptr);
  if (!step_pinned(what, real)) {
    return false;
  }
  memory = what.memory;
  reused_blocks.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void note_pinned(const pinned_block& made, void* memory, const void* real) noexcept {
  auto what = pinned_request_of(fix::pinned_step::note, made, memory);
  static_cast<void>(step_pinned(what, real));
}

bool keep_pinned(call_id call, void* memory, const void* real) noexcept {
  // A block that the runtime gets back must be forgotten in any case.
  auto what =
      pinned_request_of(captures.load() > 0 ? fix::pinned_step::forget : fix::pinned_step::keep,
                        {.call = call}, memory);
  return memory != nullptr && step_pinned(what, real);
}

bool release_pinned(const pinned_block& wanted, const void* real) noexcept {
  auto what = pinned_request_of(fix::pinned_step::release, wanted, nullptr);
  return step_pinned(what, real);
}

void note_capture_begun() noexcept {
  captures.fetch_add(1);
}

void note_capture_ended() noexcept {
  auto seen = captures.load();
  while (seen > 0 && !captures.compare_exchange_weak(seen, seen - 1)) {
  }
}

fix_counts count_fixed() noexcept {
  fix_counts counts{.mode = fixing_now(),
                    .copies = fixed_copies.load(),
                    .bytes = fixed_bytes.load(),
                    .differed = differing_copies.load(),
                    .reused = reused_blocks.load()};
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
  last_fixed_ns.store(monotonic_ns(), std::memory_order_relaxed);
  fixed_copies.fetch_add(1, std::memory_order_relaxed);
  fixed_bytes.fetch_add(what.bytes, std::memory_order_relaxed);
  return true;
}

}  // namespace berth::interpose
