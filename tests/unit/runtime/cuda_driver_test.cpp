// SPDX-License-Identifier: Apache-2.0
// The CUDA driver over a libcuda of the test's making: contexts, capabilities, decoding.
#include "runtime/cuda/driver.hpp"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/abi.hpp"
#include "runtime/cuda/decode.hpp"
#include "unit/runtime/fake_cuda.hpp"

namespace berth::runtime {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::fake_cuda;
using testing::fake_system;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class cuda_driver : public ::testing::Test {
protected:
  cuda_driver() { system.libraries["libcuda.so.1"] = fake_cuda::library(); }

  void remove(const char* symbol) { system.libraries["libcuda.so.1"].symbols.erase(symbol); }

  driver& open() {
    auto made = cuda::open_driver(system.make(), seen);
    EXPECT_TRUE(made) << made.error().to_string();
    gpu = *made;
    runtime.log.clear();
    return *gpu;
  }

  fake_cuda runtime;
  fake_system system;
  candidate seen;
  std::shared_ptr<driver> gpu;
};

TEST(cuda_version, is_read_from_the_packed_number) {
  EXPECT_EQ(cuda::decode_version(13000), (runtime_version{13, 0, 0}));
  EXPECT_EQ(cuda::decode_version(12080), (runtime_version{12, 8, 0}));
  EXPECT_EQ(cuda::decode_version(11040), (runtime_version{11, 4, 0}));
}

TEST_F(cuda_driver, says_what_it_found_without_making_a_context) {
  runtime.attributes = {{16, 132}, {40, 3}, {75, 9}, {76, 0}, {88, 1}, {100, 0}, {134, -1}};
  const driver& opened = open();
  EXPECT_EQ(opened.info().kind, runtime_kind::cuda);
  EXPECT_EQ(opened.info().version, (runtime_version{13, 0, 0}));
  ASSERT_EQ(opened.devices().size(), 2U);
  const device_info& first = opened.devices()[0];
  EXPECT_EQ(first.architecture, "sm_90");
  EXPECT_EQ(first.compute_units, 132);
  EXPECT_EQ(first.copy_engines, 3);
  EXPECT_EQ(first.pageable_access, true);
  EXPECT_EQ(first.pageable_uses_host_page_tables, false);
  EXPECT_EQ(first.pci_address, "0000:c1:00.0");
  EXPECT_EQ(first.uuid->at(0), std::byte{1});
  EXPECT_FALSE(first.numa_node.has_value());
  EXPECT_THAT(runtime.contexts, ElementsAre(0, 0));
}

TEST_F(cuda_driver, says_why_it_cannot_start) {
  struct start {
    int status;
    errc expected;
  };
  for (const auto& each :
       {start{100, errc::gpu_no_device}, start{803, errc::gpu_runtime_unusable},
        start{34, errc::gpu_runtime_unusable}, start{999, errc::gpu_unexpected}}) {
    runtime.init_status = each.status;
    const auto made = cuda::open_driver(system.make(), seen);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), each.expected) << each.status;
  }
}

TEST_F(cuda_driver, knows_the_toolkits_stub) {
  runtime.next_status["cuDriverGetVersion"] = cuda::code::stub_library;
  const auto made = cuda::open_driver(system.make(), seen);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), errc::gpu_runtime_unusable);
  EXPECT_THAT(made.error().message(), HasSubstr("stub"));
}

TEST_F(cuda_driver, of_cuda_10_is_too_old) {
  runtime.version = 10020;
  EXPECT_EQ(cuda::open_driver(system.make(), seen).error().code(), errc::gpu_runtime_unusable);
}

TEST_F(cuda_driver, a_thread_without_a_context_works_on_device_0) {
  driver& opened = open();
  EXPECT_EQ(opened.current_device().value(), 0);
  const int from = 5;
  int to = 0;
  ASSERT_TRUE(opened.copy_async(&to, &from, sizeof to, default_stream));
  EXPECT_EQ(to, 5);
  EXPECT_EQ(runtime.current, &runtime.contexts[0]);
  EXPECT_THAT(runtime.log, Contains("cuMemcpyAsync 4 bytes, stream 0, on 0"));
}

