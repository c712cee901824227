// SPDX-License-Identifier: Apache-2.0
// Names for the addresses of another process: "upload (model.cpp:12)", "upload in libmodel.so",
// "libmodel.so+0x1234". What is named so depends on what is still on this machine: a file whose
// build id is another one gives no names. Nothing is fetched from a network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace berth::trace {

// A part of a file that the process had mapped.
struct mapped_file {
  std::uint64_t begin = 0;
  std::uint64_t offset = 0;  // in the file, of `begin`
  std::string path;
  std::string build_id;  // hexadecimal; empty: the file has none
};

struct symbol_files;

class symbols {
public:
  symbols();
  ~symbols();
  symbols(const symbols&) = delete;
  symbols& operator=(const symbols&) = delete;

  // Of an address within `file` where a call returns to: it is the call's line that is named.
  // Reads the file when it is first asked for.
  [[nodiscard]] std::string name_of(const mapped_file& file, std::uint64_t address);

private:
  std::unique_ptr<symbol_files> files_;
};

// The readable form of a mangled name, without its parameters; the name itself if it is not
// mangled.
[[nodiscard]] std::string demangled(std::string_view name);

}  // namespace berth::trace
