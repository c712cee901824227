// SPDX-License-Identifier: Apache-2.0
// A CUDA driver library of a test's making, with the rule that matters most: nearly every call
// needs a context current in the thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/abi.hpp"
#include "unit/runtime/fake_linker.hpp"

namespace berth::runtime::testing {

struct fake_cuda {
  int version = 13000;
  int init_status = 0;
  void* current = nullptr;          // the context; one of &contexts[device]
  std::vector<int> contexts{0, 0};  // how often each device's primary context is retained
  std::map<int, int> attributes;
  std::map<const void*, int> pointers;  // address -> memory type; 100 means managed
  std::map<std::string, int> next_status;
  std::vector<std::string> log;
  cuda::copy_2d_t last_2d{};
  std::size_t free_bytes = 1000;

  fake_cuda();
  ~fake_cuda();
  fake_cuda(const fake_cuda&) = delete;
  fake_cuda& operator=(const fake_cuda&) = delete;

  static fake_library library();
};

}  // namespace berth::runtime::testing
