// SPDX-License-Identifier: Apache-2.0
#include "runtime/status.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/runtime/values.hpp"
#include "runtime/cuda/abi.hpp"
#include "runtime/hip/abi.hpp"
#include "runtime/numa_policy.hpp"

namespace berth::runtime {
namespace {

using ::testing::EndsWith;

TEST(status, means_the_same_in_both_runtimes) {
  EXPECT_EQ(errc_of_status(hip::code::out_of_memory), errc::gpu_out_of_memory);
  EXPECT_EQ(errc_of_status(hip::code::invalid_device_pointer), errc::gpu_invalid_value);
  EXPECT_EQ(errc_of_status(hip::code::no_device), errc::gpu_no_device);
  EXPECT_EQ(errc_of_status(hip::code::no_binary_for_gpu), errc::gpu_kernel_unavailable);
  EXPECT_EQ(errc_of_status(hip::code::host_memory_not_registered), errc::gpu_not_registered);
  EXPECT_EQ(errc_of_status(cuda::code::deinitialized), errc::gpu_shut_down);
  EXPECT_EQ(errc_of_status(cuda::code::launch_out_of_resources), errc::gpu_launch_failed);
  EXPECT_EQ(errc_of_status(cuda::code::hardware_stack_error), errc::gpu_device_lost);
  EXPECT_EQ(errc_of_status(cuda::code::not_permitted), errc::gpu_not_permitted);
  EXPECT_EQ(errc_of_status(cuda::code::capture_wrong_thread), errc::gpu_capture);
  EXPECT_EQ(errc_of_status(909), errc::gpu_unexpected);
  EXPECT_EQ(errc_of_status(999), errc::gpu_unexpected);
  EXPECT_EQ(errc_of_status(-1), errc::gpu_unexpected);
}

TEST(status, an_error_ends_with_the_runtimes_own_word) {
  const auto failed = failed_call("hipMemcpy", "hipErrorInvalidValue", 1);
  EXPECT_EQ(failed.to_string(),
            "BTH-1206: hipMemcpy: the runtime answered hipErrorInvalidValue (1)");
  const auto full = failed_allocation("hipMalloc", "hipErrorOutOfMemory", 2,
                                      {.requested = 4 * gib, .free = 1 * gib, .total = 2 * gib});
  EXPECT_EQ(full.message(),
            "4 GiB do not fit into 1 GiB free of 2 GiB; the runtime answered hipErrorOutOfMemory "
            "(2)");
  EXPECT_THROW(throw_error(full), out_of_memory_error);
  EXPECT_THROW(throw_error(failed), gpu_error);
}

TEST(status, an_index_error_says_how_many_there_are) {
  EXPECT_THAT(device_out_of_range(3, 2).message(),
              EndsWith("no device 3: there are 2, counted from 0"));
  EXPECT_THAT(device_out_of_range(1, 1).message(),
              EndsWith("no device 1: there is 1, counted from 0"));
}

TEST(values, every_capability_has_a_name) {
  for (unsigned index = 0; index < capability_count; ++index) {
    const auto name = to_string(static_cast<capability>(index));
    EXPECT_FALSE(name.empty()) << index;
    EXPECT_NE(name, "unknown") << index;
  }
  EXPECT_EQ(to_string(capability::tells_range), "tells_range");
  EXPECT_EQ(to_string(runtime_kind::cuda), "cuda");
  EXPECT_EQ(to_string(runtime_version{5, 2, 21153}), "5.2.21153");
}

TEST(values, capabilities_are_a_set) {
  capability_set set;
  EXPECT_FALSE(set.has(capability::advise));
  set.add(capability::advise);
  set.add(capability::tells_range);
  EXPECT_TRUE(set.has(capability::advise));
  EXPECT_FALSE(set.has(capability::managed));
  set.remove(capability::advise);
  EXPECT_FALSE(set.has(capability::advise));
  EXPECT_TRUE(set.has(capability::tells_range));
}

int present_policy() {
  int mode = -1;
  syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0);
  return mode;
}

TEST(numa_policy, is_for_a_scope) {
  const int before = present_policy();
  {
    const auto scope = scoped_numa_policy::prefer(0);
    if (!scope && scope.error().code() == errc::gpu_not_permitted) {
      GTEST_SKIP() << "the system refuses NUMA policies: " << scope.error().message();
    }
    ASSERT_TRUE(scope) << scope.error().to_string();
    EXPECT_EQ(present_policy(), 1);
  }
  EXPECT_EQ(present_policy(), before);
}

TEST(numa_policy, of_a_node_that_is_not_there_is_refused) {
  const int before = present_policy();
  EXPECT_FALSE(scoped_numa_policy::prefer(-1));
  EXPECT_FALSE(scoped_numa_policy::prefer(1000));
  EXPECT_FALSE(scoped_numa_policy::prefer(5000));
  EXPECT_EQ(present_policy(), before);
}

}  // namespace
}  // namespace berth::runtime
