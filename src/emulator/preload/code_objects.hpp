// SPDX-License-Identifier: Apache-2.0
// Which kernel a dispatch packet runs. A packet names a kernel by the address of its descriptor;
// AMD's runtime lists the code objects that it has loaded for debuggers (`_amdgpu_r_debug`), and
// their symbol tables give the names.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace berth::emulator {

class code_objects {
public:
  // Empty where no loaded code object has it: a kernel that the runtime itself put together.
  [[nodiscard]] std::string kernel_at(std::uint64_t descriptor);

private:
  void read_new_objects();
  void read_object(const std::string& location, std::uint64_t load_address);
  void read_symbols(const std::vector<char>& object, std::uint64_t load_address);

  std::mutex lock_;
  std::map<std::uint64_t, std::string> names_;    // by descriptor
  std::map<std::uint64_t, std::string> objects_;  // by load address: where it came from
};

}  // namespace berth::emulator
