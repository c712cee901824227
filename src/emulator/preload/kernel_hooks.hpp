// SPDX-License-Identifier: Apache-2.0
// Host functions in place of a program's kernels, found by name: see
// include/berth/emulated_kernel.hpp.
#pragma once

#include <map>
#include <string>

#include "berth/emulated_kernel.hpp"

namespace berth::emulator {

using kernel_hook = emulated_progress(emulated_launch*);

class kernel_hooks {
public:
  // With the functions of a library besides those that the program exports; empty: none.
  explicit kernel_hooks(const std::string& library);

  // Null where there is none. For the poller's thread only.
  [[nodiscard]] kernel_hook* find(const std::string& kernel);

private:
  void* library_ = nullptr;
  std::map<std::string, kernel_hook*> found_;
};

}  // namespace berth::emulator
