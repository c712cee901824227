// SPDX-License-Identifier: Apache-2.0
// The variables that tell the recorder what to do.
#include "interpose/launch.hpp"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::interpose {
namespace {

using namespace std::chrono_literals;
using program::variable;

TEST(variables_of, leaves_out_what_is_the_default) {
  recording_options options;
  options.file = "/a/%p";
  EXPECT_THAT(variables_of(options), testing::ElementsAre(variable{"BERTH_RECORD", "/a/%p"}));
}

TEST(variables_of, has_each_option) {
  recording_options options;
  options.file = "f";
  options.device_times = device_times::off;
  options.stacks = call_sites::all;
  options.content = contents::hashed;
  options.delay = 1500ms;
  options.duration = 1ns;
  options.signal = "USR1";
  EXPECT_THAT(
      variables_of(options),
      testing::ElementsAre(
          variable{"BERTH_RECORD", "f"}, variable{"BERTH_RECORD_DEVICE_TIMES", "off"},
          variable{"BERTH_RECORD_STACKS", "all"}, variable{"BERTH_RECORD_CONTENT", "1"},
          variable{"BERTH_RECORD_DELAY", "1.5"}, variable{"BERTH_RECORD_DURATION", "0.000000001"},
          variable{"BERTH_RECORD_SIGNAL", "USR1"}));
  options.delay = 0s;
  options.duration = 100s;
  const auto variables = variables_of(options);
  EXPECT_EQ(variables[4].value, "0");
  EXPECT_EQ(variables[5].value, "100");
}

TEST(parse_seconds, takes_plain_seconds_and_units) {
  EXPECT_EQ(parse_seconds("2").value(), 2s);
  EXPECT_EQ(parse_seconds("0.25").value(), 250ms);
  EXPECT_EQ(parse_seconds("250ms").value(), 250ms);
  for (const auto* const bad : {"", "-1", "1.2.3", "soon", ".", "1e400s"}) {
    EXPECT_FALSE(parse_seconds(bad)) << bad;
  }
}

TEST(parse_toggle_signal, takes_names_in_all_spellings) {
  for (const auto* const text : {"USR2", "SIGUSR2", "usr2", "sigusr2"}) {
    EXPECT_EQ(parse_toggle_signal(text).value().name, "USR2");
    EXPECT_EQ(parse_toggle_signal(text).value().number, SIGUSR2);
  }
  for (const auto* const bad : {"", "SIG", "KILL", "SEGV", "12", "INT"}) {
    EXPECT_FALSE(parse_toggle_signal(bad)) << bad;
  }
}

TEST(words, are_those_of_the_command_line) {
  EXPECT_EQ(parse_stacks("all").value(), call_sites::all);
  EXPECT_EQ(parse_device_times("auto").value(), device_times::automatic);
  EXPECT_FALSE(parse_device_times("all"));
  EXPECT_FALSE(parse_stacks(""));
}

}  // namespace
}  // namespace berth::interpose
