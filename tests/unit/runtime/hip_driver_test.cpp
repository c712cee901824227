// SPDX-License-Identifier: Apache-2.0
// The HIP driver over a HIP runtime of the test's making, in the shape of each major version.
#include "runtime/hip/driver.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/hip/abi.hpp"
#include "unit/runtime/fake_hip.hpp"
#include "unit/runtime/fake_linker.hpp"

namespace berth::runtime {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::fake_hip;
using testing::fake_system;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class hip_driver : public ::testing::Test {
protected:
  hip_driver() { system.libraries["libamdhip64.so.6"] = fake_hip::library(); }

  void remove(const char* symbol) { system.libraries["libamdhip64.so.6"].symbols.erase(symbol); }

  driver& open() {
    auto made = hip::open_driver(system.make(), seen);
    EXPECT_TRUE(made) << made.error().to_string();
    gpu = *made;
    runtime.log.clear();
    return *gpu;
  }

  fake_hip runtime;
  fake_system system;
  candidate seen;
  std::shared_ptr<driver> gpu;
};

TEST_F(hip_driver, says_what_it_found) {
  runtime.attributes = {{63, 104}, {16, 0}, {65, 1}, {92, -1}, {19, 8 << 20}};
  const driver& opened = open();
  EXPECT_EQ(opened.info().kind, runtime_kind::hip);
  EXPECT_EQ(opened.info().version, (runtime_version{6, 3, 42131}));
  EXPECT_EQ(opened.info().library, "/usr/lib/libamdhip64.so.6");
  EXPECT_EQ(opened.info().timing, provenance::measured);
  ASSERT_EQ(opened.devices().size(), 2U);
  const device_info& second = opened.devices()[1];
  EXPECT_EQ(second.index, 1);
  EXPECT_EQ(second.name, "Fake GPU 1");
  EXPECT_EQ(second.pci_address, "0000:c2:00.0");
  EXPECT_EQ(second.compute_units, 104);
  EXPECT_EQ(second.integrated, false);
  EXPECT_EQ(second.pageable_access, true);
  EXPECT_EQ(second.l2_bytes, bytes_t{8} << 20U);
  EXPECT_EQ(second.memory_total, 4000U);
  EXPECT_FALSE(second.numa_node.has_value()) << "-1 is no node";
  EXPECT_FALSE(second.large_bar.has_value()) << "an attribute that this version lacks";
  EXPECT_EQ(seen.version, opened.info().version);
}

TEST_F(hip_driver, leaves_no_error_behind_when_attributes_are_missing) {
  open();
  EXPECT_EQ(runtime.last_error, 0);
}

TEST_F(hip_driver, without_a_device_says_so) {
  runtime.device_count = 0;
  const auto made = hip::open_driver(system.make(), seen);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), errc::gpu_no_device);
  EXPECT_THAT(made.error().message(), HasSubstr("hipErrorNoDevice (100)"));
  EXPECT_EQ(seen.library, "/usr/lib/libamdhip64.so.6");
  EXPECT_EQ(runtime.last_error, 0);
}

TEST_F(hip_driver, of_hip_4_is_too_old) {
  runtime.version = 40321422;
  const auto made = hip::open_driver(system.make(), seen);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), errc::gpu_runtime_unusable);
  EXPECT_THAT(made.error().message(), HasSubstr("4.3.21422 is too old"));
}

TEST_F(hip_driver, classifies_by_version) {
  int place = 0;
  int other = 0;
  for (const auto& [version, host] : {std::pair{50221153, 0}, {60342131, 1}, {70051831, 1}}) {
    runtime.version = version;
    runtime.pointers = {{&place, host}};
    driver& opened = open();
    const auto known = opened.classify(&place);
    ASSERT_TRUE(known);
    EXPECT_EQ(known->kind, memory_kind::pinned) << version;
    EXPECT_EQ(known->base, &place);
    EXPECT_EQ(known->bytes, 64U);
    const auto unknown = opened.classify(&other);
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->kind, memory_kind::pageable) << version;
    EXPECT_FALSE(unknown->device.has_value());
    EXPECT_EQ(runtime.last_error, 0) << version;
    EXPECT_EQ(opened.classify(nullptr)->kind, memory_kind::unknown);
  }
}

TEST_F(hip_driver, allocates_on_the_device_asked_for_and_leaves_the_current_one) {
  driver& opened = open();
  const auto memory = opened.allocate_device(1, 128, coherence::coarse);
  ASSERT_TRUE(memory);
  EXPECT_THAT(runtime.log, Contains("hipMalloc 128 bytes, flags 0x0, device 1"));
  EXPECT_EQ(runtime.current, 0);
  EXPECT_TRUE(opened.free_device(*memory));
}

