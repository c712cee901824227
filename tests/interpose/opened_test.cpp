// SPDX-License-Identifier: Apache-2.0
// Programs that open a runtime themselves, in all the ways there are.
#include <gtest/gtest.h>

#include "interpose/client.hpp"

namespace berth::test {
namespace {

struct way {
  const char* name;
  const std::string* library;
  const char* how;

  friend void PrintTo(const way& one, std::ostream* out) { *out << one.name; }
};

const std::string plugin_library = "plugin/libplugin.so.1";
const std::string constructor_library = "constructor/libconstructor.so.1";

class OpenedRuntime : public testing::TestWithParam<way> {};

TEST_P(OpenedRuntime, HasItsCallsRecorded) {
  auto client = opened({GetParam().name, program(*GetParam().library)},
                       {{"BERTH_RECORD_DEVICE_TIMES", "off"}});
  const auto read = client.record();
  const bool is_cuda = *GetParam().library == cuda_library;
  const auto by_runtime = is_cuda ? client.cuda_counts() : client.hip_counts();
  EXPECT_GT(by_runtime.copies, 0U);
  EXPECT_EQ(read.copies().size(), by_runtime.copies);
  EXPECT_EQ(read.copied_bytes(), by_runtime.bytes);
  EXPECT_EQ(read.how(is_cuda ? "libcuda" : "libamdhip64"), GetParam().how);
}

INSTANTIATE_TEST_SUITE_P(
    Interpose, OpenedRuntime,
    testing::Values(way{"global", &hip_library, "dlsym"}, way{"local", &hip_library, "dlsym"},
                    way{"default", &hip_library, "linked"}, way{"program", &hip_library, "linked"},
                    way{"closed", &hip_library, "dlsym"}, way{"plugin", &plugin_library, "linked"},
                    way{"table", &hip_library, "cuGetProcAddress"},
                    way{"cudart", &cuda_library, "cuGetProcAddress"},
                    way{"cudart_per_thread", &cuda_library, "cuGetProcAddress"}),
    [](const auto& given) { return std::string(given.param.name); });

TEST(OpenedRuntimeOfAnotherSpace, HasItsCallsRecordedWhenTheyAreLookedUp) {
  auto client = opened({"own_space", program(hip_library)});
  const auto read = client.record();
  EXPECT_EQ(read.copies().size(), 10U);
}

TEST(OpenedRuntimeUnseen, IsToldOfWhereDeepBindHidesItsCalls) {
  auto client = opened({"deep_plugin", program(plugin_library)});
  const auto read = client.record();
  EXPECT_TRUE(read.events.empty());
  EXPECT_EQ(read.how("libamdhip64"), "unseen");
}

// Preloading does not reach into such a space, and the list of what is mapped does not show it.
TEST(OpenedRuntimeUnseen, DoesNoHarmInASpaceOfItsOwn) {
  auto client = opened({"plugin_in_own_space", program(plugin_library)});
  const auto alone = client.run_alone();
  EXPECT_EQ(client.run_recorded(), alone);
  EXPECT_TRUE(client.traces().files().empty());
}

TEST(OpenedRuntimeOfALibrary, IsUsedInTheConstructorOfALibrary) {
  auto client = opened({"plugin", program(constructor_library)});
  const auto read = client.record();
  EXPECT_EQ(read.copies().size(), 14U);
  EXPECT_EQ(read.copies().size(), client.hip_counts().copies);
}

TEST(AbsentRuntime, IsAbsentWithTheRecorderToo) {
  auto client = opened({"absent"});
  const auto alone = client.run_alone();
  EXPECT_EQ(client.run_recorded(), alone);
  EXPECT_EQ(alone.out,
            "no hipMemcpy: a reason\nno cuMemcpyHtoD_v2: a reason\nno hipMemcpy: a reason\n"
            "no hipNoSuchCall: a reason\nno hipMemcpy: a reason\n");
  EXPECT_TRUE(client.traces().files().empty());
}

}  // namespace
}  // namespace berth::test
