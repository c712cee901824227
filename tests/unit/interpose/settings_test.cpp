// SPDX-License-Identifier: Apache-2.0
// What the environment tells the recorder, and the names of its files.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "interpose/capture/settings.hpp"

namespace berth::interpose {
namespace {

// Sets variables of the environment for as long as it lives.
class environment {
public:
  environment(std::initializer_list<std::pair<const char*, std::string>> variables) {
    for (const auto& [name, value] : variables) {
      ::setenv(name, value.c_str(), 1);
      names_.emplace_back(name);
    }
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  environment(environment&&) = delete;
  environment& operator=(environment&&) = delete;
  ~environment() {
    for (const auto& name : names_) {
      ::unsetenv(name.c_str());
    }
  }

private:
  std::vector<std::string> names_;
};

settings of_pattern(std::string_view pattern) {
  settings made;
  std::memcpy(made.path.data(), pattern.data(), pattern.size());
  return made;
}

std::string expanded(std::string_view pattern, unsigned attempt = 0) {
  std::array<char, settings::most_path> to{};
  return expand_path(of_pattern(pattern), attempt, to) ? to.data() : "(does not fit)";
}

std::string with_own_number(const std::string& before, const std::string& after) {
  return before + std::to_string(::getpid()) + after;
}

TEST(Settings, RecordNothingWithoutAName) {
  ::unsetenv("BERTH_RECORD");
  EXPECT_FALSE(settings_of_environment().records());
  const environment set{{"BERTH_RECORD", ""}};
  EXPECT_FALSE(settings_of_environment().records());
}

TEST(Settings, TakeAnAbsoluteNameAsItIs) {
  const environment set{{"BERTH_RECORD", "/tmp/%p.trace"}};
  EXPECT_STREQ(settings_of_environment().path.data(), "/tmp/%p.trace");
}

TEST(Settings, TakeARelativeNameFromTheFolderInWhichTheProgramBegins) {
  const environment set{{"BERTH_RECORD", "a.trace"}};
  std::array<char, settings::most_path> folder{};
  ASSERT_NE(::getcwd(folder.data(), folder.size()), nullptr);
  EXPECT_EQ(settings_of_environment().path.data(), std::string(folder.data()) + "/a.trace");
}

TEST(Settings, TakeSignsOfTheFolderLiterally) {
  std::array<char, settings::most_path> before{};
  ASSERT_NE(::getcwd(before.data(), before.size()), nullptr);
  std::string folder = "/tmp/berth-100%p-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(::chdir(folder.c_str()), 0);
  const environment set{{"BERTH_RECORD", "a"}};
  const auto found = settings_of_environment();
  std::array<char, settings::most_path> to{};
  EXPECT_TRUE(expand_path(found, 0, to));
  EXPECT_EQ(to.data(), folder + "/a");
  ASSERT_EQ(::chdir(before.data()), 0);
  ::rmdir(folder.c_str());
}

TEST(Settings, RecordNothingUnderANameThatIsTooLong) {
  const environment set{{"BERTH_RECORD", "/" + std::string(settings::most_path, 'a')}};
  EXPECT_FALSE(settings_of_environment().records());
  const environment relative{{"BERTH_RECORD", std::string(settings::most_path - 3, 'a')}};
  EXPECT_FALSE(settings_of_environment().records());
}

TEST(Settings, AreReadFromTheEnvironment) {
  const environment set{{"BERTH_RECORD", "/a"},
                        {"BERTH_RECORD_DEVICE_TIMES", "off"},
                        {"BERTH_RECORD_STACKS", "all"},
                        {"BERTH_RECORD_CONTENT", "1"},
                        {"BERTH_RECORD_DELAY", "1.5"},
                        {"BERTH_RECORD_DURATION", "0.25"},
                        {"BERTH_RECORD_SIGNAL", "SIGUSR2"},
                        {"BERTH_RECORD_ONLY", "77"},
                        {"BERTH_RECORD_MEMORY", "3"}};
  const auto found = settings_of_environment();
  EXPECT_EQ(found.times, device_times::off);
  EXPECT_EQ(found.sites, call_sites::all);
  EXPECT_EQ(found.contents, contents::hashed);
  EXPECT_EQ(found.delay_ns, 1'500'000'000);
  EXPECT_EQ(found.duration_ns, 250'000'000);
  EXPECT_EQ(found.toggle_signal, SIGUSR2);
  EXPECT_EQ(found.only_process, 77);
  EXPECT_EQ(found.memory, std::size_t{3} << 20);
}

TEST(Settings, KeepTheirDefaultsWhereTheEnvironmentIsNonsense) {
  const settings usual;
  for (const char* const nonsense :
       {"", "x", "-1", "nan", "inf", "1e300", "-inf", "99999999999999999999", "SIGKILL"}) {
    const environment set{
        {"BERTH_RECORD_DEVICE_TIMES", nonsense}, {"BERTH_RECORD_STACKS", nonsense},
        {"BERTH_RECORD_CONTENT", nonsense},      {"BERTH_RECORD_DELAY", nonsense},
        {"BERTH_RECORD_DURATION", nonsense},     {"BERTH_RECORD_SIGNAL", nonsense},
        {"BERTH_RECORD_MEMORY", nonsense}};
    const auto found = settings_of_environment();
    EXPECT_EQ(found.times, usual.times) << nonsense;
    EXPECT_EQ(found.sites, usual.sites) << nonsense;
    EXPECT_EQ(found.contents, usual.contents) << nonsense;
    EXPECT_EQ(found.delay_ns, usual.delay_ns) << nonsense;
    EXPECT_EQ(found.duration_ns, usual.duration_ns) << nonsense;
    EXPECT_EQ(found.toggle_signal, usual.toggle_signal) << nonsense;
    EXPECT_EQ(found.memory, usual.memory) << nonsense;
  }
}

TEST(TracePath, HasItsFieldsFilledIn) {
  EXPECT_EQ(expanded("/a/b.trace"), "/a/b.trace");
  EXPECT_EQ(expanded("/a/%p.trace"), with_own_number("/a/", ".trace"));
  EXPECT_EQ(expanded("%%p"), "%p");
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  EXPECT_EQ(expanded("%h"), host.data());
}

TEST(TracePath, HasTheRankOfTheJob) {
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    ::unsetenv(name);
  }
  EXPECT_EQ(expanded("%r"), "0");
  const environment torchrun{{"RANK", "5"}};
  EXPECT_EQ(expanded("%r"), "5");
  const environment mpi{{"OMPI_COMM_WORLD_RANK", "7"}};
  EXPECT_EQ(expanded("%r"), "7");
}

TEST(TracePath, KeepsSignsThatMeanNothing) {
  EXPECT_EQ(expanded("100%"), "100%");
  EXPECT_EQ(expanded("%x%"), "%x%");
  EXPECT_EQ(expanded("%n%s"), "%n%s");
}

TEST(TracePath, GetsTheNumberBeforeItsExtensionWhenTheNameIsTaken) {
  EXPECT_EQ(expanded("/a/b.trace", 1), with_own_number("/a/b.", ".trace"));
  EXPECT_EQ(expanded("/a/b.trace", 3), with_own_number("/a/b.", ".3.trace"));
  EXPECT_EQ(expanded("/a/b", 1), with_own_number("/a/b.", ""));
  EXPECT_EQ(expanded("/a.b/c", 1), with_own_number("/a.b/c.", ""));
  EXPECT_EQ(expanded("/a/.hidden", 1), with_own_number("/a/.hidden.", ""));
}

TEST(TracePath, GetsANumberWhereverItsSignsStand) {
  for (const char* const pattern :
       {"/a%.b", "/a/%", "/a/%p.%p", "/a/b.", "/a/%.", "%.", ".", "/"}) {
    EXPECT_NE(expanded(pattern, 1), expanded(pattern, 0)) << pattern;
    EXPECT_NE(expanded(pattern, 2), expanded(pattern, 1)) << pattern;
  }
}

TEST(TracePath, SaysWhenItDoesNotFit) {
  std::string pattern = "/" + std::string(settings::most_path - 3, 'a');
  EXPECT_EQ(expanded(pattern), pattern);
  pattern += "%";
  EXPECT_EQ(expanded(pattern), pattern);
  pattern.replace(pattern.size() - 2, 2, "%p");
  EXPECT_EQ(expanded(pattern), "(does not fit)");
}

}  // namespace
}  // namespace berth::interpose
