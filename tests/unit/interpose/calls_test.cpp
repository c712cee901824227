// SPDX-License-Identifier: Apache-2.0
// The tables of spec/ as the recorder reads them: every parameter is recorded, or known not to be.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "interpose/capture/calls.hpp"
#include "interpose/capture/real_calls.hpp"

namespace berth::interpose {
namespace {

// Parameters of recorded calls that leave nothing in the trace, with the reason.
const std::set<std::string_view> not_recorded{
    // where a copy begins within an end or how long its rows are: the bytes are the same
    "dst_pitch", "src_pitch", "offset", "x", "y", "element",
    // what a fill writes
    "value",
    // contexts: addresses are unique
    "dst_context", "src_context", "context",
    // launches: only that and where
    "function", "kernel", "grid", "block", "grid_x", "grid_y", "grid_z", "block_x", "block_y",
    "block_z", "shared", "parameters", "extra", "start", "end", "graph",
    // batches: what they have in common
    "info_list", "index_list", "info_count", "out_failed", "count",
    // handles of other things
    "pool", "handle", "out_address"};

// Recorded calls of whose parameters nothing is worth keeping.
const std::set<std::string_view> without_roles{"hipDrvMemcpy3D",
                                               "hipDeviceSynchronize",
                                               "cuCtxSynchronize",
                                               "cuCtxSynchronize_v2",
                                               "hipLaunchCooperativeKernelMultiDevice",
                                               "hipExtLaunchMultiKernelMultiDevice",
                                               "cuLaunchCooperativeKernelMultiDevice"};

template <class Visit>
void for_each_call(Visit visit) {
  for (std::size_t index = 1; index < call_count; ++index) {
    visit(static_cast<call_id>(index));
  }
}

TEST(Spec, NamesEachParameterOfARecordedCallByAKnownWord) {
  std::map<std::string, std::string> unknown;
  for_each_call([&](call_id call) {
    for (std::size_t at = 0; is_recorded(call) && !part_of(row_of(call).words, at).empty(); ++at) {
      const auto text = part_of(row_of(call).words, at);
      const auto name = text.substr(0, text.find(')'));
      if (parse_word(name) == word::other && !not_recorded.contains(name)) {
        unknown[std::string(name)] = row_of(call).name;
      }
    }
  });
  for (const auto& [name, call] : unknown) {
    ADD_FAILURE() << name << " of " << call;
  }
}

TEST(Spec, HasAsManyWordsAsParameters) {
  for_each_call([](call_id call) {
    const auto& row = row_of(call);
    EXPECT_EQ(std::count(row.words.begin(), row.words.end(), ','),
              std::count(row.parameters.begin(), row.parameters.end(), ','))
        << row.name;
  });
}

TEST(Spec, HasEachNameOnce) {
  std::set<std::string_view> names;
  for_each_call([&](call_id call) { EXPECT_TRUE(names.insert(row_of(call).name).second); });
}

TEST(Spec, IsFoundByName) {
  for_each_call([](call_id call) { EXPECT_EQ(find_call(row_of(call).name.data()), call); });
  EXPECT_EQ(find_call(""), call_id::none);
  EXPECT_EQ(find_call("hipMemcp"), call_id::none);
  EXPECT_EQ(find_call("hipMemcpyy"), call_id::none);
  EXPECT_EQ(find_call("zzz"), call_id::none);
}

TEST(Spec, LeavesARoleOfEachRecordedCall) {
  for_each_call([](call_id call) {
    if (is_recorded(call) && !without_roles.contains(row_of(call).name)) {
      EXPECT_GT(schema_of(call).count, 0U) << row_of(call).name << row_of(call).words;
    }
  });
}

TEST(Spec, SaysOfEachCopyHowMuchIsCopied) {
  // Their structure changed its layout from one version of HIP to another.
  const std::set<std::string_view> unknown{"hipDrvMemcpy3D", "hipDrvMemcpy3DAsync"};
  for_each_call([&](call_id call) {
    if (is_recorded(call) && is_copy(call) && !unknown.contains(row_of(call).name)) {
      const auto schema = schema_of(call);
      const auto* const end = schema.roles.begin() + schema.count;
      EXPECT_NE(std::find(schema.roles.begin(), end, role::bytes), end) << row_of(call).name;
    }
  });
}

TEST(Spec, SaysOfEachAllocationAndFreeWhichMemory) {
  for_each_call([](call_id call) {
    if (is_recorded(call) && changes_memory(call)) {
      const auto schema = schema_of(call);
      const auto* const end = schema.roles.begin() + schema.count;
      EXPECT_NE(std::find(schema.roles.begin(), end, role::memory), end) << row_of(call).name;
    }
  });
}

TEST(Spec, HasARowForEachOperationThatIsRecorded) {
  for (const auto operation : recorded_operations) {
    bool found = false;
    for_each_call([&](call_id call) { found = found || row_of(call).operation == operation; });
    EXPECT_TRUE(found) << operation;
  }
}

TEST(Spec, ChangesMemoryByAllocationsAndWhatTakesThemBack) {
  EXPECT_TRUE(changes_memory(call_id::hipMalloc));
  EXPECT_TRUE(changes_memory(call_id::hipHostUnregister));
  EXPECT_TRUE(changes_memory(call_id::cuMemFree_v2));
  EXPECT_FALSE(changes_memory(call_id::hipMemcpy));
  EXPECT_FALSE(changes_memory(call_id::hipMemset));
  EXPECT_FALSE(changes_memory(call_id::hipLaunchKernel));
  EXPECT_FALSE(changes_memory(call_id::hipStreamSynchronize));
}

TEST(Words, AreReadFromLists) {
  EXPECT_EQ(part_of("(a, b, c)", 0), "a");
  EXPECT_EQ(part_of("(a, b, c)", 2), "c");
  EXPECT_EQ(part_of("(a, b, c)", 3), "");
  EXPECT_EQ(part_of("()", 0), "");
  EXPECT_EQ(part_of("", 0), "");
  EXPECT_EQ(parse_word(""), word::other);
  EXPECT_EQ(parse_word("src"), word::src);
}

TEST(Ways, FollowTheNameOfTheCallAndTheKind) {
  EXPECT_EQ(way_of(call_id::cuMemcpyHtoD_v2), way::to_device);
  EXPECT_EQ(way_of(call_id::cuMemcpyDtoHAsync_v2), way::to_host);
  EXPECT_EQ(way_of(call_id::cuMemcpyDtoD_v2), way::on_device);
  EXPECT_EQ(way_of(call_id::hipMemcpyPeer), way::between_devices);
  EXPECT_EQ(way_of(call_id::hipMemcpy), way::by_address);
  EXPECT_EQ(way_of_kind(0), way::on_host);
  EXPECT_EQ(way_of_kind(4), way::by_address);
  EXPECT_EQ(way_of_kind(-7), way::by_address);
}

}  // namespace
}  // namespace berth::interpose
