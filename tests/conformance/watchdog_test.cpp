// SPDX-License-Identifier: Apache-2.0
// The watchdog that ends a case which hangs.
#include "conformance/watchdog.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace berth::conformance {
namespace {

using namespace std::chrono_literals;

// Takes the name that expired; later ones are ignored.
class expiry {
public:
  std::function<void(const std::string&)> taker() {
    return [this](const std::string& name) {
      if (!taken_.exchange(true)) {
        name_.set_value(name);
      }
    };
  }
  std::string wait() { return name_.get_future().get(); }
  [[nodiscard]] bool came() const { return taken_; }

private:
  std::promise<std::string> name_;
  std::atomic<bool> taken_{false};
};

TEST(watchdog_suite, names_the_case_that_does_not_end) {
  expiry seen;
  watchdog dog(1ms, seen.taker());
  dog.begin("a case");
  EXPECT_EQ(seen.wait(), "a case");
}

TEST(watchdog_suite, leaves_cases_that_end_alone) {
  expiry seen;
  {
    watchdog dog(1h, seen.taker());
    for (int i = 0; i < 100; ++i) {
      dog.begin("quick");
      dog.end();
    }
  }
  EXPECT_FALSE(seen.came());
}

TEST(watchdog_suite, says_nothing_between_cases) {
  expiry seen;
  {
    watchdog dog(1ms, seen.taker());
    dog.begin("a case");
    dog.end();
    std::this_thread::sleep_for(20ms);
  }
  // The case itself may have expired on a busy machine, but nothing without a name.
  EXPECT_TRUE(!seen.came() || seen.wait() == "a case");
}

TEST(watchdog_suite, gives_the_next_case_its_own_time) {
  expiry seen;
  watchdog dog(1s, seen.taker());
  dog.begin("first");
  dog.begin("second");
  EXPECT_EQ(seen.wait(), "second");
}

}  // namespace
}  // namespace berth::conformance
