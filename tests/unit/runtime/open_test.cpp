// SPDX-License-Identifier: Apache-2.0
#include "runtime/open.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/runtime/fake_cuda.hpp"
#include "unit/runtime/fake_hip.hpp"

namespace berth::runtime {
namespace {

using ::testing::AllOf;
using testing::fake_cuda;
using testing::fake_hip;
using testing::fake_system;
using ::testing::HasSubstr;

TEST(open_request, is_parsed) {
  const auto parsed = [](std::string_view text) {
    return open_request::parse(text, "--runtime").value();
  };
  EXPECT_FALSE(parsed("auto").kind.has_value());
  EXPECT_EQ(parsed("hip").kind, runtime_kind::hip);
  EXPECT_EQ(parsed("cuda").kind, runtime_kind::cuda);
  EXPECT_EQ(parsed("sim").kind, runtime_kind::sim);
  EXPECT_EQ(parsed("sim").model, "");
  EXPECT_EQ(parsed("sim:mi250x").kind, runtime_kind::sim);
  EXPECT_EQ(parsed("sim:mi250x").model, "mi250x");
  EXPECT_EQ(parsed("sim:./a:b.json").model, "./a:b.json");
}

TEST(open_request, refuses_what_is_no_runtime) {
  for (const std::string_view text : {"", "HIP", "rocm", "hip:1", "sim:", " cuda"}) {
    const auto parsed = open_request::parse(text, "BERTH_RUNTIME");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), errc::usage);
    EXPECT_THAT(parsed.error().to_string(),
                AllOf(HasSubstr("BERTH_RUNTIME"), HasSubstr("auto, hip, cuda, sim")));
  }
}

class opening : public ::testing::Test {
protected:
  result<opened> open(std::string_view text) {
    return runtime::open(open_request::parse(text, "--runtime").value(), system.make());
  }

  fake_hip hip;
  fake_cuda cuda;
  fake_system system;
};

TEST_F(opening, automatic_takes_hip_first) {
  system.libraries["libamdhip64.so.6"] = fake_hip::library();
  system.libraries["libcuda.so.1"] = fake_cuda::library();
  const auto found = open("auto");
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->gpu->info().kind, runtime_kind::hip);
  EXPECT_EQ(found->reason, "hip is the first that works");
  ASSERT_EQ(found->candidates.size(), 3U);
  EXPECT_TRUE(found->candidates[0].taken);
  EXPECT_EQ(found->candidates[0].verdict, "works: 2 devices");
  EXPECT_FALSE(found->candidates[1].taken);
  EXPECT_THAT(found->candidates[1].verdict, HasSubstr("not tried"));
}

TEST_F(opening, automatic_passes_by_a_runtime_without_a_device_and_says_so) {
  system.libraries["libamdhip64.so.6"] = fake_hip::library();
  system.libraries["libcuda.so.1"] = fake_cuda::library();
  hip.device_count = 0;
  const auto found = open("auto");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu->info().kind, runtime_kind::cuda);
  EXPECT_THAT(found->candidates[0].verdict, HasSubstr("hipErrorNoDevice"));
  EXPECT_EQ(found->candidates[0].library, "/usr/lib/libamdhip64.so.6");
  EXPECT_EQ(found->candidates[0].version, (runtime_version{6, 3, 42131}));
}

TEST_F(opening, an_explicit_wish_is_not_replaced_by_another_runtime) {
  system.libraries["libamdhip64.so.6"] = fake_hip::library();
  const auto found = open("cuda");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), errc::gpu_no_runtime);
  EXPECT_THAT(found.error().to_string(), HasSubstr("libcuda.so.1"));
  const auto hip_found = open("hip");
  ASSERT_TRUE(hip_found);
  EXPECT_EQ(hip_found->reason, "--runtime asks for hip");
  EXPECT_THAT(hip_found->candidates[1].verdict, HasSubstr("--runtime asks for hip"));
}

TEST_F(opening, survey_looks_at_all_of_them) {
  system.libraries["libamdhip64.so.6"] = fake_hip::library();
  system.libraries["libcuda.so.1"] = fake_cuda::library();
  const auto found = survey(system.make());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].devices.size(), 2U);
  ASSERT_TRUE(found[1].info.has_value());
  EXPECT_EQ(found[1].info->version, (runtime_version{13, 0, 0}));
  EXPECT_EQ(found[2].kind, runtime_kind::sim);
}

}  // namespace
}  // namespace berth::runtime
