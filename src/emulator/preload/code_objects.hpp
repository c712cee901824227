// SPDX-License-Identifier: Apache-2.0
// Which kernel a dispatch packet runs. A packet names a kernel by the address of its descriptor;
// AMD's runtime lists where it has loaded code objects for debuggers (`_amdgpu_r_debug`), and the
// dynamic symbols of what was loaded give the names. They are read in device memory: the file or
// image that an object came from may be gone by the time that a kernel of it runs.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace berth::emulator {

struct emulated_machine;

class code_objects {
public:
  // Empty where no loaded code object has it: a kernel that the runtime itself put together.
  [[nodiscard]] std::string kernel_at(const emulated_machine& machine, std::uint64_t descriptor);

private:
  struct symbol {
    std::uint64_t name_address = 0;  // in device memory, to see whether it is still the same
    std::string name;
  };

  void read_loaded(const emulated_machine& machine);
  void read_symbols(const emulated_machine& machine, std::uint64_t load_address);

  std::mutex lock_;
  std::map<std::uint64_t, symbol> symbols_;  // by descriptor
};

}  // namespace berth::emulator
