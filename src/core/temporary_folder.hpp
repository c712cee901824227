// SPDX-License-Identifier: Apache-2.0
// A private folder of temporary files that goes with the object.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "berth/result.hpp"

namespace berth {

class temporary_folder {
public:
  // "berth-PURPOSE-XXXXXX" in TMPDIR, or in /tmp. @errors file_unwritable
  [[nodiscard]] static result<temporary_folder> create(std::string_view purpose);
  temporary_folder(temporary_folder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  temporary_folder& operator=(temporary_folder&&) = delete;
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { remove(); }

  // Absolute.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  void remove() noexcept;

private:
  explicit temporary_folder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace berth
