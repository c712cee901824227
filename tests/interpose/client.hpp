// SPDX-License-Identifier: Apache-2.0
// Runs a program with the recorder or without, and reads what was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/recorded_file.hpp"
#include "support/scratch.hpp"

namespace berth::test {

using variables = std::vector<std::pair<std::string, std::string>>;

struct ending {
  int status = -1;  // 128 + the number of a signal
  std::string out;
  std::string err;

  friend bool operator==(const ending&, const ending&) = default;
};

// What a stand-in has counted.
struct counted {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
};

// One program, to run several times; its recordings lie in a folder of its own.
class client {
public:
  explicit client(std::vector<std::string> words, variables more = {})
      : words_(std::move(words)), more_(std::move(more)) {}

  [[nodiscard]] ending run_alone();
  [[nodiscard]] ending run_recorded();
  // Started and not waited for; with the recorder.
  [[nodiscard]] int start_recorded();

  // Expects that the program does the same with the recorder as without. What it recorded:
  recorded_file record();
  // All recordings, in order of their names.
  [[nodiscard]] std::vector<recorded_file> recordings() const;
  [[nodiscard]] recorded_file recording() const;
  [[nodiscard]] counted hip_counts() const;
  [[nodiscard]] counted cuda_counts() const;
  [[nodiscard]] const scratch& traces() const { return traces_; }

private:
  [[nodiscard]] int start(bool recorded, const scratch& output);
  std::vector<std::string> words_;
  variables more_;
  scratch traces_;
  scratch counts_;
};

// A test program or library: "linked", "amdhip64/libamdhip64.so.5".
[[nodiscard]] std::string program(std::string_view name);

[[nodiscard]] client linked(std::vector<std::string> arguments, variables more = {});
[[nodiscard]] client opened(std::vector<std::string> arguments, variables more = {});

inline const std::string hip_library = "amdhip64/libamdhip64.so.5";
inline const std::string cuda_library = "cuda/libcuda.so.1";

// How many bytes programs/hip_calls.hpp copies in so many calls.
[[nodiscard]] constexpr std::uint64_t bytes_of(int copies) {
  std::uint64_t bytes = 0;
  for (int index = 0; index < copies; ++index) {
    bytes += static_cast<std::uint64_t>(index % 29) + 1;
  }
  return bytes;
}

}  // namespace berth::test
