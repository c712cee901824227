// SPDX-License-Identifier: Apache-2.0
#include "memory/cgroup.hpp"

#include <fstream>

namespace berth::memory {

std::string cgroup_folder() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) {
      return line.substr(3);
    }
  }
  return "/";
}

}  // namespace berth::memory
