// SPDX-License-Identifier: Apache-2.0
// The driver's calls and the engines, by hand-made packets: no ROCm is needed.
#include <sys/ioctl.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/preload/driver_calls.hpp"
#include "emulator/preload/hsa_abi.hpp"
#include "emulator/preload/kfd_abi.hpp"

namespace berth::emulator {
namespace {

machine_spec one_gpu() {
  machine_spec spec;
  spec.name = "test";
  gpu_spec gpu{.kfd_id = 77,
               .kfd_node = 1,
               .render_minor = 128,
               .memory = std::uint64_t{1} << 30U,
               .title = "test",
               .costs = {}};
  for (const auto way : {transfer::host_to_device, transfer::device_to_host}) {
    gpu.cost(way, carrier::dma) = {.knots = {{0, 1000}}, .tail_ns_per_byte = 0.04};
  }
  spec.gpus.push_back(gpu);
  spec.slice_bytes = std::uint64_t{4} << 30U;
  return spec;
}

// Never destroyed, as in a program: its poller's thread goes on. The list is where leak detection
// finds them.
driver& new_driver() {
  static auto& made = *new std::vector<driver*>;
  return *made.emplace_back(new driver(one_gpu()));
}

template <typename Args>
int call(driver& to, kfd::call number, Args& args) {
  return to.call(
      _IOC(_IOC_READ | _IOC_WRITE, kfd::ioctl_type, static_cast<unsigned>(number), sizeof(args)),
      &args);
}

kfd::alloc_memory_args allocate(driver& in, std::uint64_t address, std::uint64_t bytes,
                                std::uint32_t flags) {
  kfd::alloc_memory_args args{.va_addr = address,
                              .size = bytes,
                              .handle = 0,
                              .mmap_offset = 0,
                              .gpu_id = 77,
                              .flags = flags};
  EXPECT_EQ(call(in, kfd::call::alloc_memory, args), 0);
  return args;
}

constexpr std::uint64_t ring_address = 0x100000000;
constexpr std::uint64_t pointers_address = 0x110000000;
constexpr std::uint64_t host_address = 0x120000000;
constexpr std::uint64_t device_address = 0x130000000;
constexpr std::uint64_t ring_bytes = 4096;
constexpr std::uint64_t buffer_bytes = std::uint64_t{8} << 20U;

// What asks for a queue of device 77 whose ring and pointers stand at the usual places.
kfd::create_queue_args queue_at_ring(kfd::queue_type type) {
  kfd::create_queue_args args{};
  args.ring_base_address = ring_address;
  args.ring_size = ring_bytes;
  args.write_pointer_address = pointers_address;
  args.read_pointer_address = pointers_address + 8;
  args.gpu_id = 77;
  args.queue_type = static_cast<std::uint32_t>(type);
  return args;
}

// A driver with an SDMA queue, a host and a device buffer.
class Sdma : public testing::Test {
protected:
  void SetUp() override {
    allocate(in_, ring_address, ring_bytes, kfd::flag_gtt);
    allocate(in_, pointers_address, 4096, kfd::flag_gtt);
    allocate(in_, host_address, buffer_bytes, kfd::flag_gtt);
    allocate(in_, device_address, buffer_bytes, kfd::flag_vram);
    auto args = queue_at_ring(kfd::queue_type::sdma);
    ASSERT_EQ(call(in_, kfd::call::create_queue, args), 0);
    queue_ = args.queue_id;
    EXPECT_GT(args.doorbell_offset, std::uint64_t{1} << 32U);
  }
  void TearDown() override {
    kfd::destroy_queue_args args{.queue_id = queue_, .pad = 0};
    EXPECT_EQ(call(in_, kfd::call::destroy_queue, args), 0);
    EXPECT_EQ(call(in_, kfd::call::destroy_queue, args), EINVAL);
  }

  char* host(std::uint64_t address) { return in_.machine().locate(address)->host; }
  template <typename Word>
  std::atomic_ref<Word> word(std::uint64_t address) {
    return std::atomic_ref(*in_.machine().word<Word>(address));
  }

