// SPDX-License-Identifier: Apache-2.0
// A HIP runtime of a test's making: functions with HIP's own signatures over one state, so that the
// driver can be opened as any major version. It keeps the rules that the driver must respect: a
// current device for each thread, a last error that stays until it is read.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "unit/runtime/fake_linker.hpp"

namespace berth::runtime::testing {

struct fake_hip {
  int version = 60342131;
  int device_count = 2;
  int current = 0;
  int last_error = 0;
  std::map<int, int> attributes;           // by number; one that is not here fails
  std::map<const void*, int> pointers;     // address -> raw hipMemoryType
  std::map<std::string, int> next_status;  // of a call, once
  std::vector<std::string> log;            // calls with the arguments that matter
  std::size_t free_bytes = 1000;
  bool tells_base = true;  // hipMemGetAddressRange

  fake_hip();
  ~fake_hip();
  fake_hip(const fake_hip&) = delete;
  fake_hip& operator=(const fake_hip&) = delete;

  // All of its functions as a library.
  static fake_library library();
};

}  // namespace berth::runtime::testing
