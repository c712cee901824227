// SPDX-License-Identifier: Apache-2.0
// Memory that stays on the host while kernels work: managed memory, and pinned memory in place.
#include "support/findings.hpp"

namespace berth::test {
namespace {

using namespace std::chrono_literals;
using diagnose::severity;
using testing::HasSubstr;

constexpr std::uint64_t buffer = 0x10'0000;

void add_kernels(trace_builder& made, int count) {
  for (int kernel = 0; kernel < count; ++kernel) {
    made.kernel(2ms + kernel * 1ms, 500us);
  }
}

trace_builder managed(trace::gpu_api api, bytes_t bytes = 64 * mib) {
  trace_builder made;
  made.api(api).fact("process.pid", "1");
  made.allocated(0ms, 1ms, api == trace::gpu_api::hip ? "hipMallocManaged" : "cuMemAllocManaged",
                 buffer, bytes);
  add_kernels(made, 10);
  return made;
}

TEST(managed, without_xnack_it_stays_on_the_host) {
  auto made = managed(trace::gpu_api::hip);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("managed-without-migration");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::fault);
  EXPECT_THAT(found->headline, HasSubstr("64 MiB of managed memory in 1 allocation stays"));
  EXPECT_THAT(found->headline, HasSubstr("HSA_XNACK is not set"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("HSA_XNACK=1"));
  EXPECT_FALSE(found->saving.has_value());
}

TEST(managed, xnack_off_is_named_and_on_is_none) {
  auto off = managed(trace::gpu_api::hip);
  off.fact("environment.HSA_XNACK", "0");
  EXPECT_THAT(diagnose_on_round_machine(off).find("managed-without-migration")->headline,
              HasSubstr("HSA_XNACK is 0"));
  auto on = managed(trace::gpu_api::hip);
  on.fact("environment.HSA_XNACK", "1");
  EXPECT_EQ(diagnose_on_round_machine(on).find("managed-without-migration"), nullptr);
}

TEST(managed, a_source_that_does_not_know_the_environment_says_nothing) {
  trace_builder made;
  made.api(trace::gpu_api::hip).allocated(0ms, 1ms, "hipMallocManaged", buffer, 64 * mib);
  add_kernels(made, 10);
  EXPECT_EQ(diagnose_on_round_machine(made).find("managed-without-migration"), nullptr);
}

TEST(managed, migrations_and_prefetches_bring_it) {
  auto migrated = managed(trace::gpu_api::hip);
  migrated.migration(3ms, 1ms);
  EXPECT_EQ(diagnose_on_round_machine(migrated).find("managed-without-migration"), nullptr);
  auto prefetched = managed(trace::gpu_api::cuda);
  prefetched.called_about(1ms, 10us, "cuMemPrefetchAsync", buffer, 64 * mib);
  EXPECT_EQ(diagnose_on_round_machine(prefetched).find("managed-without-migration"), nullptr);
}

TEST(managed, a_prefetch_of_other_memory_does_not) {
  auto made = managed(trace::gpu_api::cuda);
  made.called_about(1ms, 10us, "cuMemPrefetchAsync", buffer + 64 * mib, mib);
  const auto shown = diagnose_on_round_machine(made);
  const auto* const found = shown.find("managed-without-migration");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::advice);
  EXPECT_THAT(found->headline, HasSubstr("one fault after the other"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("cudaMemPrefetchAsync"));
}

TEST(managed, little_of_it_or_no_kernel_is_no_matter) {
  auto little = managed(trace::gpu_api::hip, mib - 1);
  EXPECT_EQ(diagnose_on_round_machine(little).find("managed-without-migration"), nullptr);
  trace_builder idle;
  idle.api(trace::gpu_api::hip).fact("process.pid", "1");
  idle.allocated(0ms, 1ms, "hipMallocManaged", buffer, 64 * mib).h2d(5ms, 1ms, mb);
  EXPECT_EQ(diagnose_on_round_machine(idle).find("managed-without-migration"), nullptr);
}

TEST(managed, the_smaller_part_of_the_memory_is_advice) {
  auto made = managed(trace::gpu_api::hip);
  made.allocated(0ms, 1ms, "hipMalloc", buffer + 1024 * mib, 512 * mib);
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("managed-without-migration"), nullptr);
  EXPECT_EQ(shown.find("managed-without-migration")->severity, severity::advice);
}

TEST(managed, launches_stand_for_kernels_without_times) {
  trace_builder made;
  made.api(trace::gpu_api::hip).fact("process.pid", "1");
  made.allocated(0ms, 1ms, "hipMallocManaged", buffer, 64 * mib).launch(5ms, 5us);
  EXPECT_NE(diagnose_on_round_machine(made).find("managed-without-migration"), nullptr);
}

// A pinned buffer that lives while kernels run.
struct pinned_buffer {
  std::optional<std::uint64_t> flags = {};
  bool asked = true;
  std::optional<std::uint64_t> copied_at = {};
  int kernels = 120;
  bytes_t bytes = 64 * mib;
  std::vector<std::string> frames = {"main in a.out"};
};

trace_builder in_place(const pinned_buffer& how) {
  trace_builder made;
  made.api(trace::gpu_api::hip).fact("process.pid", "1");
  made.allocated(0ms, 1ms, "hipHostMalloc", buffer, how.bytes, how.flags).at_frames(how.frames);
  if (how.asked) {
    made.called_about(1ms, 1us, "hipHostGetDevicePointer", buffer);
  }
  if (how.copied_at) {
    made.h2d(2ms, 1ms, mb, memory_kind::pinned).host_address(*how.copied_at);
  }
  add_kernels(made, how.kernels);
  return made;
}

diagnosed diagnosed_in_place(const pinned_buffer& how) {
  auto made = in_place(how);
  return diagnose_on_round_machine(made);
}

TEST(host_memory, whose_device_address_was_asked_for_is_possibly_read_in_place) {
  const auto shown = diagnosed_in_place({});
  const auto* const found = shown.find("host-memory-in-kernels");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, severity::advice);
  EXPECT_THAT(found->headline, HasSubstr("possibly"));
  EXPECT_THAT(found->headline, HasSubstr("120 kernels"));
  EXPECT_THAT(all_fixes(*found), HasSubstr("To confirm"));
  EXPECT_FALSE(found->saving.has_value());
}

