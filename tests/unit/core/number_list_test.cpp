// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs and nodes as the kernel writes them.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/text.hpp"

namespace berth::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NumberList, ReadsNumbersAndRanges) {
  EXPECT_THAT(parse_number_list("0").value(), ElementsAre(0));
  EXPECT_THAT(parse_number_list("0-3,8,10-11").value(), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_number_list("5-5").value(), ElementsAre(5));
}

TEST(NumberList, ComesInOrderWithoutDoubles) {
  EXPECT_THAT(parse_number_list("4-6,0-2,5-7,1").value(), ElementsAre(0, 1, 2, 4, 5, 6, 7));
  EXPECT_THAT(parse_number_list("3,3,3").value(), ElementsAre(3));
}

TEST(NumberList, IgnoresBlanksAroundIt) {
  EXPECT_THAT(parse_number_list("0-1\n").value(), ElementsAre(0, 1));
  EXPECT_THAT(parse_number_list(" \t2,4 \n").value(), ElementsAre(2, 4));
}

TEST(NumberList, OfBlanksIsEmpty) {
  EXPECT_THAT(parse_number_list("").value(), IsEmpty());
  EXPECT_THAT(parse_number_list("\n").value(), IsEmpty());
}

TEST(NumberList, RefusesWhatIsNone) {
  for (const auto* const text : {"a",
                                 "0x1",
                                 "-1",
                                 "1-",
                                 "1-a",
                                 "3-1",
                                 "1--2",
                                 "1,,2",
                                 ",1",
                                 "1,",
                                 "1,b",
                                 "1 2",
                                 "0 - 3",
                                 "1-2-3",
                                 "+1",
                                 "1.5",
                                 "1;2",
                                 "99999999999999999999",
                                 "0-99999999999999999999",
                                 "-"}) {
    EXPECT_EQ(parse_number_list(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(NumberList, RefusesNumbersThatNoListHas) {
  EXPECT_EQ(parse_number_list("0-2147483647"), std::nullopt);
  EXPECT_EQ(parse_number_list("2147483647"), std::nullopt);
}

RC_GTEST_PROP(NumberList, ReadsBackAnySet, ()) {
  const auto cpus = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 300));
  std::string text;
  for (auto next = cpus.begin(); next != cpus.end();) {
    const int first = *next;
    int last = first;
    while (++next != cpus.end() && *next == last + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  const auto read = parse_number_list(text + "\n");
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == std::vector<std::uint32_t>(cpus.begin(), cpus.end()));
}

RC_GTEST_PROP(NumberList, IsOrderedOrRefusedWhateverTheText, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123459,-, \n\ta")));
  const auto read = parse_number_list(text);
  if (read) {
    RC_ASSERT(std::adjacent_find(read->begin(), read->end(), std::greater_equal<>()) ==
              read->end());
  }
}

TEST(NumberList, TakesBlanksAfterCommas) {
  EXPECT_THAT(parse_number_list("0, 2-3").value(), ElementsAre(0, 2, 3));
}

}  // namespace
}  // namespace berth::text
