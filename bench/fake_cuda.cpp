// SPDX-License-Identifier: Apache-2.0
// A library with the CUDA driver's calls of spec/gpu_api.def. Each succeeds and does nothing, but
// for those that berth needs answers of (fake_cuda_answers.cpp).
#include "runtime/cuda/abi.hpp"

// Every call takes all of its parameters and uses none.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace berth::runtime::cuda {

// Weak, so that the definitions of fake_cuda_answers.cpp take their places.
#define BERTH_CUDA(name, need, since, operation, result, parameters, roles)     \
  extern "C" [[gnu::weak, gnu::visibility("default")]] result name parameters { \
    return {};                                                                  \
  }
#include "gpu_api.def"

}  // namespace berth::runtime::cuda