TEST_F(cuda_driver, an_invalid_context_that_is_current_is_an_error) {
  driver& opened = open();
  ASSERT_TRUE(opened.set_current_device(1));
  runtime.next_status["cuStreamSynchronize"] = cuda::code::invalid_context;
  EXPECT_EQ(opened.synchronize_stream(stream_handle{64}).error().code(), errc::gpu_invalid_handle);
}

TEST_F(cuda_driver, allocates_on_the_device_asked_for_and_leaves_the_thread_as_it_was) {
  driver& opened = open();
  const auto memory = opened.allocate_device(1, 128, coherence::coarse);
  ASSERT_TRUE(memory);
  EXPECT_THAT(runtime.log, Contains("cuMemAlloc 128 bytes, on 1"));
  EXPECT_EQ(runtime.current, nullptr);
  ASSERT_TRUE(opened.set_current_device(1));
  ASSERT_TRUE(opened.create_stream(0, {}));
  EXPECT_EQ(opened.current_device().value(), 1);
  EXPECT_TRUE(opened.free_device(*memory));
}

TEST_F(cuda_driver, retains_each_primary_context_once_and_gives_it_back) {
  driver& opened = open();
  ASSERT_TRUE(opened.memory_info(1));
  ASSERT_TRUE(opened.memory_info(1));
  EXPECT_THAT(runtime.contexts, ElementsAre(0, 1));
  gpu.reset();
  EXPECT_THAT(runtime.contexts, ElementsAre(0, 0));
}

TEST_F(cuda_driver, out_of_memory_carries_the_amounts) {
  driver& opened = open();
  runtime.next_status["cuMemAlloc"] = cuda::code::out_of_memory;
  const auto memory = opened.allocate_device(1, 5000, coherence::coarse);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), errc::gpu_out_of_memory);
  EXPECT_EQ(memory.error().shortage(),
            (memory_shortage{.requested = 5000, .free = 1000, .total = 4000}));
  runtime.next_status["cuMemHostAlloc"] = cuda::code::out_of_memory;
  const auto pinned = opened.allocate_pinned(5000, {});
  ASSERT_FALSE(pinned);
  ASSERT_TRUE(pinned.error().shortage().has_value());
  EXPECT_GT(*pinned.error().shortage()->total, 4000U) << "the host's memory, not the device's";
}

TEST_F(cuda_driver, classifies_every_kind) {
  int pinned = 0;
  int registered = 0;
  int device = 0;
  int managed = 0;
  int pageable = 0;
  runtime.pointers = {{&pinned, 1}, {&registered, 1}, {&device, 2}, {&managed, 100}};
  driver& opened = open();
  EXPECT_EQ(opened.classify(&pinned)->kind, memory_kind::pinned);
  EXPECT_EQ(opened.classify(&pinned)->grain, coherence::fine);
  EXPECT_EQ(opened.classify(&registered)->kind, memory_kind::pinned) << "CUDA does not tell";
  EXPECT_EQ(opened.classify(&device)->kind, memory_kind::device);
  EXPECT_EQ(opened.classify(&device)->device, 1);
  EXPECT_EQ(opened.classify(&device)->bytes, 64U);
  EXPECT_EQ(opened.classify(&managed)->kind, memory_kind::managed);
  const auto unknown = opened.classify(&pageable);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->kind, memory_kind::pageable);
  EXPECT_EQ(unknown->host_address, &pageable);
  EXPECT_FALSE(unknown->device.has_value());
  EXPECT_EQ(opened.classify(nullptr)->kind, memory_kind::unknown);
  for (const int status : {cuda::code::invalid_value, cuda::code::invalid_context}) {
    runtime.next_status["cuPointerGetAttributes"] = status;
    EXPECT_EQ(opened.classify(&pinned)->kind, memory_kind::pageable) << status;
  }
}

