// SPDX-License-Identifier: Apache-2.0
// The functions that stand in front of the GPU runtimes', one for each row of spec/, and the tables
// to find them by.
#include <algorithm>
#include <array>
#include <cstddef>

#include "interpose/capture/interception.hpp"
#include "interpose/capture/process.hpp"
#include "interpose/preload/shims.hpp"

using namespace berth::interpose::abi;  // NOLINT: the tables name types without a namespace
using berth::interpose::call_id;
using berth::interpose::intercept;

#define BERTH_SHOWN __attribute__((visibility("default")))
// NOLINTBEGIN(readability-identifier-naming): the names are the runtimes'

namespace berth_hip {
using namespace berth::runtime::hip;  // NOLINT
using berth::runtime::cuda::location_t;
extern "C" {
#define BERTH_HIP(name, need, since, operation, result, parameters, words) \
  BERTH_SHOWN result name parameters {                                     \
    return intercept<call_id::name, result> words;                         \
  }
#include "gpu_api.def"
#define BERTH_SEEN_HIP(name, since, operation, parameters, words) \
  BERTH_SHOWN status name parameters {                            \
    return intercept<call_id::name, status> words;                \
  }
#include "seen_calls.def"
}
}  // namespace berth_hip

namespace berth_cuda {
using namespace berth::runtime::cuda;  // NOLINT
extern "C" {
#define BERTH_CUDA(name, need, since, operation, result, parameters, words) \
  BERTH_SHOWN result name parameters {                                      \
    return intercept<call_id::name, result> words;                          \
  }
#include "gpu_api.def"
#define BERTH_SEEN_CUDA(name, since, operation, parameters, words) \
  BERTH_SHOWN status name parameters {                             \
    return intercept<call_id::name, status> words;                 \
  }
#include "seen_calls.def"
}
}  // namespace berth_cuda
// NOLINTEND(readability-identifier-naming)

namespace berth::interpose {
namespace {

const std::array<void*, call_count> shims{
    nullptr,
#define BERTH_HIP(name, need, since, operation, result, parameters, words) \
  reinterpret_cast<void*>(&berth_hip::name),
#define BERTH_CUDA(name, need, since, operation, result, parameters, words) \
  reinterpret_cast<void*>(&berth_cuda::name),
#include "gpu_api.def"
#define BERTH_SEEN_HIP(name, since, operation, parameters, words) \
  reinterpret_cast<void*>(&berth_hip::name),
#define BERTH_SEEN_CUDA(name, since, operation, parameters, words) \
  reinterpret_cast<void*>(&berth_cuda::name),
#include "seen_calls.def"
};

bool is_shim(const void* function) noexcept {
  return function != nullptr && std::find(shims.begin(), shims.end(), function) != shims.end();
}

}  // namespace

void* shim_of(call_id call) noexcept {
  return shims[static_cast<std::size_t>(call)];
}

void* recording_function(api which, void* function, const char* name) noexcept {
  // A runtime that makes its table of its own symbols has the recording ones in it already.
  const bool is_ours = is_shim(function);
  const auto call = is_ours ? call_id::none : find_function(which, function);
  auto* const to = process_recorder();
  if (is_ours && to != nullptr) {
    to->note_reached(which, reached_by::driver_table);
  }
  if (is_ours) {
    return function;
  }
  if (call != call_id::none) {
    if (to != nullptr) {
      to->note_reached(which, reached_by::driver_table);
    }
    return shim_of(call);
  }
  if (const auto named = find_call(name);
      to != nullptr && named != call_id::none && is_recorded(named)) {
    to->note_missed(row_of(named).name.data());
  }
  return function;
}

}  // namespace berth::interpose
