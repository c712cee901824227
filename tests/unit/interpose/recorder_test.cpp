// SPDX-License-Identifier: Apache-2.0
// The recorder without preloading: threads, drops, windows, forks, ends.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "interpose/capture/clock.hpp"
#include "interpose/capture/recorder.hpp"
#include "support/recorded_file.hpp"
#include "support/scratch.hpp"

namespace berth::interpose {
namespace {

using namespace std::chrono_literals;
using test::recorded_file;
using test::scratch;
using test::settings_for;

raw_event copy_event(std::uint64_t bytes) {
  raw_event event;
  event.call = call_id::hipMemcpy;
  event.begin = read_ticks(find_tick_source());
  event.duration = 1;
  event.values = {1, 2, bytes, 1};  // dst, src, bytes, way
  return event;
}

bool put(thread_log& log, const raw_event& event) {
  auto* const slot = log.events.reserve();
  if (slot == nullptr) {
    log.dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  *slot = event;
  log.events.commit();
  return true;
}

template <class Condition>
bool wait_for(Condition condition) {
  for (int tries = 0; tries < 500; ++tries) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(Recorder, MakesNoFileUntilItBegins) {
  const scratch folder;
  {
    recorder made(settings_for(folder.file("a")));
    EXPECT_FALSE(made.is_recording());
    EXPECT_EQ(made.acquire_log(), nullptr);
    made.flush();
  }
  EXPECT_TRUE(folder.files().empty());
}

TEST(Recorder, RecordsNothingOfOtherProcessesThanTheOneAskedFor) {
  const scratch folder;
  auto how = settings_for(folder.file("a"));
  how.only_process = 1;
  recorder made(how);
  made.begin();
  EXPECT_FALSE(made.is_recording());
  EXPECT_TRUE(folder.files().empty());
}

TEST(Recorder, WritesWhatItWasGiven) {
  const scratch folder;
  {
    recorder made(settings_for(folder.file("a")));
    made.begin();
    auto* const log = made.acquire_log();
    ASSERT_NE(log, nullptr);
    for (std::uint64_t bytes = 0; bytes < 10; ++bytes) {
      EXPECT_TRUE(put(*log, copy_event(bytes)));
    }
    recorder::release_log(*log);
    made.end("exit");
  }
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.process.at("pid"), std::to_string(::getpid()));
  EXPECT_TRUE(read.process.contains("program"));
  EXPECT_TRUE(read.process.contains("argument.0"));
  EXPECT_EQ(read.end.at("reason"), "exit");
  EXPECT_EQ(read.end.at("events"), "10");
  EXPECT_EQ(read.end.at("dropped"), "0");
  EXPECT_FALSE(read.modules.empty());
  ASSERT_EQ(read.events.size(), 10U);
  for (std::uint64_t bytes = 0; bytes < 10; ++bytes) {
    EXPECT_EQ(read.events[bytes]["bytes"], bytes);
    EXPECT_EQ(read.events[bytes].thread, static_cast<std::uint64_t>(::gettid()));
  }
}

TEST(Recorder, WritesByItselfWithinAShortTime) {
  const scratch folder;
  recorder made(settings_for(folder.file("a")));
  made.begin();
  ASSERT_TRUE(put(*made.acquire_log(), copy_event(5)));
  EXPECT_TRUE(
      wait_for([&] { return recorded_file::read(folder.file("a")).count("hipMemcpy") == 1; }));
}

TEST(Recorder, LosesNothingOfManyThreads) {
  constexpr int thread_count = 8;
  constexpr std::uint64_t each = 5000;
  const scratch folder;
  {
    const auto made = std::make_unique<recorder>(settings_for(folder.file("a")));
    made->begin();
    std::vector<std::thread> threads;
    for (int index = 0; index < thread_count; ++index) {
      threads.emplace_back([&] {
        auto* const log = made->acquire_log();
        for (std::uint64_t number = 0; number < each;) {
          if (auto* const slot = log->events.reserve()) {
            *slot = copy_event(number++);
            log->events.commit();
          } else {
            made->hurry();
            std::this_thread::sleep_for(1ms);
          }
        }
        recorder::release_log(*log);
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    made->end("exit");
  }
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.events.size(), thread_count * each);
  std::map<std::uint64_t, std::uint64_t> next;
  std::map<std::uint64_t, std::uint64_t> last_begin;
  for (const auto& event : read.events) {
    EXPECT_EQ(event["bytes"], next[event.thread]++);
    EXPECT_GE(event.begin, last_begin[event.thread]);
    last_begin[event.thread] = event.begin;
  }
  EXPECT_EQ(next.size(), static_cast<std::size_t>(thread_count));
}

TEST(Recorder, CountsWhatItDrops) {
  const scratch folder;
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  {
    recorder made(settings_for(folder.file("a")));
    made.begin();
    auto* const log = made.acquire_log();
    for (std::uint64_t number = 0; number < 20'000; ++number) {
      ++(put(*log, copy_event(number)) ? kept : lost);
    }
    made.end("exit");
  }
  EXPECT_GT(lost, 0U);
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.count("hipMemcpy"), kept);
  EXPECT_EQ(read.dropped, lost);
  EXPECT_EQ(read.end.at("dropped"), std::to_string(lost));
  EXPECT_EQ(read.coverage.at("dropped"), std::to_string(lost));
}

TEST(Recorder, UsesTheLogsOfFinishedThreadsAgain) {
  const scratch folder;
  constexpr std::uint64_t thread_count = 300;
  std::set<thread_log*> logs;
  {
    recorder made(settings_for(folder.file("a")));
    made.begin();
    for (std::uint64_t number = 0; number < thread_count; ++number) {
      std::thread([&] {
        auto* const log = made.acquire_log();
        logs.insert(log);
        put(*log, copy_event(number));
        recorder::release_log(*log);
      }).join();
      if (number % 16 == 0) {
        made.flush();
      }
    }
    made.end("exit");
  }
  EXPECT_LT(logs.size(), 64U);
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.events.size(), thread_count);
  std::set<std::uint64_t> threads;
  for (const auto& event : read.events) {
    threads.insert(event.thread);
  }
  EXPECT_EQ(threads.size(), thread_count);
}

TEST(Recorder, KeepsToItsMemoryAndCountsTheRest) {
  const scratch folder;
  auto how = settings_for(folder.file("a"));
  how.memory = 3 * sizeof(thread_log);
  recorder made(how);
  made.begin();
  std::vector<thread_log*> logs;
  for (int index = 0; index < 5; ++index) {
    logs.push_back(made.acquire_log());
  }
  EXPECT_NE(logs[2], nullptr);
  EXPECT_EQ(logs[3], nullptr);
  made.note_without_log();
  made.end("exit");
  EXPECT_EQ(recorded_file::read(folder.file("a")).end.at("dropped"), "1");
}

TEST(Recorder, EndsOnceOnly) {
  const scratch folder;
  recorder made(settings_for(folder.file("a")));
  made.begin();
  made.end("exit");
  made.end("_exit");
  made.begin();
  EXPECT_FALSE(made.is_recording());
  EXPECT_EQ(made.acquire_log(), nullptr);
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.end.at("reason"), "exit");
  EXPECT_EQ(folder.files().size(), 1U);
}

TEST(Recorder, EndsOnceWhenManyThreadsEndIt) {
  const scratch folder;
  const auto made = std::make_unique<recorder>(settings_for(folder.file("a")));
  made->begin();
  put(*made->acquire_log(), copy_event(1));
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] { made->end("exit"); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.events.size(), 1U);
  EXPECT_FALSE(read.losses.any());
}

TEST(Recorder, OpensItsWindowAfterTheDelayForTheDuration) {
  const scratch folder;
  auto how = settings_for(folder.file("a"));
  how.delay_ns = 150'000'000;
  how.duration_ns = 200'000'000;
  recorder made(how);
  EXPECT_FALSE(made.in_window());
  made.begin();
  EXPECT_FALSE(made.in_window());
  EXPECT_TRUE(wait_for([&] { return made.in_window(); }));
  EXPECT_TRUE(wait_for([&] { return !made.in_window(); }));
  made.end("exit");
  const auto windows = recorded_file::read(folder.file("a")).of("window");
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0]["value"], 1U);
  EXPECT_EQ(windows[1]["value"], 0U);
  EXPECT_GE(windows[1].begin - windows[0].begin, 50'000'000U);
}

