// SPDX-License-Identifier: Apache-2.0
// The ring against a model: parts that are out never overlap, there is room where the model has
// room, and nothing of the runtime or of the budget is lost, whatever fails while it is made.
#include "transfer/ring.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "runtime/page_probe.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::transfer {
namespace {

using runtime::sim::fault_kind;

constexpr bytes_t ring_page = 4096;

constexpr bytes_t whole_pages(bytes_t bytes) {
  return (bytes + ring_page - 1) / ring_page * ring_page;
}

std::shared_ptr<runtime::sim_driver> ring_driver(runtime::sim::options how = {}) {
  how.model = "h200";
  how.pages = runtime::sim::page_state::resident;
  return runtime::make_sim_driver(how).value();
}

struct ring_test : ::testing::Test {
  std::shared_ptr<runtime::sim_driver> gpu = ring_driver();
  memory::context_state home{gpu, "a test", 64 * mib};

  std::unique_ptr<ring> make(bytes_t bytes = 2 * mib) { return ring::make(home, 0, bytes).value(); }
};

void expect_same(const runtime::sim::holdings& now, const runtime::sim::holdings& before) {
  EXPECT_EQ(now.allocations, before.allocations);
  EXPECT_EQ(now.registrations, before.registrations);
  EXPECT_EQ(now.streams, before.streams);
  EXPECT_EQ(now.events, before.events);
  EXPECT_EQ(now.pending, before.pending);
}

// Address space of this process, in bytes.
bytes_t address_space() {
  std::ifstream statm("/proc/self/statm");
  bytes_t pages = 0;
  statm >> pages;
  return pages * ring_page;
}

// --- room --------------------------------------------------------------------------------------

// What is out of a ring, as the contract tells it: oldest first, each with its span.
class ring_model {
public:
  explicit ring_model(bytes_t usable) : usable_(usable) {}

  struct taken {
    ring::part where;
    bytes_t bytes = 0;
    unsigned char mark = 0;
  };

  // Where the next part of that size begins; nothing where there is no room.
  [[nodiscard]] std::optional<bytes_t> next_place(bytes_t bytes) const {
    const bytes_t free = usable_ - used();
    const bytes_t at_end = std::min(free, usable_ - head());
    const bytes_t at_start = free - at_end;
    const bytes_t needed = whole_pages(bytes);
    if (needed <= at_end) {
      return head();
    }
    return needed <= at_start ? std::optional<bytes_t>(0) : std::nullopt;
  }
  [[nodiscard]] bool overlaps(const ring::part& where, bytes_t bytes) const {
    return std::any_of(out.begin(), out.end(), [&](const taken& one) {
      return where.at < one.where.at + one.bytes && one.where.at < where.at + bytes;
    });
  }
  [[nodiscard]] bytes_t used() const {
    bytes_t sum = 0;
    for (const auto& one : out) {
      sum += one.where.span;
    }
    return sum;
  }

