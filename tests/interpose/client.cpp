// SPDX-License-Identifier: Apache-2.0
#include "interpose/client.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include <gtest/gtest.h>

namespace berth::test {
namespace {

int status_of(int child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ending end_of(int child, const scratch& output) {
  ending end;
  end.status = status_of(child);
  end.out = content_of(output.file("out"));
  end.err = content_of(output.file("err"));
  return end;
}

}  // namespace

std::string program(std::string_view name) {
  return std::string(INTERPOSE_PROGRAMS) + "/" + std::string(name);
}

client linked(std::vector<std::string> arguments, variables more) {
  arguments.insert(arguments.begin(), program("linked"));
  return client(std::move(arguments), std::move(more));
}

client opened(std::vector<std::string> arguments, variables more) {
  arguments.insert(arguments.begin(), program("opened"));
  return client(std::move(arguments), std::move(more));
}

int client::start(bool recorded, const scratch& output) {
  std::vector<char*> arguments;
  for (auto& word : words_) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  variables environment = more_;
  environment.emplace_back("FAKE_HIP_COUNTS", counts_.file("hip"));
  environment.emplace_back("FAKE_CUDA_COUNTS", counts_.file("cuda"));
  if (recorded) {
    environment.emplace_back("LD_PRELOAD", BERTH_PRELOAD);
    environment.emplace_back("BERTH_RECORD", traces_.file("%p.trace"));
  }
  const int child = ::fork();
  if (child != 0) {
    return child;
  }
  ::dup2(::open(output.file("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 1);
  ::dup2(::open(output.file("err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
  ::alarm(60);
  for (const auto& [name, value] : environment) {
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

ending client::run_alone() {
  const scratch output;
  return end_of(start(false, output), output);
}

ending client::run_recorded() {
  const scratch output;
  return end_of(start(true, output), output);
}

int client::start_recorded() {
  const scratch output;
  return start(true, output);
}

recorded_file client::record() {
  const auto alone = run_alone();
  const auto recorded = run_recorded();
  EXPECT_EQ(recorded.status, alone.status);
  EXPECT_EQ(recorded.out, alone.out);
  EXPECT_EQ(recorded.err, alone.err);
  return recording();
}

std::vector<recorded_file> client::recordings() const {
  std::vector<recorded_file> found;
  for (const auto& path : traces_.files()) {
    found.push_back(recorded_file::read(path));
    EXPECT_TRUE(found.back().readable) << path;
    EXPECT_TRUE(found.back().whole_events) << path;
    EXPECT_FALSE(found.back().losses.any()) << path;
  }
  return found;
}

recorded_file client::recording() const {
  const auto all = recordings();
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? recorded_file{} : all.front();
}

counted client::hip_counts() const {
  std::istringstream text(content_of(counts_.file("hip")));
  std::uint64_t calls = 0;
  counted found;
  text >> calls >> found.copies >> found.bytes;
  return found;
}

counted client::cuda_counts() const {
  std::istringstream text(content_of(counts_.file("cuda")));
  counted found;
  text >> found.copies >> found.bytes;
  return found;
}

}  // namespace berth::test