TEST(Recorder, TogglesItsWindow) {
  const scratch folder;
  auto how = settings_for(folder.file("a"));
  how.toggle_signal = 10;
  recorder made(how);
  made.begin();
  EXPECT_TRUE(made.in_window());
  made.toggle_window();
  EXPECT_TRUE(wait_for([&] { return !made.in_window(); }));
  made.toggle_window();
  EXPECT_TRUE(wait_for([&] { return made.in_window(); }));
  made.end("exit");
  EXPECT_EQ(recorded_file::read(folder.file("a")).count("window"), 2U);
}

TEST(Recorder, TellsOfCallsThatItCouldNotSee) {
  const scratch folder;
  recorder made(settings_for(folder.file("a")));
  made.begin();
  for (int times = 0; times < 3; ++times) {
    made.note_missed("hipMemcpy");
  }
  made.end("exit");
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.coverage.at("missed.0"), "hipMemcpy");
  EXPECT_FALSE(read.coverage.contains("missed.1"));
}

class fake_source final : public device_source {
public:
  explicit fake_source(recorder& to) : to_(to) {}
  void deliver() noexcept override {
    if (!given_.exchange(true)) {
      const auto name = to_.devices().intern("a_kernel");
      to_.devices().add({.what = record_id::device_kernel, .begin = 5, .end = 9, .name = name});
    }
  }
  [[nodiscard]] const char* state() const noexcept override { return "fake"; }

private:
  recorder& to_;
  std::atomic<bool> given_{false};
};