TEST_F(cuda_driver, rows_go_by_unified_addresses) {
  driver& opened = open();
  int from = 0;
  int to = 0;
  ASSERT_TRUE(opened.copy_2d_async(
      {.dst = &to, .dst_pitch = 16, .src = &from, .src_pitch = 32, .width = 8, .rows = 3},
      default_stream));
  const auto& rows = runtime.last_2d;
  EXPECT_EQ(rows.src_type, 4);
  EXPECT_EQ(rows.dst_type, 4);
  EXPECT_EQ(rows.src_device, reinterpret_cast<std::uintptr_t>(&from));
  EXPECT_EQ(rows.dst_device, reinterpret_cast<std::uintptr_t>(&to));
  EXPECT_EQ(rows.src_pitch, 32U);
  EXPECT_EQ(rows.dst_pitch, 16U);
  EXPECT_EQ(rows.width, 8U);
  EXPECT_EQ(rows.rows, 3U);
  EXPECT_EQ(rows.src_x + rows.src_y + rows.dst_x + rows.dst_y, 0U);
}

TEST_F(cuda_driver, advises_and_prefetches_with_the_call_that_the_driver_has) {
  {
    driver& opened = open();
    EXPECT_TRUE(opened.advise(&system, 8, advice::set_accessed_by, {side::host, 0}));
    EXPECT_TRUE(opened.prefetch_async(&system, 8, {side::device, 1}, default_stream));
    EXPECT_THAT(runtime.log, AllOf(Contains("cuMemAdvise 8 bytes, 5, device -1, on 0"),
                                   Contains("cuMemPrefetchAsync 8 bytes, device 1, on 0")));
  }
  remove("cuMemAdvise");
  remove("cuMemPrefetchAsync");
  driver& opened = open();
  EXPECT_TRUE(opened.advise(&system, 8, advice::set_read_mostly, {side::host, 0}));
  EXPECT_TRUE(opened.prefetch_async(&system, 8, {side::device, 1}, default_stream));
  EXPECT_THAT(runtime.log, AllOf(Contains("cuMemAdvise_v2 8 bytes, 1, 2:0, on 0"),
                                 Contains("cuMemPrefetchAsync_v2 8 bytes, 1:1, on 0")));
  EXPECT_EQ(opened.advise(&system, 8, advice::set_coarse_grain, {}).error().code(),
            errc::gpu_not_supported);
}

TEST_F(cuda_driver, has_no_fine_grained_device_memory) {
  driver& opened = open();
  EXPECT_FALSE(opened.info().capabilities.has(capability::fine_grained_device));
  EXPECT_EQ(opened.allocate_device(0, 8, coherence::fine).error().code(), errc::gpu_not_supported);
  EXPECT_EQ(opened.allocate_device(7, 8, coherence::fine).error().code(),
            errc::gpu_device_out_of_range);
}

TEST_F(cuda_driver, checks_what_the_contract_says_is_checked) {
  driver& opened = open();
  EXPECT_EQ(opened.allocate_device(0, 0, coherence::coarse).error().code(),
            errc::gpu_invalid_value);
  for (const int device : {-1, 2}) {
    EXPECT_EQ(opened.allocate_pinned(1, {.device = device}).error().code(),
              errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.synchronize_device(device).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.prepare_kernels(device).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.copy_peer_async(nullptr, 0, nullptr, device, 8, default_stream).error().code(),
              errc::gpu_device_out_of_range);
  }
  EXPECT_THAT(runtime.log, IsEmpty());
}

TEST_F(cuda_driver, frees_of_null_and_copies_of_nothing_succeed) {
  driver& opened = open();
  EXPECT_TRUE(opened.free_device(nullptr));
  EXPECT_TRUE(opened.free_pinned(nullptr));
  EXPECT_TRUE(opened.free_managed(nullptr));
  EXPECT_TRUE(opened.copy(nullptr, nullptr, 0));
  EXPECT_TRUE(opened.fill_async(nullptr, std::byte{0}, 0, default_stream));
  EXPECT_THAT(runtime.log, IsEmpty());
}

