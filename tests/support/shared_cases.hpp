// SPDX-License-Identifier: Apache-2.0
// Test cases that are not part of the repository: a folder of them may lie beside the checkout, or
// where the environment variable BERTH_SHARED says. A test that needs one skips without it, with a
// message that scripts/test.sh counts.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <gtest/gtest.h>

namespace berth::test {

// Where the shared case would lie: "cases/i01_META.txt".
inline std::filesystem::path shared_case(std::string_view name) {
  const char* folder = std::getenv("BERTH_SHARED");
  const auto root = folder != nullptr ? std::filesystem::path(folder)
                                      : std::filesystem::path(BERTH_SOURCE_DIR) / ".." / "shared";
  return root / name;
}

}  // namespace berth::test

// Skips the test if the shared case at `path` is absent.
#define BERTH_REQUIRE_SHARED(path)                                                \
  if (!std::filesystem::exists(path)) {                                           \
    GTEST_SKIP() << "shared case absent: " << (path).lexically_normal().string(); \
  }