// HIP registers twice, and ends the process for an address that is no start: the driver asks
// itself.
TEST_F(hip_driver, registers_no_part_of_memory_twice) {
  driver& opened = open();
  std::array<std::byte, 100> memory{};
  ASSERT_TRUE(opened.register_host(memory.data() + 20, 40, {}));
  for (const auto& [start, length] : {std::pair{20, 40}, {0, 21}, {59, 1}, {30, 10}, {0, 100}}) {
    runtime.pointers[memory.data() + 20] = 1;  // as HIP knows it now
    const auto again = opened.register_host(memory.data() + start, bytes_t(length), {});
    ASSERT_FALSE(again) << start;
    EXPECT_EQ(again.error().code(), errc::gpu_already_registered) << start;
  }
  EXPECT_TRUE(opened.register_host(memory.data(), 20, {}));
  EXPECT_TRUE(opened.register_host(memory.data() + 60, 40, {}));
  EXPECT_EQ(
      std::count(runtime.log.begin(), runtime.log.end(), "hipHostRegister 40 bytes, flags 0x3"), 2);
}

TEST_F(hip_driver, registers_nothing_that_is_page_locked_or_of_the_device) {
  driver& opened = open();
  std::array<std::byte, 100> memory{};
  constexpr int host = 1;
  constexpr int device = 2;
  runtime.pointers = {{memory.data() + 99, host}};
  EXPECT_EQ(opened.register_host(memory.data(), 100, {}).error().code(),
            errc::gpu_already_registered);
  runtime.pointers = {{memory.data(), device}};
  EXPECT_EQ(opened.register_host(memory.data(), 100, {}).error().code(), errc::gpu_invalid_value);
  EXPECT_THAT(runtime.log, Not(Contains(HasSubstr("hipHostRegister"))));
}

TEST_F(hip_driver, unregisters_only_the_starts_of_what_it_has_registered) {
  driver& opened = open();
  std::array<std::byte, 100> memory{};
  runtime.version = 50221153;
  EXPECT_EQ(opened.unregister_host(memory.data()).error().code(), errc::gpu_not_registered);
  ASSERT_TRUE(opened.register_host(memory.data(), 100, {}));
  runtime.pointers[memory.data()] = 1;
  EXPECT_EQ(opened.unregister_host(memory.data() + 8).error().code(), errc::gpu_not_registered);
  EXPECT_THAT(runtime.log, Not(Contains("hipHostUnregister")));
  runtime.next_status["hipHostUnregister"] = hip::code::unknown;
  EXPECT_FALSE(opened.unregister_host(memory.data()));
  EXPECT_TRUE(opened.unregister_host(memory.data())) << "after a failure it is still registered";
  EXPECT_EQ(opened.unregister_host(memory.data()).error().code(), errc::gpu_not_registered);
}

TEST_F(hip_driver, notices_what_the_program_has_unregistered_itself) {
  driver& opened = open();
  std::array<std::byte, 100> memory{};
  ASSERT_TRUE(opened.register_host(memory.data(), 100, {}));
  // Here HIP knows it no more.
  EXPECT_TRUE(opened.register_host(memory.data() + 50, 10, {}));
  EXPECT_EQ(opened.unregister_host(memory.data()).error().code(), errc::gpu_not_registered);
  EXPECT_EQ(opened.unregister_host(memory.data() + 50).error().code(), errc::gpu_not_registered);
  EXPECT_THAT(runtime.log, Not(Contains("hipHostUnregister")));
}

TEST_F(hip_driver, a_failed_registration_leaves_the_range_free) {
  driver& opened = open();
  std::array<std::byte, 100> memory{};
  runtime.next_status["hipHostRegister"] = hip::code::out_of_memory;
  EXPECT_EQ(opened.register_host(memory.data(), 100, {}).error().code(), errc::gpu_out_of_memory);
  EXPECT_TRUE(opened.register_host(memory.data(), 100, {}));
}

TEST_F(hip_driver, knows_the_start_of_registered_memory_where_hip_does_not_tell) {
  runtime.tells_base = false;
  driver& opened = open();
  std::array<std::byte, 100> memory{};
  ASSERT_TRUE(opened.register_host(memory.data(), 100, {}));
  runtime.pointers = {{memory.data() + 7, 1}};
  const auto known = opened.classify(memory.data() + 7);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->base, memory.data());
  EXPECT_EQ(known->bytes, 100U);
}

