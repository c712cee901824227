// SPDX-License-Identifier: Apache-2.0
// Which files belong to a run.
#include "interpose/recording_files.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/temporary_folder.hpp"

namespace berth::interpose {
namespace {

namespace fs = std::filesystem;

TEST(matches_pattern, follows_what_the_recorder_fills_in) {
  struct example {
    std::string name;
    std::string pattern;
    bool matches;
  };
  const std::vector<example> examples{
      {"run.berth", "run.berth", true},
      {"run.42.berth", "run.berth", true},  // the name was taken
      {"run.42.2.berth", "run.berth", true},
      {"run.42.2.3.berth", "run.berth", false},
      {"run.x.berth", "run.berth", false},
      {"run..berth", "run.berth", false},
      {"run.berth2", "run.berth", false},
      {"other.berth", "run.berth", false},
      {"run-17.berth", "run-%p.berth", true},
      {"run-17.17.berth", "run-%p.berth", true},
      {"run-.berth", "run-%p.berth", false},
      {"run-x.berth", "run-%p.berth", false},
      {"node7-17-3.berth", "%h-%p-%r.berth", true},
      {"a.b.c-17-.berth", "%h-%p-%r.berth", true},
      {"100%.berth", "100%%.berth", true},
      {"100%%.berth", "100%%.berth", false},
      {"50%x", "50%x", true},
      {"50%", "50%", true},
      {"run", "run", true},
      {"run.42", "run", true},
      {"", "run", false},
  };
  for (const auto& [name, pattern, matches] : examples) {
    EXPECT_EQ(matches_pattern(name, pattern), matches) << name << " of " << pattern;
  }
}

class recording_files_suite : public testing::Test {
protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder.path() / name).string();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  temporary_folder folder = temporary_folder::create("run").value();
};

TEST_F(recording_files_suite, are_those_that_were_made_since) {
  write("run-1.berth", "berthtrc of an earlier run");
  auto files = recording_files::prepare(path("run-%p.berth"), "program").value();
  EXPECT_THAT(files.made(), testing::IsEmpty());
  write("run-2.berth", "");
  write("run-2.2.berth", "");
  write("notes-3.berth", "");
  EXPECT_THAT(files.made(), testing::ElementsAre(path("run-2.2.berth"), path("run-2.berth")));
}

TEST_F(recording_files_suite, replace_a_recording_of_the_same_name_and_nothing_else) {
  write("old.berth", "berthtrc and more");
  write("empty.berth", "");
  for (const auto* const name : {"old.berth", "empty.berth", "new.berth"}) {
    auto files = recording_files::prepare(path(name), "program").value();
    EXPECT_EQ(fs::exists(path(name)), std::string_view(name) != "new.berth")
        << "not before the start";
    EXPECT_TRUE(files.make_room());
    EXPECT_FALSE(fs::exists(path(name)));
    write(name, "berthtrc anew");
    EXPECT_EQ(files.made(), std::vector{fs::canonical(path(name)).string()});
  }
  write("notes", "berth");
  write("data", "not a recording");
  fs::create_symlink(path("data"), path("link"));
  for (const auto* const name : {"notes", "data", "link"}) {
    const auto refused = recording_files::prepare(path(name), "program");
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), errc::file_unwritable);
    EXPECT_TRUE(fs::exists(path(name))) << name;
  }
}

TEST_F(recording_files_suite, of_a_folder_are_named_after_the_program) {
  EXPECT_EQ(recording_files::prepare(folder.path().string(), "a%b").value().pattern(),
            path("a%%b-%p.berth"));
}

}  // namespace
}  // namespace berth::interpose
