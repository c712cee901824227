// SPDX-License-Identifier: Apache-2.0
// The ground truth that the emulator has written, and what a program says that it did.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace berth::test {

// A file name of this test's own, removed with the object.
class temporary_file {
public:
  explicit temporary_file(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("berth-test-" + std::to_string(getpid()) + "-" + name)) {}
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] std::string string() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

inline std::vector<nlohmann::json> read_trace(const std::string& path) {
  std::vector<nlohmann::json> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

// What was moved: single moves by direction ("fill" for fills) and size, and the bytes in all.
struct movements {
  std::map<std::pair<std::string, std::uint64_t>, int> single;
  std::map<std::string, std::uint64_t> bytes;
  // Of those, the bytes that may come in pieces.
  std::map<std::string, std::uint64_t> in_pieces;
  std::map<std::uint64_t, int> allocations;

  void add(const std::string& direction, std::uint64_t size) {
    ++single[{direction, size}];
    bytes[direction] += size;
  }
};

inline movements claimed_by(const std::string& output) {
  movements claims;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string did;
    std::string what;
    words >> did >> what;
    if (did != "did") {
      continue;
    }
    std::string direction = "fill";
    std::uint64_t size = 0;
    if (what == "copy" || what == "copies") {
      words >> direction;
    }
    words >> size;
    if (what == "allocate") {
      ++claims.allocations[size];
    } else if (what == "copies" || what == "fills") {
      claims.bytes[direction] += size;
      claims.in_pieces[direction] += size;
    } else {
      claims.add(direction, size);
    }
  }
  return claims;
}

// Without what the runtime does for itself: ROCr's kernels load code objects.
inline movements seen_in(const std::vector<nlohmann::json>& trace) {
  movements seen;
  for (const auto& record : trace) {
    const auto kind = record.at("record").get<std::string>();
    const bool of_rocr = record.value("kernel", "").starts_with("rocr");
    if (kind == "copy" && !of_rocr) {
      seen.add(record.at("direction"), record.at("bytes"));
    } else if (kind == "fill" && !of_rocr) {
      seen.add("fill", record.at("bytes"));
    } else if (kind == "alloc" && record.at("kind") == "device") {
      ++seen.allocations[record.at("bytes").get<std::uint64_t>()];
    }
  }
  return seen;
}

}  // namespace berth::test
