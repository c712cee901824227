// SPDX-License-Identifier: Apache-2.0
// The tables behind hip/abi.hpp.
#include "runtime/hip/abi.hpp"

#include <array>

namespace berth::runtime::hip {
namespace {

constexpr std::array runtime_symbols{
#define BERTH_HIP BERTH_AS_SYMBOL
#include "gpu_api.def"
};
constexpr std::array compiler_symbols{
#define BERTH_HIPRTC BERTH_AS_SYMBOL
#include "gpu_api.def"
};

}  // namespace

std::span<const symbol> api::symbols() noexcept {
  return runtime_symbols;
}

void api::store(std::size_t index, void* pointer) noexcept {
  std::size_t row = 0;
#define BERTH_HIP BERTH_AS_STORE
#include "gpu_api.def"
}

std::span<const symbol> compiler_api::symbols() noexcept {
  return compiler_symbols;
}

void compiler_api::store(std::size_t index, void* pointer) noexcept {
  std::size_t row = 0;
#define BERTH_HIPRTC BERTH_AS_STORE
#include "gpu_api.def"
}

}  // namespace berth::runtime::hip