  std::deque<taken> out;

private:
  [[nodiscard]] bytes_t head() const {
    return out.empty() ? 0 : (out.back().where.at + whole_pages(out.back().bytes)) % usable_;
  }
  bytes_t usable_;
};

void mark(std::span<std::byte> memory, unsigned char value) {
  for (std::size_t at = 0; at < memory.size(); at += ring_page) {
    memory[at] = std::byte{value};
  }
  memory.back() = std::byte{value};
}

bool is_marked(std::span<const std::byte> memory, unsigned char value) {
  for (std::size_t at = 0; at < memory.size(); at += ring_page) {
    if (memory[at] != std::byte{value}) {
      return false;
    }
  }
  return memory.back() == std::byte{value};
}

RC_GTEST_FIXTURE_PROP(ring_test, PartsNeverOverlapAndRoomIsFoundWhereThereIsSome, ()) {
  const auto tested = make();
  const auto rounds = *rc::gen::inRange(1, 4).as("rounds");
  for (int round = 0; round < rounds; ++round) {
    const auto pages = *rc::gen::inRange<bytes_t>(1, 40).as("pages");
    const bytes_t usable = pages * ring_page;
    tested->clear(usable - *rc::gen::inRange<bytes_t>(0, ring_page));
    ring_model model(usable);
    unsigned char next_mark = 1;
    const auto give_oldest = [&] {
      const auto oldest = model.out.front();
      RC_ASSERT(is_marked(tested->at(oldest.where, oldest.bytes), oldest.mark));
      tested->give_back(oldest.where);
      model.out.pop_front();
    };
    const auto steps =
        *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
    for (const auto step : steps) {
      if (step % 5 < 2 && !model.out.empty()) {
        give_oldest();
        continue;
      }
      // Mostly small parts, so that several are out.
      const bytes_t most = step % 7 == 0 ? usable : std::max(ring_page, usable / 3);
      const bytes_t bytes = 1 + (step >> 3U) % most;
      const auto expected = model.next_place(bytes);
      const auto part = tested->take(bytes);
      RC_ASSERT(part.has_value() == expected.has_value());
      if (!part) {
        continue;
      }
      RC_ASSERT(part->at == *expected);
      RC_ASSERT(part->at % ring_page == 0U);
      RC_ASSERT(part->at + bytes <= usable);
      RC_ASSERT(part->span >= bytes);
      RC_ASSERT(!model.overlaps(*part, bytes));
      mark(tested->at(*part, bytes), next_mark);
      model.out.push_back({.where = *part, .bytes = bytes, .mark = next_mark});
      next_mark = static_cast<unsigned char>(next_mark % 255 + 1);
      RC_ASSERT(model.used() <= usable);
    }
    while (!model.out.empty()) {
      give_oldest();
    }
    const auto whole = tested->take(usable);
    RC_ASSERT(whole.has_value());
    RC_ASSERT(whole->at == 0U);
    tested->give_back(*whole);
  }
}

// Copies of many blocks, each given back when a few later ones have been taken.
TEST_F(ring_test, GoesRoundAndRoundWithoutGettingStuck) {
  const auto tested = make();
  for (const bytes_t bytes : {bytes_t{1}, bytes_t{4096}, bytes_t{4097}, 100 * kib, 700 * kib}) {
    tested->clear(2 * mib);
    std::deque<ring::part> out;
    for (int block = 0; block < 2000; ++block) {
      auto part = tested->take(bytes);
      while (!part) {
        ASSERT_FALSE(out.empty()) << "an empty ring has room";
        tested->give_back(out.front());
        out.pop_front();
        part = tested->take(bytes);
      }
      out.push_back(*part);
      ASSERT_LE(out.size(), 2 * mib / whole_pages(bytes));
    }
    EXPECT_EQ(out.size(), 2 * mib / whole_pages(bytes)) << "of " << bytes << " bytes";
  }
}

TEST_F(ring_test, SkipsTheEndToKeepAPartInOnePiece) {
  const auto tested = make();
  tested->clear(10 * ring_page);
  const auto first = tested->take(4 * ring_page);
  const auto second = tested->take(4 * ring_page);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->at, 4 * ring_page);
  EXPECT_FALSE(tested->take(3 * ring_page)) << "two pages are left";
  tested->give_back(*first);
  const auto third = tested->take(3 * ring_page);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->at, 0U);
  EXPECT_EQ(third->span, 5 * ring_page) << "with the two that were skipped";
  EXPECT_TRUE(tested->take(ring_page));
  EXPECT_FALSE(tested->take(1));
  tested->give_back(*second);
  EXPECT_TRUE(tested->take(4 * ring_page));
  EXPECT_FALSE(tested->take(1));
}

TEST_F(ring_test, FilledToTheEndItGoesOnAtTheStart) {
  const auto tested = make();
  tested->clear(4 * ring_page);
  const auto first = tested->take(2 * ring_page);
  const auto second = tested->take(2 * ring_page);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(tested->take(1));
  tested->give_back(*first);
  const auto third = tested->take(2 * ring_page);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->at, 0U);
  EXPECT_EQ(third->span, 2 * ring_page) << "nothing was skipped";
  EXPECT_FALSE(tested->take(1));
}

TEST_F(ring_test, BeginsAtTheStartAgainWhenAllIsGivenBack) {
  const auto tested = make();
  tested->clear(10 * ring_page);
  const auto first = tested->take(3 * ring_page);
  ASSERT_TRUE(first);
  tested->give_back(*first);
  const auto second = tested->take(3 * ring_page);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at, 0U) << "where the cache has it";
}