TEST(host_memory, that_is_copied_is_not_suspected) {
  EXPECT_EQ(diagnosed_in_place({.copied_at = buffer}).find("host-memory-in-kernels"), nullptr);
  EXPECT_EQ(diagnosed_in_place({.copied_at = buffer + 63 * mib}).find("host-memory-in-kernels"),
            nullptr);
  EXPECT_NE(diagnosed_in_place({.copied_at = buffer + 64 * mib}).find("host-memory-in-kernels"),
            nullptr);
}

TEST(host_memory, copies_without_addresses_leave_nothing_to_say) {
  auto made = in_place({});
  made.h2d(2ms, 1ms, mb, memory_kind::pinned);
  EXPECT_EQ(diagnose_on_round_machine(made).find("host-memory-in-kernels"), nullptr);
}

TEST(host_memory, flags_alone_are_a_note) {
  for (const std::uint64_t flags : {0x2U, 0x4000'0000U}) {
    const auto shown = diagnosed_in_place({.flags = flags, .asked = false});
    ASSERT_NE(shown.find("host-memory-in-kernels"), nullptr);
    EXPECT_EQ(shown.find("host-memory-in-kernels")->severity, severity::note);
  }
  EXPECT_EQ(diagnosed_in_place({.flags = 0, .asked = false}).find("host-memory-in-kernels"),
            nullptr);
}

TEST(host_memory, small_buffers_few_kernels_and_communication_are_no_matter) {
  EXPECT_EQ(diagnosed_in_place({.bytes = mib - 1}).find("host-memory-in-kernels"), nullptr);
  EXPECT_EQ(diagnosed_in_place({.kernels = 99}).find("host-memory-in-kernels"), nullptr);
  EXPECT_EQ(diagnosed_in_place({.frames = {"ncclCommInit in librccl.so.1"}})
                .find("host-memory-in-kernels"),
            nullptr);
}

TEST(host_memory, dropped_events_may_have_been_its_copies) {
  auto made = in_place({});
  made.fact("end.dropped", "3");
  EXPECT_EQ(diagnose_on_round_machine(made).find("host-memory-in-kernels"), nullptr);
}

TEST(host_memory, a_copy_inside_of_an_early_life_is_found_among_many) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  for (int life = 0; life < 200; ++life) {
    const auto at = life * 1ms;
    made.allocated(at, 10us, "hipHostMalloc", buffer, 64 * mib);
    made.called_about(at + 20us, 1us, "hipHostGetDevicePointer", buffer);
    if (life == 3) {
      made.h2d(at + 500us, 10us, mb, memory_kind::pinned).host_address(buffer + mib);
    }
    for (int kernel = 0; kernel < 100; ++kernel) {
      made.kernel(at + 30us + kernel * 9us, 1us);
    }
    made.freed(at + 980us, 10us, "hipHostFree", buffer);
  }
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("host-memory-in-kernels"), nullptr);
  EXPECT_THAT(shown.find("host-memory-in-kernels")->headline, HasSubstr("in 199 buffers"));
}

TEST(host_memory, an_address_that_is_given_again_is_another_buffer) {
  trace_builder made;
  made.api(trace::gpu_api::hip);
  made.allocated(0ms, 1ms, "hipHostMalloc", buffer, 64 * mib);
  made.h2d(2ms, 1ms, mb, memory_kind::pinned).host_address(buffer);
  made.freed(4ms, 1ms, "hipHostFree", buffer);
  made.allocated(6ms, 1ms, "hipHostMalloc", buffer, 64 * mib);
  made.called_about(8ms, 1us, "hipHostGetDevicePointer", buffer);
  add_kernels(made, 200);
  const auto shown = diagnose_on_round_machine(made);
  ASSERT_NE(shown.find("host-memory-in-kernels"), nullptr);
  EXPECT_THAT(shown.find("host-memory-in-kernels")->headline, HasSubstr("in 1 buffer was"));
}

}  // namespace
}  // namespace berth::test