  void put(const std::vector<std::uint32_t>& words) {
    for (const auto one : words) {
      std::memcpy(host(ring_address) + written_ % ring_bytes, &one, sizeof(one));
      written_ += sizeof(one);
    }
  }
  void put_copy(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    put({1, bytes - 1, 0, low(from), high(from), low(to), high(to)});
  }
  void put_timestamp(std::uint64_t at) { put({13 | 2U << 8U, low(at), high(at)}); }
  void ring_doorbell() { word<std::uint64_t>(pointers_address).store(written_); }
  bool all_done() {
    for (int tries = 0; tries < 5000; ++tries) {
      if (word<std::uint64_t>(pointers_address + 8).load() == written_) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  static std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32U);
  }

  driver& in_ = new_driver();
  std::uint32_t queue_ = 0;
  std::uint64_t written_ = 0;
};

TEST_F(Sdma, CopiesAndStampsByTheModel) {
  for (std::uint64_t i = 0; i < buffer_bytes; ++i) {
    host(host_address)[i] = static_cast<char>(i * 7 + (i >> 8U));
  }
  put_timestamp(pointers_address + 64);
  put_copy(device_address, host_address, 4U << 20U);
  put_copy(device_address + (4U << 20U), host_address + (4U << 20U), 3U << 20U);
  put_timestamp(pointers_address + 72);
  ring_doorbell();
  ASSERT_TRUE(all_done());
  EXPECT_EQ(std::memcmp(host(host_address), host(device_address), 7U << 20U), 0);
  EXPECT_EQ(host(device_address)[7U << 20U], 0);
  // One copy in two packets: 1000 ns once, and 0.04 ns for each byte.
  const auto ticks = word<std::uint64_t>(pointers_address + 72).load() -
                     word<std::uint64_t>(pointers_address + 64).load();
  EXPECT_NEAR(static_cast<double>(ticks * ns_per_tick), 1000 + 0.04 * (7U << 20U), 20);
}

TEST_F(Sdma, WaitsForAWordAndSignals) {
  const auto value = pointers_address + 128;
  const auto fence = pointers_address + 192;
  word<std::uint32_t>(value).store(1);
  put({8 | 3U << 28U | 1U << 31U, low(value), high(value), 0, 0xffffffff, 0});
  put({5, low(fence), high(fence), 42});
  put({10 | 47U << 25U, low(fence), high(fence), 0xffffffff, 0xffffffff, 0, 0, 0});
  ring_doorbell();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(word<std::uint32_t>(fence).load(), 0U);
  word<std::uint32_t>(value).store(0);
  ASSERT_TRUE(all_done());
  EXPECT_EQ(word<std::uint64_t>(fence).load(), 41U);
}

TEST_F(Sdma, FillsAndCopiesBlocks) {
  put({11 | 2U << 30U, low(device_address), high(device_address), 0x01020304, 64 - 4});
  // 3 rows of 4 bytes, from a pitch of 16 to one of 32
  put({1 | 4U << 8U, low(device_address), high(device_address), 0, 15U << 13U, 0, low(host_address),
       high(host_address), 0, 31U << 13U, 0, 3 | 2U << 16U, 0});
  ring_doorbell();
  ASSERT_TRUE(all_done());
  for (unsigned row = 0; row < 3; ++row) {
    EXPECT_EQ(word<std::uint32_t>(host_address + 32 * row).load(), 0x01020304U);
    EXPECT_EQ(word<std::uint32_t>(host_address + 32 * row + 4).load(), 0U);
  }
}

TEST_F(Sdma, TrapSetsAnEvent) {
  kfd::create_event_args made{};
  made.auto_reset = 1;
  ASSERT_EQ(call(in_, kfd::call::create_event, made), 0);
  EXPECT_NE(made.event_page_offset, 0U);
  put({6, made.event_id});
  ring_doorbell();
  kfd::event_data data{};
  data.event_id = made.event_id;
  kfd::wait_events_args wait{.events_pointer = reinterpret_cast<std::uint64_t>(&data),
                             .num_events = 1,
                             .wait_for_all = 0,
                             .timeout = 5000,
                             .wait_result = 9};
  EXPECT_EQ(call(in_, kfd::call::wait_events, wait), 0);
  EXPECT_EQ(wait.wait_result, 0U);
  wait.timeout = 1;
  EXPECT_EQ(call(in_, kfd::call::wait_events, wait), 0);
  EXPECT_EQ(wait.wait_result, 1U);  // it has reset itself
}

// What a program sees of a device that stops: the exception, in a memory event.
TEST_F(Sdma, ReportsAnAddressThatNoBufferHas) {
  kfd::create_event_args made{};
  made.event_type = static_cast<std::uint32_t>(kfd::event_type::memory);
  ASSERT_EQ(call(in_, kfd::call::create_event, made), 0);
  put_copy(device_address, 0xdead0000, 64);
  ring_doorbell();
  kfd::event_data data{};
  data.event_id = made.event_id;
  kfd::wait_events_args wait{.events_pointer = reinterpret_cast<std::uint64_t>(&data),
                             .num_events = 1,
                             .wait_for_all = 0,
                             .timeout = 5000,
                             .wait_result = 9};
  ASSERT_EQ(call(in_, kfd::call::wait_events, wait), 0);
  EXPECT_EQ(data.memory.va, 0xdead0000U);
  EXPECT_EQ(data.memory.not_present, 1U);
  EXPECT_EQ(data.memory.gpu_id, 77U);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Waits for the exception that a device raises when it hangs. Which device: 0 for none.
std::uint32_t device_that_hangs(driver& in, std::uint32_t event) {
  kfd::event_data data{};
  data.event_id = event;
  kfd::wait_events_args wait{.events_pointer = reinterpret_cast<std::uint64_t>(&data),
                             .num_events = 1,
                             .wait_for_all = 0,
                             .timeout = 5000,
                             .wait_result = 9};
  EXPECT_EQ(call(in, kfd::call::wait_events, wait), 0);
  return wait.wait_result == 0 ? data.hardware.gpu_id : 0;
}

std::uint32_t hang_event(driver& in) {
  kfd::create_event_args made{};
  made.event_type = static_cast<std::uint32_t>(kfd::event_type::hw_exception);
  EXPECT_EQ(call(in, kfd::call::create_event, made), 0);
  return made.event_id;
}

TEST_F(Sdma, StopsAtAnUnknownPacketAndNamesItOnce) {
  testing::internal::CaptureStderr();
  const auto event = hang_event(in_);
  put({0x55});
  put_timestamp(pointers_address + 64);
  ring_doorbell();
  EXPECT_EQ(device_that_hangs(in_, event), 77U);
  EXPECT_EQ(word<std::uint64_t>(pointers_address + 8).load(), 0U);
  EXPECT_EQ(word<std::uint64_t>(pointers_address + 64).load(), 0U) << "nothing behind it is done";
  // The same in another process of the machine, so to speak: not named again.
  auto& other = new_driver();
  allocate(other, ring_address, ring_bytes, kfd::flag_gtt);
  allocate(other, pointers_address, 4096, kfd::flag_gtt);
  const auto other_event = hang_event(other);
  *other.machine().word<std::uint32_t>(ring_address) = 0x55;
  *other.machine().word<std::uint64_t>(pointers_address) = 4;
  auto args = queue_at_ring(kfd::queue_type::sdma);
  ASSERT_EQ(call(other, kfd::call::create_queue, args), 0);
  EXPECT_EQ(device_that_hangs(other, other_event), 77U);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, "unknown SDMA packet, operation 85"), 1U) << said;
}

TEST(Aql, StopsAtAnUnknownPacketAndNamesIt) {
  testing::internal::CaptureStderr();
  auto& in = new_driver();
  allocate(in, ring_address, ring_bytes, kfd::flag_gtt);
  allocate(in, pointers_address, 4096, kfd::flag_gtt);
  const auto event = hang_event(in);
  auto args = queue_at_ring(kfd::queue_type::aql);
  ASSERT_EQ(call(in, kfd::call::create_queue, args), 0);
  *in.machine().word<std::uint16_t>(ring_address) = 9;  // no type of packet
  std::atomic_ref(*in.machine().word<std::uint64_t>(pointers_address)).store(1);
  EXPECT_EQ(device_that_hangs(in, event), 77U);
  EXPECT_EQ(*in.machine().word<std::uint64_t>(pointers_address + 8), 0U);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, "unknown AQL packet, type 9"), 1U) << said;
}

