// SPDX-License-Identifier: Apache-2.0
#include "core/temporary_folder.hpp"

#include <filesystem>
#include <utility>

#include <gtest/gtest.h>

namespace berth {
namespace {

namespace fs = std::filesystem;

TEST(temporary_folder_suite, goes_with_its_object) {
  fs::path path;
  {
    auto folder = temporary_folder::create("run").value();
    path = folder.path();
    const auto moved = std::move(folder);
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(temporary_folder_suite, says_for_what_it_is) {
  const auto folder = temporary_folder::create("test").value();
  EXPECT_TRUE(folder.path().is_absolute());
  EXPECT_TRUE(folder.path().filename().string().starts_with("berth-test-"));
}

}  // namespace
}  // namespace berth
