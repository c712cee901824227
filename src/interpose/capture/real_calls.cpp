// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/real_calls.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "interpose/capture/kept_errno.hpp"

namespace berth::interpose {
namespace {

// Set once each, and never taken back: runtimes are kept mapped.
std::array<std::atomic<void*>, call_count> functions{};
std::array<std::atomic<bool>, call_count> looked_for{};

constexpr auto by_name = [] {
  std::array<std::pair<std::string_view, call_id>, call_count> sorted{};
  for (std::size_t index = 0; index < call_count; ++index) {
    sorted[index] = {call_rows[index].name, static_cast<call_id>(index)};
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return sorted;
}();

std::atomic<void*>& function_of(call_id call) noexcept {
  return functions[static_cast<std::size_t>(call)];
}

// The object that a function is in; empty where that is unknown.
std::string_view object_of(const void* function) noexcept {
  Dl_info found{};
  return ::dladdr(function, &found) != 0 && found.dli_fname != nullptr
             ? std::string_view(found.dli_fname)
             : std::string_view{};
}

const void* base_of(const void* function) noexcept {
  Dl_info found{};
  return ::dladdr(function, &found) != 0 ? found.dli_fbase : nullptr;
}

bool is_our_own(const void* function) noexcept {
  static const void* const own = base_of(reinterpret_cast<const void*>(&real_call));
  return base_of(function) == own;
}

// Keeps an object for good. What is mapped already is not opened anew.
void* keep(const char* path) noexcept {
  return ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

// The same for a function's, in whichever namespace of the loader (dlmopen) it is.
bool keep_object_of(const void* function) noexcept {
  Dl_info found{};
  link_map* object = nullptr;
  Lmid_t space = LM_ID_BASE;
  return ::dladdr1(function, &found, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0 &&
         object != nullptr && ::dlinfo(object, RTLD_DI_LMID, &space) == 0 &&
         ::dlmopen(space, object->l_name, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

struct wanted_object {
  std::string_view name_begin;
  std::array<char, 1024> path{};
};

int match_object(dl_phdr_info* object, std::size_t, void* state) {
  auto& wanted = *static_cast<wanted_object*>(state);
  const std::string_view path(object->dlpi_name == nullptr ? "" : object->dlpi_name);
  if (!path.substr(path.rfind('/') + 1).starts_with(wanted.name_begin) ||
      path.size() >= wanted.path.size()) {
    return 0;
  }
  std::memcpy(wanted.path.data(), path.data(), path.size());
  return 1;
}

void* find_in_mapped(const call_row& row) noexcept {
  const auto mapped = find_mapped_runtimes();
  for (std::size_t index = 0; index < mapped.count; ++index) {
    const auto& one = mapped.found[index];
    void* const handle = one.api == row.api ? keep(one.path.data()) : nullptr;
    void* const found = handle == nullptr ? nullptr : real_dlsym()(handle, row.name.data());
    if (found != nullptr && !is_our_own(found)) {
      return found;
    }
  }
  return nullptr;
}

// The next library in the order of loading first: one that wraps the runtime's calls must not be
// left out.
void* find_real(call_id call) noexcept {
  const kept_errno kept;
  const auto& row = row_of(call);
  // The names are literals, so they end with a zero.
  void* const next = real_dlsym()(RTLD_NEXT, row.name.data());
  return next != nullptr && !is_our_own(next) ? next : find_in_mapped(row);
}

}  // namespace

lookup real_dlsym() noexcept {
  static std::atomic<void*> known{nullptr};
  void* found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
      found = ::dlvsym(RTLD_NEXT, "dlsym", version);
      if (found != nullptr) {
        break;
      }
    }
    known.store(found);
  }
  return reinterpret_cast<lookup>(found);
}

void* open_mapped(const char* name_begin) noexcept {
  wanted_object wanted{.name_begin = name_begin};
  return ::dl_iterate_phdr(match_object, &wanted) == 0 ? nullptr : keep(wanted.path.data());
}

void* real_call(call_id call) noexcept {
  auto& known = function_of(call);
  if (void* const found = known.load(std::memory_order_acquire)) {
    return found;
  }
  void* const found = find_real(call);
  if (found == nullptr) {
    return nullptr;
  }
  void* expected = nullptr;
  return known.compare_exchange_strong(expected, found) ? found : expected;
}

remembered remember(call_id call, void* function) noexcept {
  auto& known = function_of(call);
  const void* const before = known.load(std::memory_order_acquire);
  if (before == function) {
    return remembered::as_before;
  }
  const kept_errno kept;
  const auto object = object_of(function);
  if (!runtime_of_path(object).is_one) {
    return remembered::foreign;
  }
  if (before == nullptr && keep_object_of(function)) {
    void* expected = nullptr;
    if (known.compare_exchange_strong(expected, function) || expected == function) {
      return remembered::as_before;
    }
  }
  return remembered::another_copy;
}

call_id find_call(const char* name) noexcept {
  const std::string_view wanted(name);
  const auto* const found =
      std::lower_bound(by_name.begin(), by_name.end(), wanted,
                       [](const auto& one, std::string_view text) { return one.first < text; });
  return found != by_name.end() && found->first == wanted ? found->second : call_id::none;
}

bool has_real_call_in(api which, const char* path) noexcept {
  for (std::size_t index = 1; index < call_count; ++index) {
    const void* const known = functions[index].load(std::memory_order_relaxed);
    if (known != nullptr && call_rows[index].api == which && object_of(known) == path) {
      return true;
    }
  }
  return false;
}

call_id find_function(api which, const void* function) noexcept {
  for (std::size_t index = 1; index < call_count; ++index) {
    const auto call = static_cast<call_id>(index);
    if (call_rows[index].api != which) {
      continue;
    }
    // Two threads may look at once; neither takes "not known yet" for an answer.
    if (!looked_for[index].load(std::memory_order_acquire)) {
      static_cast<void>(real_call(call));
      looked_for[index].store(true, std::memory_order_release);
    }
    if (function_of(call).load(std::memory_order_relaxed) == function) {
      return call;
    }
  }
  return call_id::none;
}

}  // namespace berth::interpose
