// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/kernel_hooks.hpp"

#include <dlfcn.h>

#include "emulator/preload/system.hpp"

namespace berth::emulator {

kernel_hooks::kernel_hooks(const std::string& library) {
  if (library.empty()) {
    return;
  }
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe): this thread's
    say(std::string("no kernels from ") + library + ": " + (why != nullptr ? why : "unknown"));
  }
}

kernel_hook* kernel_hooks::find(const std::string& kernel) {
  const auto known = found_.find(kernel);
  if (known != found_.end()) {
    return known->second;
  }
  const auto symbol = "berth_emulated_" + kernel;
  void* address = dlsym(RTLD_DEFAULT, symbol.c_str());
  if (address == nullptr && library_ != nullptr) {
    address = dlsym(library_, symbol.c_str());
  }
  auto* const hook = reinterpret_cast<kernel_hook*>(address);
  if (hook != nullptr) {
    found_.emplace(kernel, hook);  // a missing one may still come with a library
  }
  return hook;
}

}  // namespace berth::emulator
