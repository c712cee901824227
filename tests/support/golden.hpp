// SPDX-License-Identifier: Apache-2.0
// Golden files: what a rendering must look like, to the letter. BERTH_UPDATE_GOLDEN=1 writes them
// anew; then the diff is to be read.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace berth::test {

inline void expect_golden(std::string_view name, const std::string& actual) {
  const auto path = std::filesystem::path(BERTH_SOURCE_DIR) / "tests" / "golden" / name;
  if (const char* update = std::getenv("BERTH_UPDATE_GOLDEN");
      update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.is_open()) << path << " is missing: run with BERTH_UPDATE_GOLDEN=1";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str()) << path << ": BERTH_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace berth::test
