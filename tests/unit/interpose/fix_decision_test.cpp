// SPDX-License-Identifier: Apache-2.0
// Which copies of an unmodified program the copy engine makes, and which it leaves alone.
#include "interpose/fix/decision.hpp"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "interpose/capture/fix_gate.hpp"

namespace berth::interpose {
namespace {

using fix::pass;

constexpr std::uint64_t mebibyte = 1U << 20;

// --- By the call --------------------------------------------------------------------------------

struct judged_call {
  const char* name;
  fix::call_facts facts;
  pass expected;

  friend void PrintTo(const judged_call& one, std::ostream* out) { *out << one.name; }
};

constexpr judged_call judged_calls[] = {
    {"large", {.bytes = mebibyte}, pass::none},
    {"a_byte_too_small", {.bytes = mebibyte - 1}, pass::small},
    {"nothing", {.bytes = 0}, pass::small},
    {"of_unknown_direction", {.bytes = mebibyte, .way_is_known = false}, pass::other_form},
    {"hip_with_the_legacy_handle", {.bytes = mebibyte, .stream = 1}, pass::other_form},
    {"cuda_with_the_legacy_handle",
     {.of = fix::runtime::cuda, .bytes = mebibyte, .stream = 1},
     pass::none},
    {"with_the_threads_handle", {.bytes = mebibyte, .stream = 2}, pass::none},
    {"in_the_child_of_a_fork", {.bytes = mebibyte, .is_own_process = false}, pass::forked},
    {"by_rows",
     {.bytes = mebibyte, .rows = 4, .dst_pitch = mebibyte / 4, .src_pitch = mebibyte},
     pass::none},
    {"by_rows_that_lie_in_each_other",
     {.bytes = mebibyte, .rows = 4, .dst_pitch = mebibyte / 4, .src_pitch = mebibyte / 4 - 1},
     pass::other_form},
    {"by_rows_without_a_pitch",
     {.bytes = mebibyte, .rows = 4, .src_pitch = mebibyte},
     pass::other_form},
    {"at_the_end", {.bytes = mebibyte, .has_ended = true}, pass::ended},
};

class JudgedCall : public testing::TestWithParam<judged_call> {};

TEST_P(JudgedCall, IsFixedOrPassed) {
  EXPECT_EQ(fix::judge_call(GetParam().facts), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Fix, JudgedCall, testing::ValuesIn(judged_calls),
                         [](const auto& given) { return std::string(given.param.name); });

// --- By the engine's plan -----------------------------------------------------------------------

TEST(JudgedPlan, IsFixedOnlyWhereTheEngineHasStagedIt) {
  for (const auto path : {copy_path::staged_inline, copy_path::staged_threaded}) {
    EXPECT_EQ(fix::judge_plan({.path = path, .reason = copy_reason::pageable}, direction::unknown),
              pass::none);
  }
  for (const auto path : {copy_path::nothing, copy_path::runtime, copy_path::direct,
                          copy_path::kept, copy_path::kernel}) {
    for (int reason = 0; reason <= static_cast<int>(copy_reason::no_ring); ++reason) {
      EXPECT_NE(fix::judge_plan({.path = path, .reason = static_cast<copy_reason>(reason)},
                                direction::unknown),
                pass::none)
          << static_cast<int>(path) << " " << reason;
    }
  }
}

TEST(JudgedPlan, EveryReasonHasARow) {
  for (int reason = 0; reason <= static_cast<int>(copy_reason::no_ring); ++reason) {
    const auto rows = std::count_if(
        fix::reason_rows.begin(), fix::reason_rows.end(),
        [&](const auto& row) { return row.reason == static_cast<copy_reason>(reason); });
    EXPECT_EQ(rows, 1) << reason;
  }
}

TEST(JudgedPlan, OtherAddressesThanTheCallNamesAreTheRuntimesToJudge) {
  const copy_plan plan{.path = copy_path::runtime,
                       .reason = copy_reason::unknown_memory,
                       .way = direction::device_to_host};
  EXPECT_EQ(fix::judge_plan(plan, direction::host_to_device), pass::other_way);
  EXPECT_EQ(fix::judge_plan(plan, direction::unknown), pass::not_pageable);
}

TEST(JudgedError, OfWhatTheRuntimeRefusesIsNoFailure) {
  EXPECT_EQ(fix::judge_error(errc::gpu_capture), pass::capturing);
  EXPECT_EQ(fix::judge_error(errc::transfer_out_of_range), pass::other_form);
  EXPECT_EQ(fix::judge_error(errc::transfer_unmapped), pass::other_form);
  EXPECT_EQ(fix::judge_error(errc::transfer_forked), pass::forked);
  EXPECT_EQ(fix::judge_error(errc::gpu_device_lost), pass::failed);
}

TEST(PassNames, AreThereForAll) {
  for (const auto name : fix::pass_names) {
    EXPECT_FALSE(name.empty());
  }
}

// --- From calls to requests ---------------------------------------------------------------------

TEST(FixableCalls, AreCopiesBetweenHostAndDevice) {
  for (const auto call :
       {call_id::hipMemcpy, call_id::hipMemcpyAsync, call_id::hipMemcpyWithStream,
        call_id::hipMemcpy_spt, call_id::hipMemcpyHtoD, call_id::hipMemcpyDtoHAsync,
        call_id::cuMemcpy, call_id::cuMemcpyAsync_ptsz, call_id::cuMemcpyHtoD_v2,
        call_id::cuMemcpyDtoHAsync_v2_ptsz, call_id::hipMemcpy2D, call_id::hipMemcpy2DAsync_spt,
        call_id::hipMemcpyParam2D, call_id::cuMemcpy2D_v2, call_id::cuMemcpy2DAsync_v2_ptsz}) {
    EXPECT_TRUE(is_fixable(call)) << row_of(call).name;
  }
  for (const auto call : {call_id::hipMemcpy3D, call_id::hipMemcpyPeerAsync, call_id::hipMemcpyDtoD,
                          call_id::hipMemset, call_id::hipMemcpyToSymbol, call_id::hipMemcpyHtoA,
                          call_id::cuMemcpyHtoA_v2, call_id::cuMemcpyDtoDAsync_v2,
                          call_id::hipMemcpy2DToArray, call_id::cuMemcpyBatchAsync}) {
    EXPECT_FALSE(is_fixable(call)) << row_of(call).name;
  }
}

role_values values_of(way which, std::uint64_t stream) {
  role_values values;
  values[role::bytes] = mebibyte;
  values[role::way] = static_cast<std::uint64_t>(which);
  values[role::stream] = stream;
  return values;
}

TEST(FixRequest, SaysWhenTheCallReturns) {
  const auto values = values_of(way::to_device, 0);
  EXPECT_EQ(request_of(call_id::hipMemcpy, values).form, fix::call_form::blocking);
  EXPECT_EQ(request_of(call_id::hipMemcpyWithStream, values).form, fix::call_form::blocking);
  EXPECT_EQ(request_of(call_id::hipMemcpyAsync, values).form, fix::call_form::queued);
  EXPECT_EQ(request_of(call_id::cuMemcpyHtoD_v2, values).form, fix::call_form::blocking);
  EXPECT_EQ(request_of(call_id::cuMemcpyHtoDAsync_v2, values).form, fix::call_form::queued);
}

TEST(FixRequest, HasTheDefaultStreamThatTheCallMeans) {
  const auto none = values_of(way::by_address, 0);
  EXPECT_EQ(request_of(call_id::cuMemcpyHtoD_v2, none).stream, 0U);
  EXPECT_EQ(request_of(call_id::cuMemcpyHtoD_v2_ptds, none).stream, 2U);
  EXPECT_EQ(request_of(call_id::cuMemcpyDtoHAsync_v2_ptsz, none).stream, 2U);
  EXPECT_EQ(request_of(call_id::hipMemcpyAsync_spt, none).stream, 2U);
  const auto named = values_of(way::by_address, 0x1000);
  EXPECT_EQ(request_of(call_id::cuMemcpyDtoHAsync_v2_ptsz, named).stream, 0x1000U);
}

TEST(FixRequest, HasTheDirectionThatTheCallNames) {
  EXPECT_EQ(request_of(call_id::hipMemcpy, values_of(way::to_host, 0)).way,
            fix::named_way::to_host);
  EXPECT_EQ(request_of(call_id::hipMemcpy, values_of(way::by_address, 0)).way,
            fix::named_way::by_address);
  EXPECT_EQ(request_of(call_id::cuMemcpyDtoH_v2, values_of(way::by_address, 0)).way,
            fix::named_way::to_host);
  EXPECT_EQ(request_of(call_id::cuMemcpy, values_of(way::by_address, 0)).of, fix::runtime::cuda);
}

TEST(FixRequest, HasTheRowsThatTheArgumentsSay) {
  const auto rows = layout_of<call_id::hipMemcpy2D>(
      nullptr, std::size_t{512}, nullptr, std::size_t{300}, std::size_t{256}, std::size_t{8}, 1);
  EXPECT_EQ(rows.dst_pitch, 512U);
  EXPECT_EQ(rows.src_pitch, 300U);
  auto values = values_of(way::to_device, 0);
  values[role::rows] = 8;
  EXPECT_EQ(request_of(call_id::hipMemcpy2D, values).rows, 8U);
  EXPECT_EQ(request_of(call_id::hipMemcpy2D, values).form, fix::call_form::blocking);
  EXPECT_EQ(request_of(call_id::hipMemcpy2DAsync, values).form, fix::call_form::queued);
}

TEST(FixRequest, HasTheRowsThatADescriptionSays) {
  runtime::cuda::copy_2d_t what{};
  what.dst_pitch = 1024;
  what.src_pitch = 2048;
  const auto rows = layout_of<call_id::cuMemcpy2D_v2>(&what);
  EXPECT_EQ(rows.dst_pitch, 1024U);
  EXPECT_EQ(rows.src_pitch, 2048U);
  const runtime::cuda::copy_2d_t* const none = nullptr;
  EXPECT_EQ(layout_of<call_id::cuMemcpy2D_v2>(none).dst_pitch, 0U);
}

TEST(FixRequest, GoesTheWayThatADescriptionNames) {
  const auto between = [](named_memory dst, named_memory src) {
    role_values values;
    values[role::dst_memory] = static_cast<std::uint64_t>(dst);
    values[role::src_memory] = static_cast<std::uint64_t>(src);
    return named_way_of(call_id::cuMemcpy2D_v2, values);
  };
  EXPECT_EQ(between(named_memory::device, named_memory::host), way::to_device);
  EXPECT_EQ(between(named_memory::host, named_memory::device), way::to_host);
  EXPECT_EQ(between(named_memory::unified, named_memory::host), way::by_address);
  EXPECT_EQ(between(named_memory::unified, named_memory::unified), way::by_address);
  for (const auto& [dst, src] : {std::pair{named_memory::host, named_memory::host},
                                 std::pair{named_memory::device, named_memory::device},
                                 std::pair{named_memory::array, named_memory::host},
                                 std::pair{named_memory::unified, named_memory::array},
                                 std::pair{named_memory::none, named_memory::none}}) {
    EXPECT_FALSE(is_fixable_way(between(dst, src)));
  }
}

TEST(FixRequest, OfKindsThatHipMayRefuseIsNotMade) {
  EXPECT_TRUE(are_usual<call_id::hipMemcpy>(nullptr, nullptr, std::size_t{0}, 1));
  EXPECT_FALSE(are_usual<call_id::hipMemcpy>(nullptr, nullptr, std::size_t{0}, 7));
  EXPECT_FALSE(are_usual<call_id::hipMemcpy>(nullptr, nullptr, std::size_t{0}, -1));
}

TEST(Fixing, IsOffUnlessAskedFor) {
  EXPECT_EQ(fixing_of(""), fixing::off);
  EXPECT_EQ(fixing_of("0"), fixing::off);
  EXPECT_EQ(fixing_of("yes"), fixing::off);
  EXPECT_EQ(fixing_of("1"), fixing::on);
  EXPECT_EQ(fixing_of("check"), fixing::checked);
}

}  // namespace
}  // namespace berth::interpose
