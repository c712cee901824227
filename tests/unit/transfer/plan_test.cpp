// SPDX-License-Identifier: Apache-2.0
// From the facts of a copy to its plan: which path is taken and why, and how a staged copy is
// shaped.
#include "transfer/plan.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace berth::transfer {
namespace {

constexpr bytes_t roomy_ring = 64 * mib;

constexpr std::array all_kinds{memory_kind::unknown, memory_kind::pageable, memory_kind::registered,
                               memory_kind::pinned,  memory_kind::managed,  memory_kind::device};
constexpr std::array all_pages{runtime::pages::resident, runtime::pages::fresh,
                               runtime::pages::of_file};

// From 1 MiB on with 4 threads, from 2 MiB on with 12; to the host from 3 MiB on with 8, and not at
// all from 64 MiB on.
const copy_profile& planning_profile() {
  static const copy_profile profile{
      .to_device = {{1 * mib, 4, 128 * kib, 512 * kib, 64 * kib, slot_store::streaming},
                    {2 * mib, 12, 256 * kib, 2 * mib, 128 * kib, slot_store::demoted}},
      .to_host = {{3 * mib, 8, 256 * kib, 4 * mib, 64 * kib, slot_store::ordinary},
                  {64 * mib, 0, 0, 0, 0, slot_store::ordinary}},
      .known = provenance::measured,
      .source = "a test"};
  return profile;
}

engine_means planning_means(unsigned threads = 16, bytes_t ring_bytes = roomy_ring) {
  return {.profile = &planning_profile(), .threads = threads, .ring_bytes = ring_bytes};
}

copy_facts copy_between(memory_kind source, memory_kind destination, bytes_t bytes) {
  return {.bytes = bytes,
          .source = source,
          .destination = destination,
          .way = direction_of(source, destination)};
}

copy_facts upload(bytes_t bytes) {
  return copy_between(memory_kind::pageable, memory_kind::device, bytes);
}
copy_facts download(bytes_t bytes) {
  return copy_between(memory_kind::device, memory_kind::pageable, bytes);
}

// The same facts with something changed.
template <typename Change>
copy_facts with(copy_facts facts, Change change) {
  change(facts);
  return facts;
}

struct planned {
  const char* what;
  copy_facts facts;
  copy_path path;
  copy_reason reason;
  engine_means means = planning_means();
};

std::vector<planned> planned_cases() {
  using enum memory_kind;
  const auto capturing = [](copy_facts& one) { one.capturing = true; };
  const auto kept = [](copy_facts& one) { one.kept = true; };
  const auto by_kernel = [](copy_facts& one) { one.wants_kernel = true; };
  const auto coherent = [](copy_facts& one) { one.host_reaches_device = true; };
  const auto peers = [](copy_facts& one) { one.way = direction::peer_to_peer; };
  static const auto nothing_known = empty_profile();
  const engine_means unready{.profile = nullptr, .threads = 16, .ring_bytes = roomy_ring};
  const engine_means unprofiled{.profile = &nothing_known, .threads = 16, .ring_bytes = roomy_ring};
  return {
      {"no bytes", upload(0), copy_path::nothing, copy_reason::no_bytes},
      {"no bytes while capturing", with(upload(0), capturing), copy_path::nothing,
       copy_reason::no_bytes},
      {"no bytes of nothing", copy_between(unknown, unknown, 0), copy_path::nothing,
       copy_reason::no_bytes},
      {"capturing", with(upload(8 * mib), capturing), copy_path::runtime, copy_reason::capturing},
      {"capturing page-locked", with(copy_between(pinned, device, 8 * mib), capturing),
       copy_path::runtime, copy_reason::capturing},
      {"capturing kept", with(with(upload(8 * mib), capturing), kept), copy_path::runtime,
       copy_reason::capturing},
      {"capturing before it is ready", with(upload(8 * mib), capturing), copy_path::runtime,
       copy_reason::capturing, unready},
      {"managed source", copy_between(managed, device, 8 * mib), copy_path::runtime,
       copy_reason::managed_end},
      {"managed destination", copy_between(device, managed, 8 * mib), copy_path::runtime,
       copy_reason::managed_end},
      {"managed and pageable", copy_between(pageable, managed, 8 * mib), copy_path::runtime,
       copy_reason::managed_end},
      {"both pageable", copy_between(pageable, pageable, 8 * mib), copy_path::runtime,
       copy_reason::both_host},
      {"both host, by kernel", with(copy_between(pinned, pinned, 8 * mib), by_kernel),
       copy_path::runtime, copy_reason::both_host},
      {"unknown source", copy_between(unknown, device, 8 * mib), copy_path::runtime,
       copy_reason::unknown_memory},
      {"unknown destination", copy_between(device, unknown, 8 * mib), copy_path::runtime,
       copy_reason::unknown_memory},
      {"unknown and pageable", copy_between(pageable, unknown, 8 * mib), copy_path::runtime,
       copy_reason::unknown_memory},
      {"pinned up", copy_between(pinned, device, 8 * mib), copy_path::direct,
       copy_reason::page_locked},
      {"registered down", copy_between(device, registered, 1), copy_path::direct,
       copy_reason::page_locked},
      {"inside the device", copy_between(device, device, 8 * mib), copy_path::direct,
       copy_reason::page_locked},
      {"between devices", with(copy_between(device, device, 8 * mib), peers), copy_path::direct,
       copy_reason::page_locked},
      {"pinned, not ready", copy_between(pinned, device, 8 * mib), copy_path::direct,
       copy_reason::page_locked, unready},
      {"pinned, by kernel", with(copy_between(pinned, device, 8 * mib), by_kernel),
       copy_path::kernel, copy_reason::requested},
      {"kept, by kernel", with(with(download(8 * mib), kept), by_kernel), copy_path::kernel,
       copy_reason::requested},
      {"pageable, by kernel", with(upload(1 * mib), by_kernel), copy_path::staged_threaded,
       copy_reason::pageable},
      {"kept up", with(upload(8 * mib), kept), copy_path::kept, copy_reason::kept},
      {"kept down, small", with(download(1), kept), copy_path::kept, copy_reason::kept},
      {"kept, not ready", with(upload(8 * mib), kept), copy_path::kept, copy_reason::kept, unready},
      {"kept and coherent", with(with(upload(8 * mib), kept), coherent), copy_path::kept,
       copy_reason::kept},
      {"coherent", with(upload(8 * mib), coherent), copy_path::runtime,
       copy_reason::host_reaches_device},
      {"coherent, not ready", with(download(8 * mib), coherent), copy_path::runtime,
       copy_reason::host_reaches_device, unready},
      {"not ready", upload(8 * mib), copy_path::runtime, copy_reason::not_ready, unready},
      {"set-up failed", upload(8 * mib), copy_path::runtime, copy_reason::no_ring,
       engine_means{.has_failed = true}},
      {"not ready and small", upload(1), copy_path::runtime, copy_reason::not_ready, unready},
      {"no profile", upload(8 * mib), copy_path::runtime, copy_reason::no_profile, unprofiled},
      {"small", upload(1 * mib - 1), copy_path::runtime, copy_reason::small},
      {"one byte", download(1), copy_path::runtime, copy_reason::small},
      {"large enough for the other way only", download(3 * mib - 1), copy_path::runtime,
       copy_reason::slower_here},
      {"a rule that stages nothing", download(64 * mib), copy_path::runtime,
       copy_reason::slower_here},
      {"just large enough", upload(1 * mib), copy_path::staged_threaded, copy_reason::pageable},
      {"large down", download(64 * mib - 1), copy_path::staged_threaded, copy_reason::pageable},
      {"one CPU up", upload(8 * mib), copy_path::staged_inline, copy_reason::one_cpu,
       planning_means(1)},
      {"one CPU down", download(8 * mib), copy_path::staged_inline, copy_reason::one_cpu,
       planning_means(1)},
      {"no CPU told", upload(8 * mib), copy_path::staged_inline, copy_reason::one_cpu,
       planning_means(0)},
  };
}

TEST(Plan, FollowsFromTheFacts) {
  for (const auto& one : planned_cases()) {
    const auto plan = decide(one.facts, one.means).plan;
    EXPECT_EQ(to_string(plan.path), to_string(one.path)) << one.what;
    EXPECT_EQ(to_string(plan.reason), to_string(one.reason)) << one.what;
    EXPECT_EQ(plan.bytes, one.facts.bytes) << one.what;
    EXPECT_EQ(plan.way, one.facts.way) << one.what;
  }
}

TEST(Plan, HasACaseForEachReason) {
  std::set<copy_reason> seen;
  for (const auto& one : planned_cases()) {
    seen.insert(one.reason);
  }
  for (int reason = 0; reason <= static_cast<int>(copy_reason::starved); ++reason) {
    const auto value = static_cast<copy_reason>(reason);
    // Whether all rings stand still is known only when one is asked for.
    EXPECT_EQ(seen.contains(value), value != copy_reason::starved) << to_string(value);
  }
}

TEST(Plan, OfACopyInOneGoHasNoThreadsAndNoBlocks) {
  for (const auto& one : planned_cases()) {
    const auto [plan, store] = decide(one.facts, one.means);
    if (plan.path == copy_path::staged_inline || plan.path == copy_path::staged_threaded) {
      continue;
    }
    EXPECT_EQ(plan.threads, 0U) << one.what;
    EXPECT_EQ(plan.first_block, 0U) << one.what;
    EXPECT_EQ(plan.largest_block, 0U) << one.what;
    EXPECT_EQ(plan.piece, 0U) << one.what;
    EXPECT_FALSE(plan.populates) << one.what;
    EXPECT_FALSE(plan.reads_ahead) << one.what;
    EXPECT_EQ(store, slot_store::ordinary) << one.what;
  }
}

TEST(Plan, OfAStagedCopyIsTheRuleOfItsSize) {
  const auto [small, small_store] = decide(upload(2 * mib - 1), planning_means());
  EXPECT_EQ(small.threads, 4U);
  EXPECT_EQ(small.first_block, 128 * kib);
  EXPECT_EQ(small.largest_block, 512 * kib);
  EXPECT_EQ(small.piece, 64 * kib);
  EXPECT_EQ(small_store, slot_store::streaming);
  const auto [large, large_store] = decide(upload(2 * mib), planning_means());
  EXPECT_EQ(large.threads, 12U);
  EXPECT_EQ(large.largest_block, 2 * mib);
  EXPECT_EQ(large.piece, 128 * kib);
  EXPECT_EQ(large_store, slot_store::demoted);
  const auto down = decide(download(4 * mib), planning_means());
  EXPECT_EQ(down.plan.threads, 8U);
  EXPECT_EQ(down.store, slot_store::ordinary);
}

TEST(Plan, TakesNoMoreThreadsThanThereAre) {
  for (const unsigned threads : {2U, 3U, 11U}) {
    const auto plan = decide(upload(8 * mib), planning_means(threads)).plan;
    EXPECT_EQ(plan.threads, threads);
    EXPECT_EQ(plan.path, copy_path::staged_threaded);
  }
  EXPECT_EQ(decide(upload(8 * mib), planning_means(1)).plan.threads, 1U);
  EXPECT_EQ(decide(upload(8 * mib), planning_means(0)).plan.threads, 1U);
  EXPECT_EQ(decide(upload(8 * mib), planning_means(1000)).plan.threads, 12U);
}

TEST(Plan, ARuleForOneThreadIsCarriedByTheCaller) {
  const copy_profile alone{
      .to_device = {{1 * mib, 1, 128 * kib, 512 * kib, 64 * kib, slot_store::ordinary}},
      .to_host = {},
      .known = provenance::measured,
      .source = "a test"};
  const auto plan =
      decide(upload(8 * mib), {.profile = &alone, .threads = 16, .ring_bytes = roomy_ring}).plan;
  EXPECT_EQ(plan.path, copy_path::staged_inline);
  EXPECT_EQ(plan.threads, 1U);
  EXPECT_EQ(plan.largest_block, 512 * kib);
}

TEST(Plan, FreshResultsFrom4MiBOnArePopulatedByAllThreads) {
  const auto fresh = [](copy_facts& one) { one.host_pages = runtime::pages::fresh; };
  const auto populated = decide(with(download(4 * mib), fresh), planning_means()).plan;
  EXPECT_TRUE(populated.populates);
  EXPECT_EQ(populated.threads, 16U);
  EXPECT_EQ(populated.path, copy_path::staged_threaded);
  const auto small = decide(with(download(4 * mib - 1), fresh), planning_means()).plan;
  EXPECT_FALSE(small.populates);
  EXPECT_EQ(small.threads, 8U);
  const auto alone = decide(with(download(4 * mib), fresh), planning_means(1)).plan;
  EXPECT_EQ(alone.path, copy_path::staged_inline);
  EXPECT_EQ(alone.threads, 1U);
}

TEST(Plan, OnlyFreshResultsArePopulated) {
  for (const auto pages : all_pages) {
    const auto set = [pages](copy_facts& one) { one.host_pages = pages; };
    EXPECT_FALSE(decide(with(upload(32 * mib), set), planning_means()).plan.populates);
    EXPECT_EQ(decide(with(download(32 * mib), set), planning_means()).plan.populates,
              pages == runtime::pages::fresh);
  }
}

TEST(Plan, OnlySourcesThatMayLieInAFileAreReadAhead) {
  for (const auto pages : all_pages) {
    const auto set = [pages](copy_facts& one) { one.host_pages = pages; };
    EXPECT_EQ(decide(with(upload(2 * mib), set), planning_means()).plan.reads_ahead,
              pages != runtime::pages::resident);
    EXPECT_FALSE(decide(with(download(32 * mib), set), planning_means()).plan.reads_ahead);
  }
}

TEST(Plan, AShortFileSourceIsLeftToTheRuntime) {
  const auto from_file = [](copy_facts& one) { one.host_pages = runtime::pages::of_file; };
  const auto plan = decide(with(upload(2 * mib - 1), from_file), planning_means()).plan;
  EXPECT_EQ(plan.path, copy_path::runtime);
  EXPECT_EQ(plan.reason, copy_reason::small);
}

TEST(Plan, AFreshResultIsStagedAlsoWhereResidentOnesAreNot) {
  copy_profile only_up = planning_profile();
  only_up.to_host = {{4 * mib, 0, 0, 0, 0}};
  auto means = planning_means();
  means.profile = &only_up;
  const auto fresh = [](copy_facts& one) { one.host_pages = runtime::pages::fresh; };
  EXPECT_EQ(decide(download(32 * mib), means).plan.reason, copy_reason::slower_here);
  const auto plan = decide(with(download(32 * mib), fresh), means).plan;
  EXPECT_EQ(plan.path, copy_path::staged_threaded);
  EXPECT_TRUE(plan.populates);
}

TEST(Plan, BlocksFitIntoTheRingAtLeastTwice) {
  const auto block_for = [](bytes_t ring) {
    return decide(upload(8 * mib), planning_means(16, ring)).plan;
  };
  EXPECT_EQ(block_for(8 * mib).largest_block, 2 * mib);
  EXPECT_EQ(block_for(8 * mib - 4).largest_block, 2 * mib - 1);
  EXPECT_EQ(block_for(4 * mib).largest_block, 1 * mib);
  EXPECT_EQ(block_for(4 * mib).first_block, 256 * kib);
  EXPECT_EQ(block_for(512 * kib).largest_block, 128 * kib);
  EXPECT_EQ(block_for(512 * kib).first_block, 128 * kib) << "not above the largest";
}

// Whatever the facts: a staged plan can be carried out, any other needs nothing of the ring.
RC_GTEST_PROP(Plan, IsSoundWhateverTheFacts, ()) {
  const auto bytes = *rc::gen::element<bytes_t>(0, 1, 1 * mib, 5 * mib, 40 * mib, 1 * gib) +
                     *rc::gen::inRange<bytes_t>(0, 4 * mib);
  auto facts = *rc::gen::weightedElement<copy_facts>(
      {{2, upload(bytes)},
       {2, download(bytes)},
       {1, copy_between(*rc::gen::elementOf(all_kinds), *rc::gen::elementOf(all_kinds), bytes)}});
  facts.kept = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  facts.host_reaches_device = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  facts.capturing = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  facts.wants_kernel = *rc::gen::arbitrary<bool>();
  facts.host_pages = *rc::gen::elementOf(all_pages);
  const auto profile = nominal_profile(*rc::gen::inRange(0U, 40U));
  const bool ready = *rc::gen::weightedElement<bool>({{9, true}, {1, false}});
  const engine_means means{.profile = ready ? &profile : nullptr,
                           .threads = *rc::gen::inRange(0U, 40U),
                           .ring_bytes = *rc::gen::element(2 * mib, 4 * mib, 8 * mib, 32 * mib)};

  const auto plan = decide(facts, means).plan;
  RC_ASSERT(plan.bytes == facts.bytes);
  RC_ASSERT(plan.reason != copy_reason::starved);
  const bool staged =
      plan.path == copy_path::staged_inline || plan.path == copy_path::staged_threaded;
  if (!staged) {
    RC_ASSERT(plan.threads == 0U);
    return;
  }
  RC_ASSERT(is_pageable(facts.source) || is_pageable(facts.destination));
  RC_ASSERT(facts.source == memory_kind::device || facts.destination == memory_kind::device);
  RC_ASSERT(!facts.kept && !facts.capturing && !facts.host_reaches_device);
  RC_ASSERT(plan.threads >= 1U);
  RC_ASSERT(plan.threads <= std::max(means.threads, 1U));
  RC_ASSERT((plan.threads == 1U) == (plan.path == copy_path::staged_inline));
  RC_ASSERT(plan.piece > 0U);
  RC_ASSERT(plan.piece <= plan.first_block);
  RC_ASSERT(plan.first_block <= plan.largest_block);
  RC_ASSERT(plan.largest_block <= means.ring_bytes / 2);
}

TEST(DirectionOf, FollowsFromBothKinds) {
  using enum memory_kind;
  const auto is_host = [](memory_kind kind) {
    return kind == pageable || kind == registered || kind == pinned;
  };
  for (const auto source : all_kinds) {
    for (const auto destination : all_kinds) {
      auto expected = direction::unknown;
      if (source == device && destination == device) {
        expected = direction::device_to_device;
      } else if (is_host(source) && destination == device) {
        expected = direction::host_to_device;
      } else if (source == device && is_host(destination)) {
        expected = direction::device_to_host;
      } else if (is_host(source) && is_host(destination)) {
        expected = direction::host_to_host;
      }
      EXPECT_EQ(to_string(direction_of(source, destination)), to_string(expected))
          << to_string(source) << " to " << to_string(destination);
    }
  }
}

TEST(DirectionOf, IsUnknownForManagedMemory) {
  EXPECT_EQ(direction_of(memory_kind::managed, memory_kind::device), direction::unknown);
  EXPECT_EQ(direction_of(memory_kind::device, memory_kind::managed), direction::unknown);
  EXPECT_EQ(direction_of(memory_kind::pinned, memory_kind::managed), direction::unknown);
}

}  // namespace
}  // namespace berth::transfer
