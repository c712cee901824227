// SPDX-License-Identifier: Apache-2.0
// Runs the berth command as a user does, and keeps what it wrote. BERTH_COMMAND is its path.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace berth::test {

// Where standard output goes.
enum class output_to : std::uint8_t { file, terminal, closed, full_device };

struct environment_variable {
  std::string name;
  std::string value;
};

struct outcome {
  int status = -1;  // 128 + number for a signal, as shells have it
  std::string out;
  std::string err;
};

// A folder of its own for each test, removed at its end.
class scratch_folder {
public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-cli-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

namespace detail {

[[noreturn]] inline void exec_command(const std::vector<std::string>& arguments,
                                      const std::vector<environment_variable>& environment, int out,
                                      int err) {
  if (out < 0) {
    ::close(STDOUT_FILENO);
  } else {
    ::dup2(out, STDOUT_FILENO);
  }
  ::dup2(err, STDERR_FILENO);
  ::unsetenv("NO_COLOR");
  for (const auto& [name, value] : environment) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> owned{BERTH_COMMAND};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& one : owned) {
    pointers.push_back(one.data());
  }
  pointers.push_back(nullptr);
  ::execv(BERTH_COMMAND, pointers.data());
  ::_exit(127);
}

// A terminal ends with an error when its last writer has gone.
inline std::string read_terminal(int master) {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(master, part, sizeof(part))) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

inline int open_terminal() {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master >= 0 && (::grantpt(master) != 0 || ::unlockpt(master) != 0)) {
    ::close(master);
    return -1;
  }
  return master;
}

}  // namespace detail

inline outcome run_berth(const std::vector<std::string>& arguments, output_to to = output_to::file,
                         const std::vector<environment_variable>& environment = {}) {
  const scratch_folder scratch;
  const auto out_path = scratch.file("out");
  const auto err_path = scratch.file("err");
  const int err = ::open(err_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  int master = -1;
  int out = -1;
  switch (to) {
    case output_to::file:
      out = ::open(out_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      break;
    case output_to::full_device:
      out = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
      break;
    case output_to::terminal:
      master = detail::open_terminal();
      out = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
      break;
    case output_to::closed:
      break;
  }
  outcome result;
  const pid_t child = ::fork();
  if (child == 0) {
    detail::exec_command(arguments, environment, out, err);
  }
  ::close(err);
  if (out >= 0) {
    ::close(out);
  }
  if (master >= 0) {
    result.out = detail::read_terminal(master);
    ::close(master);
  }
  int state = 0;
  if (child < 0 || ::waitpid(child, &state, 0) != child) {
    ADD_FAILURE() << "cannot run " << BERTH_COMMAND;
    return result;
  }
  result.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  if (to == output_to::file) {
    result.out = read_file(out_path);
  }
  result.err = read_file(err_path);
  return result;
}

}  // namespace berth::test
