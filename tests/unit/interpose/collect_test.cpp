// SPDX-License-Identifier: Apache-2.0
// From arguments to values: calls with shapes, structures and lists.
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "interpose/capture/collect.hpp"

namespace berth::interpose {
namespace {

void* at(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

template <call_id Call, class... Arguments>
role_values inputs(const Arguments&... arguments) {
  role_values values;
  collect_inputs<Call>(values, arguments...);
  return values;
}

template <call_id Call, class... Arguments>
role_values results(const Arguments&... arguments) {
  role_values values;
  collect_inputs<Call>(values, arguments...);
  collect_results<Call>(values, arguments...);
  return values;
}

std::uint64_t number(named_memory memory) {
  return static_cast<std::uint64_t>(memory);
}

TEST(Collect, TakesAPlainCopy) {
  const auto values = inputs<call_id::hipMemcpyAsync>(at(1), at(2), std::size_t{3}, 1, at(4));
  EXPECT_EQ(values[role::dst], 1U);
  EXPECT_EQ(values[role::src], 2U);
  EXPECT_EQ(values[role::bytes], 3U);
  EXPECT_EQ(values[role::way], static_cast<std::uint64_t>(way::to_device));
  EXPECT_EQ(values[role::stream], 4U);
}

TEST(Collect, SumsTheRowsOfACopy) {
  const auto values = inputs<call_id::hipMemcpy2D>(at(1), std::size_t{512}, at(2), std::size_t{256},
                                                   std::size_t{100}, std::size_t{7}, 2);
  EXPECT_EQ(values[role::bytes], 700U);
  EXPECT_EQ(values[role::rows], 7U);
  EXPECT_EQ(values[role::way], static_cast<std::uint64_t>(way::to_host));
}

TEST(Collect, ReadsTheDescriptionOfARowsCopyOfCuda) {
  runtime::cuda::copy_2d_t info{};
  info.src_type = 1;
  info.src_host = at(0x10);
  info.dst_type = 2;
  info.dst_device = 0x20;
  info.width = 64;
  info.rows = 4;
  const auto* const given = &info;
  const auto values = inputs<call_id::cuMemcpy2DAsync_v2>(given, at(9));
  EXPECT_EQ(values[role::dst], 0x20U);
  EXPECT_EQ(values[role::src], 0x10U);
  EXPECT_EQ(values[role::dst_memory], number(named_memory::device));
  EXPECT_EQ(values[role::src_memory], number(named_memory::host));
  EXPECT_EQ(values[role::bytes], 256U);
  EXPECT_EQ(values[role::rows], 4U);
  EXPECT_EQ(values[role::stream], 9U);
}

TEST(Collect, ReadsTheDescriptionOfAVolume) {
  abi::cuda_copy_3d_t info{};
  info.src_type = 3;
  info.src_array = at(5);
  info.dst_type = 4;
  info.dst_device = 0x30;
  info.width = 8;
  info.rows = 4;
  info.depth = 2;
  const auto* const given = &info;
  const auto values = inputs<call_id::cuMemcpy3D_v2>(given);
  EXPECT_EQ(values[role::src_memory], number(named_memory::array));
  EXPECT_EQ(values[role::dst_memory], number(named_memory::unified));
  EXPECT_EQ(values[role::dst], 0x30U);
  EXPECT_EQ(values[role::bytes], 64U);
  EXPECT_EQ(values[role::rows], 8U);
}

TEST(Collect, ReadsTheDescriptionsOfHip) {
  abi::hip_copy_2d_t rows{};
  rows.src_device = at(0x40);
  rows.dst_host = at(0x50);
  rows.width = 16;
  rows.rows = 3;
  const auto* const given_rows = &rows;
  const auto of_rows = inputs<call_id::hipMemcpyParam2D>(given_rows);
  EXPECT_EQ(of_rows[role::src], 0x40U);
  EXPECT_EQ(of_rows[role::src_memory], number(named_memory::device));
  EXPECT_EQ(of_rows[role::dst_memory], number(named_memory::host));
  EXPECT_EQ(of_rows[role::bytes], 48U);
  abi::hip_copy_3d_t volume{};
  volume.src.address = at(0x60);
  volume.dst_array = at(0x70);
  volume.extent = {4, 3, 2};
  const auto* const given_volume = &volume;
  const auto of_volume = inputs<call_id::hipMemcpy3D>(given_volume);
  EXPECT_EQ(of_volume[role::src], 0x60U);
  EXPECT_EQ(of_volume[role::dst_memory], number(named_memory::array));
  EXPECT_EQ(of_volume[role::bytes], 24U);
  EXPECT_EQ(of_volume[role::rows], 6U);
}

TEST(Collect, TakesNoDescriptionFromNull) {
  const abi::hip_copy_3d_t* const none = nullptr;
  EXPECT_EQ(inputs<call_id::hipMemcpy3D>(none)[role::bytes], 0U);
}

TEST(Collect, TakesThePitchOfAnAllocation) {
  void* memory = at(0x1000);
  std::size_t pitch = 512;
  void** const out = &memory;
  std::size_t* const out_pitch = &pitch;
  const auto before =
      inputs<call_id::hipMallocPitch>(out, out_pitch, std::size_t{100}, std::size_t{10});
  EXPECT_EQ(before[role::memory], 0U);
  const auto after =
      results<call_id::hipMallocPitch>(out, out_pitch, std::size_t{100}, std::size_t{10});
  EXPECT_EQ(after[role::memory], 0x1000U);
  EXPECT_EQ(after[role::bytes], 5120U);
}

TEST(Collect, TakesThePitchedPointerOfAnAllocation) {
  abi::pitched_t made{at(0x2000), 256, 100, 10};
  abi::pitched_t* const out = &made;
  const auto values = results<call_id::hipMalloc3D>(out, abi::extent_t{100, 10, 3});
  EXPECT_EQ(values[role::memory], 0x2000U);
  EXPECT_EQ(values[role::bytes], 256U * 30U);
}

TEST(Collect, FillsAPitchedPointer) {
  const auto values = inputs<call_id::hipMemset3D>(abi::pitched_t{at(0x3000), 256, 100, 10}, 0,
                                                   abi::extent_t{100, 10, 3});
  EXPECT_EQ(values[role::dst], 0x3000U);
  EXPECT_EQ(values[role::bytes], 3000U);
  EXPECT_EQ(values[role::rows], 30U);
}

TEST(Collect, MultipliesByTheWidthOfElements) {
  EXPECT_EQ(inputs<call_id::hipMemsetD16>(at(1), static_cast<unsigned short>(0),
                                          std::size_t{10})[role::bytes],
            20U);
  EXPECT_EQ(inputs<call_id::hipMemsetD32>(at(1), 0, std::size_t{10})[role::bytes], 40U);
}

TEST(Collect, SumsABatch) {
  std::array<unsigned long long, 3> dst{11, 12, 13};
  std::array<unsigned long long, 3> src{21, 22, 23};
  std::array<std::size_t, 3> bytes{1, 20, 300};
  auto* const dst_list = dst.data();
  auto* const src_list = src.data();
  auto* const bytes_list = bytes.data();
  void* const none = nullptr;
  std::size_t* const no_index = nullptr;
  const auto values = results<call_id::cuMemcpyBatchAsync_v2>(
      dst_list, src_list, bytes_list, std::size_t{3}, none, no_index, std::size_t{0}, at(4));
  EXPECT_EQ(values[role::dst], 11U);
  EXPECT_EQ(values[role::src], 21U);
  EXPECT_EQ(values[role::bytes], 321U);
  EXPECT_EQ(values[role::batch], 3U);
  EXPECT_EQ(values[role::stream], 4U);
}

TEST(Collect, ReadsNoListOfAnEmptyBatch) {
  auto* const nowhere = static_cast<unsigned long long*>(at(1));
  auto* const no_bytes = static_cast<std::size_t*>(at(1));
  void* const none = nullptr;
  std::size_t* const no_index = nullptr;
  const auto values = results<call_id::cuMemcpyBatchAsync_v2>(
      nowhere, nowhere, no_bytes, std::size_t{0}, none, no_index, std::size_t{0}, at(4));
  EXPECT_EQ(values[role::bytes], 0U);
}

TEST(Collect, TellsHostFromDeviceLocations) {
  runtime::cuda::location_t place{};
  place.type = 1;
  place.id = 3;
  EXPECT_EQ(inputs<call_id::cuMemPrefetchAsync_v2>(1ULL, std::size_t{2}, place, 0U,
                                                   at(4))[role::location],
            3U);
  place.type = 2;
  EXPECT_EQ(inputs<call_id::cuMemPrefetchAsync_v2>(1ULL, std::size_t{2}, place, 0U,
                                                   at(4))[role::location],
            ~0ULL);
}

TEST(Collect, KeepsNegativeNumbersApart) {
  EXPECT_EQ(as_number(-1), ~std::uint64_t{0});
  EXPECT_EQ(as_number(0xFFFF'FFFFU), 0xFFFF'FFFFU);
}

}  // namespace
}  // namespace berth::interpose