TEST(Driver, RefusesAnUnknownCallAndNamesItOnce) {
  testing::internal::CaptureStderr();
  auto& in = new_driver();
  std::uint64_t argument = 5;
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(in.call(_IOC(_IOC_READ, kfd::ioctl_type, 125, sizeof(argument)), &argument), ENOTTY);
  }
  EXPECT_EQ(argument, 5U);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, "unknown call of the driver, number 125"), 1U) << said;
}

TEST(Driver, GivesNoMoreMemoryThanTheDeviceHas) {
  auto& in = new_driver();
  constexpr std::uint64_t half = std::uint64_t{512} << 20U;
  const auto first = allocate(in, 0x100000000, half, kfd::flag_vram);
  allocate(in, 0x200000000, half, kfd::flag_vram);
  kfd::alloc_memory_args more{.va_addr = 0x300000000,
                              .size = 4096,
                              .handle = 0,
                              .mmap_offset = 0,
                              .gpu_id = 77,
                              .flags = kfd::flag_vram};
  EXPECT_EQ(call(in, kfd::call::alloc_memory, more), ENOMEM);
  kfd::free_memory_args gone{.handle = first.handle};
  EXPECT_EQ(call(in, kfd::call::free_memory, gone), 0);
  EXPECT_EQ(call(in, kfd::call::free_memory, gone), EINVAL);
  EXPECT_EQ(call(in, kfd::call::alloc_memory, more), 0);
  EXPECT_EQ(*in.machine().locate(0x300000000)->host, 0);
}