TEST_F(hip_driver, gives_no_device_address_of_device_memory) {
  driver& opened = open();
  int place = 0;
  runtime.pointers = {{&place, 2}};
  EXPECT_EQ(opened.device_address(&place).error().code(), errc::gpu_invalid_value);
  runtime.pointers = {{&place, 1}};
  EXPECT_EQ(opened.device_address(&place).value(), &place);
}

TEST_F(hip_driver, of_hip_5_2_runs_no_kernel_in_the_per_thread_stream) {
  runtime.version = 50221153;
  driver& old = open();
  EXPECT_FALSE(old.info().capabilities.has(capability::per_thread_stream));
  EXPECT_EQ(old.launch(kernel_copy{}, per_thread_stream, {}).error().code(),
            errc::gpu_not_supported);
  EXPECT_THAT(runtime.log, IsEmpty());
  runtime.version = 50322062;
  EXPECT_TRUE(open().info().capabilities.has(capability::per_thread_stream));
}

TEST_F(hip_driver, out_of_memory_carries_the_amounts_of_that_device) {
  driver& opened = open();
  runtime.next_status["hipMalloc"] = hip::code::out_of_memory;
  const auto memory = opened.allocate_device(1, 5000, coherence::coarse);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), errc::gpu_out_of_memory);
  ASSERT_TRUE(memory.error().shortage().has_value());
  EXPECT_EQ(*memory.error().shortage(),
            (memory_shortage{.requested = 5000, .free = 1000, .total = 4000}));
  EXPECT_THAT(memory.error().message(), HasSubstr("hipErrorOutOfMemory (2)"));
  EXPECT_THAT(runtime.log, Contains("hipMemGetInfo device 1"));
  EXPECT_EQ(runtime.last_error, 0);
  EXPECT_EQ(runtime.current, 0);
}

TEST_F(hip_driver, fine_grained_device_memory_is_given_only_where_the_device_has_it) {
  driver& without = open();
  EXPECT_EQ(without.allocate_device(0, 64, coherence::fine).error().code(),
            errc::gpu_not_supported);
  runtime.attributes = {{10016, 1}};
  driver& with = open();
  const auto memory = with.allocate_device(0, 64, coherence::fine);
  ASSERT_TRUE(memory);
  EXPECT_THAT(runtime.log, Contains("hipExtMallocWithFlags 64 bytes, flags 0x1, device 0"));
  EXPECT_TRUE(with.free_device(*memory));
}

TEST_F(hip_driver, checks_what_the_contract_says_is_checked) {
  driver& opened = open();
  EXPECT_EQ(opened.allocate_device(0, 0, coherence::coarse).error().code(),
            errc::gpu_invalid_value);
  EXPECT_EQ(opened.allocate_pinned(0, {}).error().code(), errc::gpu_invalid_value);
  for (const int device : {-1, 2}) {
    EXPECT_EQ(opened.allocate_device(device, 1, coherence::coarse).error().code(),
              errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.allocate_managed(device, 1).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.create_stream(device, {}).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.create_event(device, {}).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.memory_info(device).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.set_current_device(device).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.can_access_peer(0, device).error().code(), errc::gpu_device_out_of_range);
    EXPECT_EQ(opened.prepare_kernels(device).error().code(), errc::gpu_device_out_of_range);
  }
  EXPECT_EQ(
      opened.copy_2d_sync({.dst_pitch = 4, .src_pitch = 8, .width = 8, .rows = 1}).error().code(),
      errc::gpu_invalid_value);
  EXPECT_THAT(runtime.log, IsEmpty()) << "the runtime was not asked";
}

TEST_F(hip_driver, copies_of_nothing_do_nothing) {
  driver& opened = open();
  EXPECT_TRUE(opened.copy(nullptr, nullptr, 0));
  EXPECT_TRUE(opened.copy_async(nullptr, nullptr, 0, default_stream));
  EXPECT_TRUE(opened.copy_2d_async({.dst_pitch = 8, .src_pitch = 8, .width = 8}, default_stream));
  EXPECT_TRUE(opened.fill(nullptr, std::byte{1}, 0));
  EXPECT_THAT(runtime.log, IsEmpty());
}

TEST_F(hip_driver, leaves_the_direction_of_copies_to_the_runtime) {
  driver& opened = open();
  const int from = 7;
  int to = 0;
  ASSERT_TRUE(opened.copy_async(&to, &from, sizeof to, stream_handle{2}));
  EXPECT_EQ(to, 7);
  EXPECT_THAT(runtime.log, ElementsAre("hipMemcpyAsync 4 bytes, kind 4, stream 2"));
}

