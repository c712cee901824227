// SPDX-License-Identifier: Apache-2.0
// A child that only forks keeps its hands off the device; one that also starts a program has a
// device of its own, also while the parent works.
#include <sys/wait.h>
#include <unistd.h>

#include "program.hpp"

namespace {

void copy_there_and_back(unsigned seed) {
  constexpr std::size_t bytes = 1UL << 20U;
  const auto source = program::pattern(bytes, seed);
  std::vector<unsigned char> result(bytes);
  auto* const device = program::device_memory(bytes);
  CHECK(hipMemcpy(device, source.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(result.data(), device, bytes, hipMemcpyDeviceToHost));
  REQUIRE(result == source);
  program::did_copy(program::to_device, bytes);
  program::did_copy(program::to_host, bytes);
  CHECK(hipFree(device));
}

int exit_status_of(pid_t child) {
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  copy_there_and_back(20);
  if (argc > 1) {
    return 5;
  }
  std::fflush(stdout);
  const pid_t only_forked = fork();
  if (only_forked == 0) {
    _exit(3);
  }
  REQUIRE(exit_status_of(only_forked) == 3);
  const pid_t started = fork();
  if (started == 0) {
    execl("/proc/self/exe", argv[0], "child", static_cast<char*>(nullptr));
    _exit(9);
  }
  for (unsigned round = 0; round < 5; ++round) {
    copy_there_and_back(round);
  }
  REQUIRE(exit_status_of(started) == 5);
}
