// SPDX-License-Identifier: Apache-2.0
// The calls by which a program begins to use CUPTI: the recorder stands aside, then they go on.
#include <dlfcn.h>

#include <array>
#include <string_view>

#include "interpose/capture/cupti.hpp"
#include "interpose/capture/process.hpp"
#include "interpose/capture/real_calls.hpp"
#include "interpose/preload/shims.hpp"

namespace {

constexpr int not_initialised = 15;  // CUPTI_ERROR_NOT_INITIALIZED

// Behind the recorder in the order of loading, or in a CUPTI that was opened with its names hidden.
void* real_entry(const char* name) noexcept {
  void* const found = berth::interpose::real_dlsym()(RTLD_NEXT, name);
  if (found != nullptr) {
    return found;
  }
  void* const handle = berth::interpose::open_mapped("libcupti.so");
  return handle == nullptr ? nullptr : berth::interpose::real_dlsym()(handle, name);
}

template <class... Arguments>
int enter(const char* name, Arguments... arguments) noexcept {
  berth::interpose::yield_device_times();
  auto* const real = reinterpret_cast<int (*)(Arguments...)>(real_entry(name));
  return real == nullptr ? not_initialised : real(arguments...);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are CUPTI's
using berth::interpose::buffer_callbacks;

extern "C" {

#define BERTH_SHOWN __attribute__((visibility("default")))

BERTH_SHOWN int cuptiActivityRegisterCallbacks(buffer_callbacks::request requested,
                                               buffer_callbacks::complete completed) {
  buffer_callbacks callbacks{requested, completed};
  berth::interpose::yield_device_times();
  berth::interpose::adopt_device_buffers(callbacks);
  return enter("cuptiActivityRegisterCallbacks", callbacks.requested, callbacks.completed);
}
BERTH_SHOWN int cuptiSubscribe(void* out_subscriber, void* callback, void* data) {
  return enter("cuptiSubscribe", out_subscriber, callback, data);
}
BERTH_SHOWN int cuptiSubscribe_v2(void* out_subscriber, void* callback, void* data, void* options) {
  return enter("cuptiSubscribe_v2", out_subscriber, callback, data, options);
}
}
// NOLINTEND(readability-identifier-naming)

namespace berth::interpose {

void* cupti_entry(const char* name) noexcept {
  struct entry {
    std::string_view name;
    void* function;
  };
  const std::array<entry, 3> entries{
      {{"cuptiActivityRegisterCallbacks", reinterpret_cast<void*>(&cuptiActivityRegisterCallbacks)},
       {"cuptiSubscribe", reinterpret_cast<void*>(&cuptiSubscribe)},
       {"cuptiSubscribe_v2", reinterpret_cast<void*>(&cuptiSubscribe_v2)}}};
  for (const auto& one : entries) {
    if (one.name == name) {
      return one.function;
    }
  }
  return nullptr;
}

}  // namespace berth::interpose