TEST_F(hip_driver, a_fill_waits_until_it_is_done) {
  driver& opened = open();
  int place = 0;
  ASSERT_TRUE(opened.fill(&place, std::byte{0xAB}, 4));
  EXPECT_THAT(runtime.log,
              ElementsAre("hipMemset 4 bytes of 171", "hipStreamSynchronize stream 0"));
}

TEST_F(hip_driver, not_ready_is_no_error_and_is_not_left_behind) {
  driver& opened = open();
  runtime.next_status = {{"hipStreamQuery", hip::code::not_ready},
                         {"hipEventQuery", hip::code::not_ready}};
  EXPECT_EQ(opened.query_stream(default_stream).value(), progress::pending);
  EXPECT_EQ(opened.query_event({}).value(), progress::pending);
  EXPECT_EQ(runtime.last_error, 0);
  EXPECT_EQ(opened.query_stream(default_stream).value(), progress::complete);
}

TEST_F(hip_driver, failures_name_the_call_and_leave_no_last_error) {
  driver& opened = open();
  runtime.next_status["hipStreamSynchronize"] = hip::code::illegal_address;
  const auto failed = opened.synchronize_stream(default_stream);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), errc::gpu_device_lost);
  EXPECT_EQ(failed.error().scope(), error_scope::device);
  EXPECT_EQ(failed.error().where(), "hipStreamSynchronize");
  EXPECT_THAT(failed.error().message(), HasSubstr("(700)"));
  EXPECT_EQ(runtime.last_error, 0);
}

TEST_F(hip_driver, an_error_of_the_program_stays_when_berths_calls_succeed) {
  driver& opened = open();
  runtime.last_error = hip::code::invalid_value;
  EXPECT_TRUE(opened.synchronize_stream(default_stream));
  EXPECT_EQ(opened.query_event({}).value(), progress::complete);
  EXPECT_EQ(runtime.last_error, hip::code::invalid_value);
}

TEST_F(hip_driver, calls_the_host_by_callback_where_the_newer_call_is_missing) {
  int called = 0;
  const auto count = [](void* data) { ++*static_cast<int*>(data); };
  remove("hipLaunchHostFunc");
  driver& opened = open();
  EXPECT_TRUE(opened.info().capabilities.has(capability::host_callback));
  EXPECT_THAT(opened.info().missing_symbols, ElementsAre("hipLaunchHostFunc"));
  ASSERT_TRUE(opened.call_host(default_stream, count, &called));
  EXPECT_EQ(called, 1);
  // A refused one must neither call nor leak.
  runtime.next_status["hipStreamAddCallback"] = hip::code::invalid_handle;
  EXPECT_EQ(opened.call_host(stream_handle{5}, count, &called).error().code(),
            errc::gpu_invalid_handle);
  EXPECT_EQ(called, 1);
}

TEST_F(hip_driver, a_missing_optional_call_switches_its_capability_off) {
  remove("hipMallocManaged");
  remove("hipMemPrefetchAsync");
  remove("hipDeviceEnablePeerAccess");
  remove("hipThreadExchangeStreamCaptureMode");
  remove("hipModuleLaunchKernel");
  driver& opened = open();
  const auto& can = opened.info().capabilities;
  EXPECT_FALSE(can.has(capability::managed));
  EXPECT_FALSE(can.has(capability::prefetch));
  EXPECT_FALSE(can.has(capability::peer_access));
  EXPECT_FALSE(can.has(capability::stream_capture));
  EXPECT_FALSE(can.has(capability::kernels));
  EXPECT_TRUE(can.has(capability::advise));
  EXPECT_EQ(opened.allocate_managed(0, 8).error().code(), errc::gpu_not_supported);
  EXPECT_EQ(opened.prefetch_async(nullptr, 8, {}, default_stream).error().code(),
            errc::gpu_not_supported);
  EXPECT_EQ(opened.enable_peer_access(0, 1).error().code(), errc::gpu_not_supported);
  EXPECT_EQ(opened.launch(kernel_copy{}, default_stream, {}).error().code(),
            errc::gpu_not_supported);
  EXPECT_EQ(opened.exchange_capture_mode(capture_mode::relaxed).value(), capture_mode::relaxed);
}

