// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated runtime: bounds, frees, poison, limits, coherence, pages.
#include <sys/mman.h>

#include "sim_support.hpp"

namespace berth::test {
namespace {

using runtime::capability;
using runtime::coherence;

TEST(sim_memory, new_memory_of_each_kind_holds_poison) {
  const auto gpu = open_sim("h200");
  constexpr std::size_t size = 200'000;
  auto* const pinned = gpu->allocate_pinned(size).value();
  auto* const managed = gpu->allocate_managed(0, size).value();
  auto* const device = gpu->allocate_device(0, size).value();
  bytes back(size);
  gpu->copy(back.data(), device, size).value();
  EXPECT_TRUE(all_are(pinned, size, poison));
  EXPECT_TRUE(all_are(managed, size, poison));
  EXPECT_TRUE(all_are(back.data(), size, poison));
  gpu->free_pinned(pinned).value();
  gpu->free_managed(managed).value();
  gpu->free_device(device).value();
}

TEST(sim_memory, freed_host_memory_is_poisoned_and_not_used_again_soon) {
  const auto gpu = open_sim("h200");
  auto* const first = gpu->allocate_pinned(4096).value();
  std::memset(first, 1, 4096);
  gpu->free_pinned(first).value();
  EXPECT_TRUE(all_are(first, 4096, poison));
  auto* const second = gpu->allocate_pinned(4096).value();
  EXPECT_NE(first, second);
  gpu->free_pinned(second).value();
}

TEST(sim_memory, a_second_free_and_a_wrong_free_are_refused) {
  const auto gpu = open_sim("mi250x");
  auto* const device = gpu->allocate_device(0, 4096).value();
  auto* const pinned = static_cast<std::byte*>(gpu->allocate_pinned(4096).value());
  expect_error(gpu->free_device(pinned).error(), errc::gpu_invalid_value);
  expect_error(gpu->free_pinned(device).error(), errc::gpu_invalid_value);
  expect_error(gpu->free_managed(device).error(), errc::gpu_invalid_value);
  expect_error(gpu->free_pinned(pinned + 64).error(), errc::gpu_invalid_value);
  gpu->free_device(device).value();
  gpu->free_pinned(pinned).value();
  expect_error(gpu->free_device(device).error(), errc::gpu_invalid_value);
  expect_error(gpu->free_pinned(pinned).error(), errc::gpu_invalid_value);
  gpu->free_device(nullptr).value();
}

TEST(sim_memory, memory_that_queued_work_uses_is_not_freed) {
  const auto gpu = open_sim("h200");
  auto* const device = gpu->allocate_device(0, mib).value();
  auto* const pinned = gpu->allocate_pinned(mib).value();
  const auto stream = gpu->create_stream(0).value();
  // Held, since allocating and freeing take longer than a copy.
  gpu->launch(runtime::kernel_spin{.release = nullptr, .at_most = 1s}, stream).value();
  gpu->copy_async(device, pinned, mib, stream).value();
  expect_error(gpu->free_pinned(pinned).error(), errc::gpu_invalid_value);
  expect_error(gpu->free_device(device).error(), errc::gpu_invalid_value);
  gpu->synchronize_stream(stream).value();
  gpu->free_pinned(pinned).value();
  gpu->free_device(device).value();
}

TEST(sim_memory, ranges_that_leave_their_allocation_are_refused) {
  const auto gpu = open_sim("h200");
  auto* const device = static_cast<std::byte*>(gpu->allocate_device(0, 1000).value());
  auto* const pinned = static_cast<std::byte*>(gpu->allocate_pinned(1000).value());
  expect_error(gpu->copy(device, pinned, 1001).error(), errc::gpu_invalid_value);
  expect_error(gpu->copy(device + 1, pinned, 1000).error(), errc::gpu_invalid_value);
  expect_error(gpu->fill(device, std::byte{1}, 1001).error(), errc::gpu_invalid_value);
  expect_error(gpu->copy(pinned, pinned + 10, 100).error(), errc::gpu_invalid_value);  // overlap
  expect_error(gpu->copy(nullptr, pinned, 1).error(), errc::gpu_invalid_value);
  expect_error(gpu->copy(device, pinned, SIZE_MAX).error(), errc::gpu_invalid_value);
  gpu->free_device(device).value();
  expect_error(gpu->copy(device, pinned, 10).error(), errc::gpu_invalid_value);
  gpu->free_pinned(pinned).value();
}

TEST(sim_memory, an_unmapped_address_is_an_error_and_no_crash) {
  const auto gpu = open_sim("h200");
  auto* const device = gpu->allocate_device(0, 4096).value();
  void* const hole = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 4096);
  expect_error(gpu->copy(device, hole, 4096).error(), errc::gpu_invalid_value);
  expect_error(gpu->register_host(hole, 4096).error(), errc::gpu_invalid_value);
  gpu->free_device(device).value();
}

TEST(sim_memory, a_small_device_runs_out_and_says_the_amounts) {
  runtime::sim::options options{.model = "h200"};
  options.device_memory = 10 * mib;
  options.pinned_limit = 1 * mib;
  const auto gpu = open_sim(options);
  EXPECT_EQ(gpu->memory_info(0).value().total, 10 * mib);
  auto* const most = gpu->allocate_device(0, 8 * mib).value();
  const auto failed = gpu->allocate_device(0, 4 * mib).error();
  expect_error(failed, errc::gpu_out_of_memory);
  EXPECT_EQ(failed.shortage(),
            (memory_shortage{.requested = 4 * mib, .free = 2 * mib, .total = 10 * mib}));
  gpu->free_device(most).value();
  auto* const again = gpu->allocate_device(0, 10 * mib).value();
  gpu->free_device(again).value();
  expect_error(gpu->allocate_pinned(2 * mib).error(), errc::gpu_out_of_memory);
  expect_error(gpu->allocate_device(0, bytes_t{1} << 63U).error(), errc::gpu_out_of_memory);
  expect_error(gpu->allocate_managed(0, ~bytes_t{0}).error(), errc::gpu_out_of_memory);
}

TEST(sim_memory, all_of_a_large_device_can_be_allocated) {
  const auto gpu = open_sim("h200");
  const auto total = gpu->memory_info(0).value().total;
  EXPECT_GT(total, 100 * gib);
  auto* const all = gpu->allocate_device(0, total).value();
  gpu->fill(static_cast<std::byte*>(all) + total / 2, std::byte{3}, 4096).value();
  bytes back(4096);
  gpu->copy(back.data(), static_cast<std::byte*>(all) + total / 2, 4096).value();
  EXPECT_TRUE(all_are(back.data(), 4096, std::byte{3}));
  gpu->free_device(all).value();
}

TEST(sim_memory, registered_memory_is_pinned_until_it_is_unregistered) {
  const auto gpu = open_sim("mi250x");
  bytes host(3 * 4096);
  gpu->register_host(host.data() + 100, 5000).value();
  EXPECT_EQ(gpu->classify(host.data() + 200).value().kind, memory_kind::registered);
  EXPECT_EQ(gpu->classify(host.data()).value().kind, memory_kind::pageable);
  expect_error(gpu->register_host(host.data(), 200).error(), errc::gpu_already_registered);
  expect_error(gpu->unregister_host(host.data() + 200).error(), errc::gpu_not_registered);
  gpu->unregister_host(host.data() + 100).value();
  expect_error(gpu->unregister_host(host.data() + 100).error(), errc::gpu_not_registered);
  EXPECT_EQ(gpu->held().registrations, 0U);
}

// --- Coherence ------------------------------------------------------------------------------

class coarse_memory : public ::testing::Test {
protected:
  static constexpr std::size_t size = 4096;
  std::shared_ptr<sim_driver> gpu = open_sim("mi250x");
  std::byte* host =
      static_cast<std::byte*>(gpu->allocate_pinned(size, {.grain = coherence::coarse}).value());
  stream_handle stream = gpu->create_stream(0).value();
  void TearDown() override {
    gpu->synchronize_device(0).value();
    gpu->free_pinned(host).value();
  }
  void write() {
    std::memset(host, 1, size);
    gpu->launch(runtime::kernel_fill{.dst = host, .bytes = size, .seed = 9, .offset = 0}, stream)
        .value();
  }
  [[nodiscard]] bool is_written() const { return runtime::count_mismatches(host, size, 9) == 0; }
};

TEST_F(coarse_memory, is_visible_after_a_stream_is_synchronised) {
  write();
  gpu->synchronize_stream(stream).value();
  EXPECT_TRUE(is_written());
}

TEST_F(coarse_memory, is_poison_after_an_event_without_system_release) {
  const auto event = gpu->create_event(0, {.release = runtime::event_release::standard}).value();
  write();
  gpu->record_event(event, stream).value();
  gpu->synchronize_event(event).value();
  EXPECT_TRUE(all_are(host, size, poison));
}

TEST_F(coarse_memory, is_visible_after_an_event_with_system_release) {
  const auto event = gpu->create_event(0).value();
  write();
  gpu->record_event(event, stream).value();
  gpu->synchronize_event(event).value();
  EXPECT_TRUE(is_written());
}

TEST_F(coarse_memory, is_read_by_devices_as_they_wrote_it) {
  auto* const device = gpu->allocate_device(0, size).value();
  write();
  gpu->copy_async(device, host, size, stream).value();
  bytes back(size);
  gpu->copy_async(back.data(), device, size, stream).value();
  EXPECT_EQ(back.mismatches(9), 0U);
  gpu->free_device(device).value();
}

TEST_F(coarse_memory, fine_memory_is_visible_after_any_event) {
  auto* const fine = gpu->allocate_pinned(size).value();
  const auto event = gpu->create_event(0, {.release = runtime::event_release::standard}).value();
  gpu->launch(runtime::kernel_fill{.dst = fine, .bytes = size, .seed = 9, .offset = 0}, stream)
      .value();
  gpu->record_event(event, stream).value();
  gpu->synchronize_event(event).value();
  EXPECT_EQ(runtime::count_mismatches(fine, size, 9), 0U);
  gpu->free_pinned(fine).value();
}

// --- Pages ----------------------------------------------------------------------------------

TEST(sim_pages, pageable_memory_needs_xnack_to_be_used_by_kernels) {
  bytes host(mib);
  const auto off = open_sim("mi250x,xnack=off");
  EXPECT_FALSE(*off->devices()[0].pageable_access);
  expect_error(
      off->launch(runtime::kernel_touch{.first = host.data(), .bytes = mib}, default_stream)
          .error(),
      errc::gpu_invalid_value);
  const auto on = open_sim("mi250x,xnack=on");
  EXPECT_TRUE(*on->devices()[0].pageable_access);
  on->launch(runtime::kernel_fill{.dst = host.data(), .bytes = mib, .seed = 4, .offset = 0},
             default_stream)
      .value();
  on->synchronize_stream(default_stream).value();
  EXPECT_EQ(host.mismatches(4), 0U);
}

TEST(sim_pages, xnack_that_the_gpu_cannot_do_is_refused) {
  const auto refused =
      runtime::make_sim_driver(runtime::sim::options::parse("rx7900xtx,xnack=on").value());
  ASSERT_FALSE(refused);
  expect_error(refused.error(), errc::usage);
}

TEST(sim_pages, fresh_pages_are_noticed) {
  const auto gpu = open_sim("h200");
  constexpr std::size_t size = 4 * mib;
  auto* const device = gpu->allocate_device(0, size).value();
  void* const fresh =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto copy = [&] { gpu->copy(fresh, device, size).value(); };
  const auto first = host_time(*gpu, copy);
  const auto second = host_time(*gpu, copy);
  EXPECT_GT(first, 5 * second);
  munmap(fresh, size);
  gpu->free_device(device).value();
}

TEST(sim_pages, declared_pages_are_believed) {
  const auto gpu = open_sim("h200,pages=resident");
  constexpr std::size_t size = 4 * mib;
  auto* const device = gpu->allocate_device(0, size).value();
  bytes host(size);
  gpu->declare_pages(host.data(), size, {.traits = machine::trait::fresh_pages, .numa_node = {}});
  const auto copy = [&] { gpu->copy(host.data(), device, size).value(); };
  const auto first = host_time(*gpu, copy);
  EXPECT_GT(first, 5 * host_time(*gpu, copy));
  gpu->free_device(device).value();
}

TEST(sim_pages, advice_keeps_managed_pages_where_they_are) {
  const auto gpu = open_sim("h200");
  constexpr std::size_t size = 16 * mib;
  auto* const memory = gpu->allocate_managed(0, size).value();
  const auto by_host = [&] {
    gpu->charge({.kind = runtime::host_work_kind::fault, .bytes = size, .dst = memory});
  };
  const auto by_device = [&] {
    gpu->launch(runtime::kernel_touch{.first = memory, .bytes = size}, default_stream).value();
    gpu->synchronize_stream(default_stream).value();
  };
  by_host();
  const auto migrating = host_time(*gpu, by_device);
  const auto back = host_time(*gpu, by_host);
  EXPECT_GT(back, 5ms);  // 16 MiB at 3 GB/s
  gpu->advise(memory, size, runtime::advice::set_preferred_location, {.where = side::host}).value();
  const auto in_place = host_time(*gpu, by_device);
  EXPECT_LT(in_place, migrating);
  EXPECT_LT(host_time(*gpu, by_host), 1us);
  gpu->free_managed(memory).value();
}

}  // namespace
}  // namespace berth::test