TEST(Driver, RefusesWhatMakesNoSense) {
  auto& in = new_driver();
  kfd::alloc_memory_args wrong_gpu{.va_addr = 1 << 20,
                                   .size = 4096,
                                   .handle = 0,
                                   .mmap_offset = 0,
                                   .gpu_id = 78,
                                   .flags = kfd::flag_vram};
  EXPECT_EQ(call(in, kfd::call::alloc_memory, wrong_gpu), EINVAL);
  kfd::create_queue_args no_ring{};
  no_ring.gpu_id = 77;
  EXPECT_EQ(call(in, kfd::call::create_queue, no_ring), EINVAL);
  allocate(in, ring_address, ring_bytes, kfd::flag_gtt);
  allocate(in, pointers_address, 4096, kfd::flag_gtt);
  kfd::create_queue_args ring{};
  ring.gpu_id = 77;
  ring.ring_base_address = ring_address;
  ring.write_pointer_address = pointers_address;
  ring.read_pointer_address = pointers_address + 8;
  ring.queue_type = static_cast<std::uint32_t>(kfd::queue_type::aql);
  for (const std::uint32_t bytes : {0U, 32U, 192U, 4096U * 2}) {
    ring.ring_size = bytes;
    EXPECT_EQ(call(in, kfd::call::create_queue, ring), EINVAL) << bytes;
  }
  kfd::alloc_memory_args endless{.va_addr = 1 << 20,
                                 .size = ~std::uint64_t{0},
                                 .handle = 0,
                                 .mmap_offset = 0,
                                 .gpu_id = 77,
                                 .flags = kfd::flag_vram};
  EXPECT_EQ(call(in, kfd::call::alloc_memory, endless), ENOMEM);
  kfd::svm_args too_many{};
  too_many.nattr = 1;
  EXPECT_EQ(call(in, kfd::call::svm, too_many), EINVAL);
  kfd::map_memory_args no_buffer{
      .handle = 5, .device_ids_pointer = 0, .n_devices = 1, .n_success = 0};
  EXPECT_EQ(call(in, kfd::call::map_memory, no_buffer), EINVAL);
  kfd::set_xnack_mode_args xnack{.xnack_enabled = 1};
  EXPECT_EQ(call(in, kfd::call::set_xnack_mode, xnack), EPERM);
  kfd::event_args no_event{.event_id = 12, .pad = 0};
  EXPECT_EQ(call(in, kfd::call::set_event, no_event), EINVAL);
}

TEST(Events, OneSetWakesAllWhoWait) {
  event_table events;
  const auto id = *events.create(kfd::event_type::signal, reset_rule::by_wait);
  std::atomic<int> woken{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] {
      kfd::event_data data{};
      data.event_id = id;
      woken += events.wait({&data, 1}, wait_rule::any, 5000) == wait_outcome::signalled;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(events.set(id));
  for (auto& one : waiting) {
    one.join();
  }
  EXPECT_EQ(woken, 3);
}

TEST(Events, DestroyingOneEndsTheWait) {
  event_table events;
  const auto id = *events.create(kfd::event_type::signal, reset_rule::by_wait);
  std::thread destroyer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    events.destroy(id);
  });
  kfd::event_data data{};
  data.event_id = id;
  EXPECT_EQ(events.wait({&data, 1}, wait_rule::any, 0xffffffff), wait_outcome::event_destroyed);
  destroyer.join();
  EXPECT_EQ(events.wait({&data, 1}, wait_rule::any, 0), wait_outcome::unknown_event);
}

