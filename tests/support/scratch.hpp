// SPDX-License-Identifier: Apache-2.0
// A folder for one test, and the recorder's settings for a file in it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/capture/settings.hpp"

namespace berth::test {

class scratch {
public:
  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-record-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  scratch(scratch&&) = delete;
  scratch& operator=(scratch&&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string file(std::string_view name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string folder() const { return folder_.string(); }
  // Full paths, in order.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

private:
  std::filesystem::path folder_;
};

[[nodiscard]] inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[nodiscard]] inline interpose::settings settings_for(std::string_view path) {
  interpose::settings how;
  std::memcpy(how.path.data(), path.data(), path.size());
  return how;
}

}  // namespace berth::test