TEST(Recorder, WritesWhatDevicesDid) {
  const scratch folder;
  recorder made(settings_for(folder.file("a")));
  fake_source source(made);
  made.begin();
  made.set_device_source(&source);
  ASSERT_TRUE(
      wait_for([&] { return recorded_file::read(folder.file("a")).count("device kernel") == 1; }));
  made.end("exit");
  const auto read = recorded_file::read(folder.file("a"));
  ASSERT_EQ(read.count("device kernel"), 1U);
  EXPECT_EQ(read.strings.at(read.of("device kernel")[0]["name"]), "a_kernel");
  EXPECT_EQ(read.coverage.at("device_times"), "fake");
  EXPECT_EQ(read.end.at("events"), "1");
}

TEST(Recorder, DoesNoHarmWhereTheFileCannotBeMade) {
  recorder made(settings_for("/no/such/folder/a"));
  made.begin();
  EXPECT_FALSE(made.is_recording());
  EXPECT_EQ(made.acquire_log(), nullptr);
  made.flush();
  made.end("exit");
}

#ifndef __SANITIZE_THREAD__  // which ends children that begin threads
TEST(Recorder, GivesTheChildOfAForkAFileOfItsOwn) {
  const scratch folder;
  recorder made(settings_for(folder.file("%p")));
  made.begin();
  put(*made.acquire_log(), copy_event(1));
  made.before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    made.after_fork_in_child();
    made.begin();
    put(*made.acquire_log(), copy_event(2));
    put(*made.acquire_log(), copy_event(3));
    made.end("_exit");
    ::_exit(0);
  }
  made.after_fork_in_parent();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  made.end("exit");
  const auto parent = recorded_file::read(folder.file(std::to_string(::getpid())));
  ASSERT_EQ(parent.events.size(), 1U);
  EXPECT_EQ(parent.events[0]["bytes"], 1U);
  const auto of_child = recorded_file::read(folder.file(std::to_string(child)));
  EXPECT_EQ(of_child.events.size(), 2U);
  EXPECT_EQ(of_child.process.at("parent"), std::to_string(::getpid()));
  EXPECT_EQ(of_child.end.at("events"), "2");
}

// With the drainer busy all the time: no child may inherit a lock that nobody gives back.
TEST(Recorder, ForksAtAnyMoment) {
  const scratch folder;
  recorder made(settings_for(folder.file("%p")));
  made.begin();
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done.load()) {
      made.flush();
    }
  });
  for (int times = 0; times < 100; ++times) {
    made.before_fork();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      made.after_fork_in_child();
      made.begin();
      made.end("_exit");
      ::_exit(0);
    }
    made.after_fork_in_parent();
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done.store(true);
  busy.join();
  EXPECT_EQ(folder.files().size(), 101U);
}

TEST(Recorder, GoesOnWithoutAThreadOfItsOwn) {
  const scratch folder;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::getuid() == 0 && ::setuid(65533) != 0) {
      ::_exit(3);
    }
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NPROC, &none);
    recorder made(settings_for(folder.file("a")));
    made.begin();
    if (auto* const log = made.acquire_log()) {
      put(*log, copy_event(1));
    }
    made.end("exit");
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace berth::interpose
