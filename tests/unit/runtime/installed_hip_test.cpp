// SPDX-License-Identifier: Apache-2.0
// Against the HIP runtime of this machine, where there is one; skipped and counted where not.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/hip/driver.hpp"
#include "runtime/hip/kernels.hpp"

namespace berth::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(installed_hip, without_a_gpu_reports_no_device) {
  candidate seen;
  const auto made = hip::open_driver(system_linker(), seen);
  if (seen.library.empty()) {
    GTEST_SKIP() << "no HIP runtime here: " << made.error().message();
  }
  if (made) {
    GTEST_SKIP() << "this machine has an AMD GPU";
  }
  EXPECT_EQ(made.error().code(), errc::gpu_no_device) << made.error().to_string();
  EXPECT_THAT(made.error().message(), HasSubstr("hipErrorNoDevice (100)"));
  EXPECT_THAT(seen.library, HasSubstr("libamdhip64"));
  ASSERT_TRUE(seen.version.has_value());
  EXPECT_GE(seen.version->major, 5);
}

class installed_compiler : public ::testing::TestWithParam<const char*> {};

TEST_P(installed_compiler, compiles_the_kernels) {
  candidate seen;
  static_cast<void>(hip::open_driver(system_linker(), seen));
  if (seen.library.empty()) {
    GTEST_SKIP() << "no HIP runtime here";
  }
  void* library = system_linker().open(seen.library.c_str());
  ASSERT_NE(library, nullptr);
  const auto compiler = hip::load_compiler(library, seen.version->major, system_linker());
  if (!compiler) {
    GTEST_SKIP() << "no run-time compiler here: " << compiler.error().message();
  }
  const auto image = hip::compile_kernels(*compiler, GetParam());
  ASSERT_TRUE(image) << image.error().to_string();
  for (const char* name : kernel_names) {
    EXPECT_THAT(*image, HasSubstr(name));
  }
}

INSTANTIATE_TEST_SUITE_P(models, installed_compiler,
                         ::testing::Values("gfx906", "gfx908", "gfx90a", "gfx1030"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace berth::runtime