TEST_F(ring_test, UsesNoMoreThanItWasToldTo) {
  const auto tested = make();
  tested->clear(1);
  EXPECT_TRUE(tested->take(ring_page));
  EXPECT_FALSE(tested->take(1));
  tested->clear(2 * ring_page);
  EXPECT_TRUE(tested->take(ring_page)) << "clear gives all back";
  EXPECT_TRUE(tested->take(ring_page));
  EXPECT_FALSE(tested->take(1));
  tested->clear(1 * gib);
  EXPECT_TRUE(tested->take(2 * mib));
  EXPECT_FALSE(tested->take(1)) << "there is no more than was made";
}

// --- what it holds -----------------------------------------------------------------------------

TEST_F(ring_test, IsPageLockedMemoryThatTheDeviceCopiesFrom) {
  const auto tested = make(3 * mib);
  EXPECT_EQ(home.budget().used(), 4 * mib) << "whole huge pages";
  tested->clear(3 * mib);
  const auto part = tested->take(3 * mib);
  ASSERT_TRUE(part);
  const auto memory = tested->at(*part, 3 * mib);
  EXPECT_EQ(memory.size(), 3 * mib);
  EXPECT_TRUE(is_page_locked(gpu->classify(memory.data())->kind));
  EXPECT_TRUE(is_page_locked(gpu->classify(&memory.back())->kind));
  EXPECT_EQ(tested->device_address(memory.data() + 5),
            static_cast<std::byte*>(gpu->device_address(memory.data()).value()) + 5);

  std::memset(memory.data(), 0x5C, memory.size());
  auto* const device = gpu->allocate_device(0, 3 * mib).value();
  std::vector<std::byte> back(3 * mib);
  ASSERT_TRUE(gpu->copy_async(device, memory.data(), memory.size(), tested->stream()));
  ASSERT_TRUE(gpu->record_event(tested->event(7), tested->stream()));
  ASSERT_TRUE(gpu->synchronize_event(tested->event(7)));
  ASSERT_TRUE(gpu->copy(back.data(), device, back.size()));
  EXPECT_EQ(back, std::vector<std::byte>(3 * mib, std::byte{0x5C}));
  EXPECT_TRUE(gpu->free_device(device));
}

TEST_F(ring_test, HasAnEventForEachBlockUnderWay) {
  const auto tested = make();
  std::set<std::uintptr_t> events;
  for (std::uint32_t block = 0; block < ring::most_blocks; ++block) {
    events.insert(tested->event(block).bits);
    EXPECT_EQ(tested->event(block), tested->event(block + ring::most_blocks));
  }
  EXPECT_EQ(events.size(), ring::most_blocks);
  EXPECT_EQ(gpu->held().events, ring::most_blocks);
  EXPECT_EQ(gpu->held().streams, 1U);
  EXPECT_EQ(gpu->held().registrations, 1U);
}

TEST_F(ring_test, GivesEverythingBack) {
  const auto before = gpu->held();
  const std::byte* memory = nullptr;
  {
    const auto tested = make(6 * mib);
    tested->clear(6 * mib);
    memory = tested->at({}, 1).data();
    EXPECT_TRUE(runtime::is_mapped(memory, 6 * mib));
    EXPECT_EQ(home.budget().used(), 6 * mib);
  }
  EXPECT_FALSE(runtime::is_mapped(memory, 6 * mib));
  expect_same(gpu->held(), before);
  EXPECT_EQ(home.budget().used(), 0U);
}

TEST_F(ring_test, SeveralLiveSideBySide) {
  const auto before = gpu->held();
  {
    const auto one = make();
    const auto other = make(4 * mib);
    EXPECT_EQ(home.budget().used(), 6 * mib);
    EXPECT_NE(one->stream(), other->stream());
    EXPECT_EQ(gpu->held().events, before.events + 2 * ring::most_blocks);
  }
  expect_same(gpu->held(), before);
}

