// SPDX-License-Identifier: Apache-2.0
// Work in a child process: what it sends, how it ended, and that nobody waits for one that hangs.
#include "core/watched_child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include <gtest/gtest.h>

namespace berth {
namespace {

using namespace std::chrono_literals;

child_limits within(std::chrono::milliseconds all, std::chrono::milliseconds patience) {
  return {.end = std::chrono::steady_clock::now() + all, .patience = patience};
}

void send(int to, std::string_view text) {
  if (::write(to, text.data(), text.size()) < 0) {
    ::_exit(1);
  }
}

TEST(WatchedChild, SendsAllAndHasAStatus) {
  const auto seen = watch_child(
      [](int to) {
        send(to, "one");
        send(to, "two");
        ::_exit(7);
      },
      within(20s, 20s));
  EXPECT_EQ(seen.how, child_ending::done);
  EXPECT_EQ(seen.sent, "onetwo");
  ASSERT_TRUE(WIFEXITED(seen.status));
  EXPECT_EQ(WEXITSTATUS(seen.status), 7);
}

TEST(WatchedChild, IsGivenUpWhenItIsSilent) {
  const auto seen = watch_child(
      [](int to) {
        send(to, "begun");
        ::sleep(60);
      },
      within(60s, 20ms));
  EXPECT_EQ(seen.how, child_ending::silent);
  EXPECT_EQ(seen.sent, "begun");
}

TEST(WatchedChild, IsGivenUpWhenTheTimeIsOver) {
  const auto seen = watch_child([](int /*to*/) { ::sleep(60); }, within(20ms, 60s));
  EXPECT_EQ(seen.how, child_ending::late);
}

TEST(WatchedChild, IsGivenUpWhenItSendsTooMuch) {
  auto limits = within(20s, 20s);
  limits.most_bytes = 100;
  const auto seen = watch_child(
      [](int to) {
        for (;;) {
          send(to, "0123456789");
        }
      },
      limits);
  EXPECT_EQ(seen.how, child_ending::noisy);
}

}  // namespace
}  // namespace berth
