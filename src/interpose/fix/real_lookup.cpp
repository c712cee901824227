// SPDX-License-Identifier: Apache-2.0
// dlsym for this library alone: berth's drivers look the runtimes' calls up with it, and must not
// find the recorder's, which stand in front of them. The recorder leaves dlvsym alone.
#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

namespace {

using lookup = void* (*)(void* handle, const char* name);

lookup loaders_own() noexcept {
  static std::atomic<void*> known{nullptr};
  void* found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
      found = ::dlvsym(RTLD_NEXT, "dlsym", version);
      if (found != nullptr) {
        break;
      }
    }
    known.store(found, std::memory_order_relaxed);
  }
  return reinterpret_cast<lookup>(found);
}

}  // namespace

// The linker binds every use within the library to this one; exports.map hides it from all others.
extern "C" void* dlsym(void* handle, const char* name) noexcept {
  const auto real = loaders_own();
  return real == nullptr ? nullptr : real(handle, name);
}
