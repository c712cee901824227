// SPDX-License-Identifier: Apache-2.0
#include "emulator/run_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "emulator/rocm_libraries.hpp"

namespace berth::test {
namespace {

using clock_type = std::chrono::steady_clock;

// Reads both pipes until they are closed. False if the time has run out before.
bool read_all(int out, int err, command_end& into, clock_type::time_point deadline) {
  std::array<pollfd, 2> pipes = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  int open = 2;
  while (open > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_type::now());
    if (left.count() <= 0) {
      return false;
    }
    if (poll(pipes.data(), pipes.size(), static_cast<int>(left.count())) <= 0) {
      continue;
    }
    for (std::size_t index = 0; index < pipes.size(); ++index) {
      if (pipes[index].revents == 0) {
        continue;
      }
      std::array<char, 65536> part{};
      const auto got = read(pipes[index].fd, part.data(), part.size());
      if (got > 0) {
        (index == 0 ? into.out : into.err).append(part.data(), static_cast<std::size_t>(got));
      } else {
        pipes[index].fd = -1;
        --open;
      }
    }
  }
  return true;
}

}  // namespace

command_end run_command(const std::vector<std::string>& words, std::chrono::seconds limit) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (auto& word : copies) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) {
    return {};
  }
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // so that what it has started can be killed with it
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execvp(arguments.front(), arguments.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  command_end end;
  const bool in_time = read_all(out[0], err[0], end, clock_type::now() + limit);
  if (!in_time) {
    kill(-child, SIGTERM);  // emulate passes it on, and then cleans up
    for (int tries = 0; tries < 50 && waitpid(child, nullptr, WNOHANG) == 0; ++tries) {
      usleep(100'000);
    }
    kill(-child, SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(out[0]);
  close(err[0]);
  if (in_time) {
    end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return end;
}

command_end emulate(const std::vector<std::string>& options,
                    const std::vector<std::string>& program, std::chrono::seconds limit) {
  std::vector<std::string> words = {BERTH_COMMAND, "emulate"};
  if (BERTH_SANITIZED) {
    // AMD's runtime gives threads a signal stack of its own, which AddressSanitizer takes for its.
    words.insert(words.begin(), {"env", sanitizer_options("use_sigaltstack=0")});
  }
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  return run_command(words, limit);
}

std::string sanitizer_options(const std::string& more) {
  const char* const given = std::getenv("ASAN_OPTIONS");  // NOLINT(concurrency-mt-unsafe)
  return fmt::format("ASAN_OPTIONS={}:{}", given != nullptr ? given : "", more);
}

std::string program_path(const std::string& name) {
  return fmt::format("{}/{}", BERTH_EMULATOR_PROGRAMS, name);
}

std::string missing_rocm() {
  const auto folders = emulator::library_folders();
  if (const auto missing = emulator::missing_rocm_libraries(folders); !missing.empty()) {
    return "ROCm is absent: " + emulator::described(missing);
  }
  if (const auto untried = emulator::untried_hsa_runtime(folders); !untried.empty()) {
    return "the emulator has not been tried with this ROCm: " + untried;
  }
  std::error_code ignored;
  return std::filesystem::exists(program_path("hip_pinned_copy"), ignored)
             ? ""
             : "the HIP programs were not built: libamdhip64-dev is absent";
}

}  // namespace berth::test