TEST_F(hip_driver, peers_are_enabled_once_from_the_device_that_reaches) {
  driver& opened = open();
  EXPECT_TRUE(opened.enable_peer_access(1, 0));
  EXPECT_THAT(runtime.log, Contains("hipDeviceEnablePeerAccess 0 from 1"));
  runtime.next_status["hipDeviceEnablePeerAccess"] = hip::code::peer_access_already_enabled;
  EXPECT_TRUE(opened.enable_peer_access(1, 0));
  runtime.next_status["hipDeviceDisablePeerAccess"] = hip::code::peer_access_not_enabled;
  EXPECT_TRUE(opened.disable_peer_access(1, 0));
  EXPECT_EQ(runtime.last_error, 0);
  EXPECT_EQ(runtime.current, 0);
  EXPECT_TRUE(opened.enable_peer_access(1, 1));
  EXPECT_TRUE(opened.can_access_peer(1, 1).value());
}

TEST_F(hip_driver, streams_and_events_are_made_as_asked) {
  driver& opened = open();
  ASSERT_TRUE(opened.create_stream(1, {}));
  ASSERT_TRUE(opened.create_stream(
      0, {.ordering = stream_ordering::blocking, .priority = stream_priority::high}));
  ASSERT_TRUE(opened.create_stream(0, {.priority = stream_priority::low}));
  ASSERT_TRUE(opened.create_event(1, {.timing = event_timing::enabled}));
  EXPECT_THAT(runtime.log, AllOf(Contains("hipStreamCreateWithFlags flags 1, device 1"),
                                 Contains("hipStreamCreateWithPriority flags 0, -1"),
                                 Contains("hipStreamCreateWithPriority flags 1, 1"),
                                 Contains("hipEventCreateWithFlags flags 0x80000000, device 1")));
  EXPECT_EQ(opened.elapsed({}, {}).value(), std::chrono::microseconds(1500));
}

TEST_F(hip_driver, compiles_the_kernels_once_for_each_device_and_launches_them) {
  runtime.attributes = {{63, 10}};
  driver& opened = open();
  std::uint32_t flag = 0;
  const kernel_spin spin{.release = &flag, .at_most = std::chrono::milliseconds(2)};
  ASSERT_TRUE(opened.launch(spin, default_stream, {}));
  // 2 ms of the usual 100 MHz clock, as no rate is told.
  EXPECT_THAT(runtime.log, Contains("hipModuleLaunchKernel berth_spin 1x1 p1 200000"));
  EXPECT_THAT(runtime.log, Contains("hipModuleLoadData image"));
  runtime.log.clear();
  ASSERT_TRUE(opened.launch(spin, default_stream, {}));
  EXPECT_THAT(runtime.log, ElementsAre("hipModuleLaunchKernel berth_spin 1x1 p1 200000"));
  ASSERT_TRUE(opened.prepare_kernels(1));
  EXPECT_THAT(runtime.log, Contains("hiprtcCompileProgram device 1"));
  EXPECT_EQ(runtime.current, 0);
}

TEST_F(hip_driver, kernels_that_do_not_compile_say_why_each_time) {
  driver& opened = open();
  runtime.next_status["hiprtcCompileProgram"] = 6;
  for (int time = 0; time < 2; ++time) {
    const auto failed = opened.prepare_kernels(0);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::gpu_kernel_unavailable);
    EXPECT_THAT(failed.error().message(), HasSubstr("kernels:1: wrong"));
  }
  EXPECT_THAT(runtime.log, Contains("hiprtcDestroyProgram"));
  EXPECT_EQ(runtime.last_error, 0);
}

TEST_F(hip_driver, takes_the_compiler_from_its_own_library_when_the_runtime_has_none) {
  // As since 7.0: libamdhip64 without hiprtc, libhiprtc of the same number beside it.
  runtime.version = 70051831;
  auto whole = fake_hip::library();
  testing::fake_library compiler;
  auto& hip_symbols = system.libraries["libamdhip64.so.6"].symbols;
  for (const auto& [name, place] : whole.symbols) {
    if (name.starts_with("hiprtc")) {
      hip_symbols.erase(name);
      compiler.symbols[name] = place;
    }
  }
  driver& opened = open();
  EXPECT_THAT(
      opened.launch(kernel_copy{.dst = &whole, .src = &whole, .bytes = 16}, default_stream, {})
          .error()
          .message(),
      HasSubstr("libhiprtc.so.7"));
  system.libraries["libhiprtc.so.7"] = compiler;
  system.libraries["libhiprtc.so.6"] = fake_hip::library();
  driver& again = open();
  EXPECT_TRUE(again.prepare_kernels(0));
  EXPECT_THAT(system.opened, AllOf(Contains("libhiprtc.so.7"), Not(Contains("libhiprtc.so.6"))));
}

}  // namespace
}  // namespace berth::runtime