kfd::svm_attribute_value attribute(kfd::svm_attribute type, std::uint32_t value) {
  return {static_cast<std::uint32_t>(type), value};
}

TEST(AddressAttributes, AreKeptByRange) {
  using kfd::svm_attribute;
  address_attributes table;
  auto preferred = attribute(svm_attribute::preferred_location, 77);
  table.set(0x10000, 0x4000, {&preferred, 1});
  auto other = attribute(svm_attribute::preferred_location, 0);
  table.set(0x12000, 0x1000, {&other, 1});
  const auto ask = [&](std::uint64_t start, std::uint64_t bytes) {
    auto asked = attribute(svm_attribute::preferred_location, 5);
    table.get(start, bytes, {&asked, 1}, xnack_mode::off);
    return asked.value;
  };
  EXPECT_EQ(ask(0x10000, 0x2000), 77U);
  EXPECT_EQ(ask(0x12000, 0x1000), 0U);
  EXPECT_EQ(ask(0x13000, 0x1000), 77U);
  EXPECT_EQ(ask(0x10000, 0x4000), kfd::svm_location_undefined);
  EXPECT_EQ(ask(0x50000, 0x1000), kfd::svm_location_undefined);
}

TEST(AddressAttributes, AccessIsTheWeakestOfTheRange) {
  using kfd::svm_attribute;
  address_attributes table;
  auto granted = attribute(svm_attribute::access, 77);
  table.set(0x10000, 0x2000, {&granted, 1});
  const auto ask = [&](std::uint64_t bytes, xnack_mode xnack) {
    auto asked = attribute(svm_attribute::access, 77);
    table.get(0x10000, bytes, {&asked, 1}, xnack);
    return static_cast<svm_attribute>(asked.type);
  };
  EXPECT_EQ(ask(0x2000, xnack_mode::off), svm_attribute::access);
  EXPECT_EQ(table.accessible(0x11000), 0x1000U);
  EXPECT_EQ(table.accessible(0x12000), 0U);
  auto revoked = attribute(svm_attribute::no_access, 77);
  table.set(0x11000, 0x1000, {&revoked, 1});
  EXPECT_EQ(ask(0x2000, xnack_mode::off), svm_attribute::no_access);
  EXPECT_EQ(ask(0x1000, xnack_mode::off), svm_attribute::access);
}

TEST(MachineSpec, IsReadAsItWasWritten) {
  auto spec = one_gpu();
  spec.memory_file = "/proc/1/fd/9";
  spec.trace_file = "/tmp/a trace";
  spec.xnack = xnack_mode::on;
  spec.numa = numa_nodes::invented;
  spec.peers.push_back({.from = 0, .to = 1, .cost = {.knots = {{0, 5}}, .tail_ns_per_byte = 0.1}});
  spec.faults.push_back(
      {.kind = fault_kind::copy_slow, .nth = 3, .at_least = 5, .delay_ns = 7, .only = "a kernel"});
  const auto read = read_spec(write_spec(spec));
  ASSERT_TRUE(read);
  EXPECT_EQ(write_spec(*read), write_spec(spec));
  EXPECT_EQ(read->faults, spec.faults);
  EXPECT_EQ(read->trace_file, spec.trace_file);
  EXPECT_EQ(read->gpus.front().title, "test");
  EXPECT_FALSE(read_spec(""));
  EXPECT_FALSE(read_spec("berth-emulator 1\ngpu x\n"));
  EXPECT_FALSE(read_spec("berth-emulator 2\n"));
}

TEST(CostCurve, RunsThroughItsKnots) {
  const cost_curve curve{.knots = {{0, 100}, {1000, 200}}, .tail_ns_per_byte = 0.5};
  EXPECT_DOUBLE_EQ(curve.nanoseconds(0), 100);
  EXPECT_DOUBLE_EQ(curve.nanoseconds(500), 150);
  EXPECT_DOUBLE_EQ(curve.nanoseconds(1000), 200);
  EXPECT_DOUBLE_EQ(curve.nanoseconds(3000), 1200);
  EXPECT_DOUBLE_EQ(cost_curve{}.nanoseconds(5), 0);
}

}  // namespace
}  // namespace berth::emulator