TEST_F(cuda_driver, not_ready_is_pending_and_sticky_errors_lose_the_device) {
  driver& opened = open();
  runtime.next_status["cuEventQuery"] = cuda::code::not_ready;
  EXPECT_EQ(opened.query_event({}).value(), progress::pending);
  for (const int status : {700, 716, 719}) {
    runtime.next_status["cuStreamQuery"] = status;
    EXPECT_EQ(opened.query_stream(default_stream).error().code(), errc::gpu_device_lost) << status;
  }
  runtime.next_status["cuStreamQuery"] = 906;
  EXPECT_EQ(opened.query_stream(default_stream).error().code(), errc::gpu_capture);
  EXPECT_EQ(opened.elapsed({}, {}).value(), std::chrono::microseconds(-250));
}

TEST_F(cuda_driver, peers_are_enabled_between_primary_contexts) {
  driver& opened = open();
  EXPECT_TRUE(opened.enable_peer_access(0, 1));
  EXPECT_THAT(runtime.log, Contains("cuCtxEnablePeerAccess 1, on 0"));
  runtime.next_status["cuCtxEnablePeerAccess"] = cuda::code::peer_access_already_enabled;
  EXPECT_TRUE(opened.enable_peer_access(0, 1));
  EXPECT_TRUE(opened.copy_peer_async(&system, 0, &runtime, 1, 8, default_stream));
  EXPECT_THAT(runtime.log, Contains("cuMemcpyPeerAsync 8 bytes, 1 to 0, on 0"));
}

TEST_F(cuda_driver, loads_its_ptx_once_and_launches) {
  runtime.attributes = {{16, 132}};
  driver& opened = open();
  std::uint32_t flag = 0;
  const kernel_spin spin{.release = &flag, .at_most = std::chrono::milliseconds(2)};
  ASSERT_TRUE(opened.launch(spin, default_stream, {}));
  EXPECT_THAT(runtime.log, Contains("cuLaunchKernel berth_spin 1x1 p1 2000000, on 0"));
  runtime.log.clear();
  std::array<std::byte, 64> data{};
  ASSERT_TRUE(opened.launch(kernel_fill{.dst = data.data(), .bytes = data.size()}, default_stream,
                            {.blocks = 3, .threads = 128}));
  EXPECT_THAT(runtime.log, ElementsAre("cuLaunchKernel berth_fill 3x128 p1 64, on 0"));
}

TEST_F(cuda_driver, kernels_that_do_not_load_carry_the_compilers_log) {
  driver& opened = open();
  runtime.next_status["cuModuleLoadDataEx"] = 218;
  const auto failed = opened.prepare_kernels(1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), errc::gpu_kernel_unavailable);
  EXPECT_THAT(failed.error().message(), HasSubstr("ptxas: no"));
}

TEST_F(cuda_driver, capture_state_and_mode_are_passed_on) {
  driver& opened = open();
  EXPECT_EQ(opened.stream_capture_status(default_stream).value(), capture_status::invalidated);
  EXPECT_EQ(opened.exchange_capture_mode(capture_mode::relaxed).value(), capture_mode::global);
}

TEST_F(cuda_driver, scoped_device_restores) {
  driver& opened = open();
  ASSERT_TRUE(opened.set_current_device(1));
  {
    const auto scope = scoped_device::make(opened, 0);
    ASSERT_TRUE(scope);
    EXPECT_EQ(opened.current_device().value(), 0);
  }
  EXPECT_EQ(opened.current_device().value(), 1);
  EXPECT_EQ(scoped_device::make(opened, 5).error().code(), errc::gpu_device_out_of_range);
}

}  // namespace
}  // namespace berth::runtime