TEST_F(ring_test, AbandonedItLeavesAllToTheEndOfTheProcess) {
  auto tested = make();
  auto* const memory = tested->at({}, 1).data();
  const auto stream = tested->stream();
  const auto held = gpu->held();
  tested->abandon();
  tested.reset();
  expect_same(gpu->held(), held);
  EXPECT_TRUE(runtime::is_mapped(memory, 2 * mib)) << "a DMA may still use it";
  EXPECT_EQ(home.budget().used(), 2 * mib);
  EXPECT_TRUE(gpu->query_stream(stream));
  EXPECT_TRUE(gpu->unregister_host(memory));
  munmap(memory, 2 * mib);
}

// --- failures ----------------------------------------------------------------------------------

TEST_F(ring_test, EachFailingCallGivesAnErrorAndLeaksNothing) {
  const auto before = gpu->held();
  const auto calls_before = gpu->calls();
  auto without_faults = make();
  const auto whole = gpu->calls() - calls_before;
  without_faults.reset();
  ASSERT_GT(whole, ring::most_blocks);

  const auto space = address_space();
  std::set<std::string> failed;
  std::uint64_t failures = 0;
  for (std::uint64_t nth = 1; nth <= whole; ++nth) {
    gpu->inject({.kind = fault_kind::fail_call, .only = {}, .nth = nth});
    if (const auto made = ring::make(home, 0, 2 * mib); !made) {
      ++failures;
      failed.insert(made.error().where());
      EXPECT_NE(made.error().message().find("injected"), std::string::npos);
    }
    gpu->clear_faults();
    SCOPED_TRACE("call " + std::to_string(nth));
    expect_same(gpu->held(), before);
    ASSERT_EQ(home.budget().used(), 0U);
  }
  EXPECT_EQ(failed, (std::set<std::string>{"register_host", "create_stream", "create_event"}));
  EXPECT_EQ(failures, 2U + ring::most_blocks);
  EXPECT_LT(address_space(), space + 32 * mib) << "of " << failures << " rings of 2 MiB";
  EXPECT_TRUE(ring::make(home, 0, 2 * mib)) << "later ones can be made";
}

TEST_F(ring_test, WithoutAnAddressOnTheDeviceItIsCopiedFromAllTheSame) {
  gpu->inject({.only = runtime::sim::call::device_address, .nth = 1});
  const auto before = gpu->held();
  {
    const auto made = ring::make(home, 0, 2 * mib);
    ASSERT_TRUE(made) << made.error().to_string();
    const auto* const memory = (*made)->at({}, 1).data();
    EXPECT_EQ((*made)->device_address(memory), memory);
  }
  expect_same(gpu->held(), before);
  EXPECT_EQ(home.budget().used(), 0U);
}

TEST_F(ring_test, EndsQuietlyWhenTheRuntimeHasShutDown) {
  auto tested = make();
  const auto* const memory = tested->at({}, 1).data();
  gpu->inject({.kind = fault_kind::fail_call, .nth = 0, .code = errc::gpu_shut_down});
  tested.reset();
  gpu->clear_faults();
  EXPECT_EQ(home.budget().used(), 0U);
  EXPECT_FALSE(runtime::is_mapped(memory, 2 * mib));
}

TEST_F(ring_test, BeyondTheBudgetNothingIsMade) {
  memory::context_state poor(gpu, "a test", 2 * mib);
  const auto before = gpu->held();
  const auto calls = gpu->calls();
  const auto refused = ring::make(poor, 0, 2 * mib + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::memory_over_budget);
  EXPECT_EQ(gpu->calls(), calls);
  EXPECT_EQ(poor.budget().used(), 0U);
  const auto first = ring::make(poor, 0, 2 * mib);
  EXPECT_TRUE(first);
  EXPECT_FALSE(ring::make(poor, 0, 1)) << "the budget is used up";
  EXPECT_EQ(poor.budget().used(), 2 * mib);
  EXPECT_EQ(gpu->held().registrations, before.registrations + 1);
}

TEST_F(ring_test, WhereTheSystemPinsNoMoreTheErrorSaysSo) {
  const auto tight = ring_driver({.pinned_limit = 1 * mib});
  memory::context_state state(tight, "a test", 64 * mib);
  const auto refused = ring::make(state, 0, 2 * mib);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::gpu_out_of_memory);
  EXPECT_EQ(state.budget().used(), 0U);
  EXPECT_EQ(tight->held().registrations, 0U);
}

}  // namespace
}  // namespace berth::transfer
