// SPDX-License-Identifier: Apache-2.0
// The tables behind cuda/abi.hpp.
#include "runtime/cuda/abi.hpp"

#include <array>

namespace berth::runtime::cuda {
namespace {

constexpr std::array driver_symbols{
#define BERTH_CUDA BERTH_AS_SYMBOL
#include "gpu_api.def"
};

}  // namespace

std::span<const symbol> api::symbols() noexcept {
  return driver_symbols;
}

void api::store(std::size_t index, void* pointer) noexcept {
  std::size_t row = 0;
#define BERTH_CUDA BERTH_AS_STORE
#include "gpu_api.def"
}

}  // namespace berth::runtime::cuda
