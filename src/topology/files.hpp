// SPDX-License-Identifier: Apache-2.0
// The files that a machine is known by, below a root folder: a live system's, or captured ones.
// Every question and its answer is kept, so that what was read can be taken elsewhere and gives
// the same machine there. Links are followed inside the root only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::topology {

enum class question_kind : char {
  content = 'r',
  names = 'l',  // of a folder, one a line
  real = 'c',   // where a path leads after all links
};

struct question {
  question_kind kind = question_kind::content;
  std::string path;  // as on the machine: "/proc/version"
  friend auto operator<=>(const question&, const question&) = default;
};

enum class answer_kind : char {
  absent = 'a',  // there is no such file, which is no fault
  text = 't',
  failed = 'f',  // there is one, and the text says why it could not be read
};

struct answer {
  answer_kind kind = answer_kind::absent;
  std::string text;
  friend bool operator==(const answer&, const answer&) = default;
};

using answers = std::map<question, answer>;

// Asks the file system. What identifies a machine, a user or one piece of hardware is cut from the
// text before anybody sees it: see identity.hpp.
class file_source {
public:
  // An empty root is the machine's own.
  explicit file_source(const std::filesystem::path& root);
  [[nodiscard]] answer ask(const question& what) const;

private:
  [[nodiscard]] answer real_path(std::string_view path) const;
  [[nodiscard]] answer content_of(const std::string& path) const;
  [[nodiscard]] answer names_in(const std::string& path) const;

  std::string root_;
};

// Answers that are at hand, and those of a source for all else. Not to be used by several threads.
class machine_files {
public:
  // Hears of each question that the source is asked: before (without the answer) and after.
  using listener = std::function<void(const question&, const answer*)>;

  explicit machine_files(answers known) : known_(std::move(known)) {}
  explicit machine_files(file_source source, answers known = {}, listener hears = {})
      : known_(std::move(known)), source_(std::move(source)), hears_(std::move(hears)) {}

  const answer& ask(const question& what);
  [[nodiscard]] const answers& all() const noexcept { return known_; }

private:
  answers known_;
  std::optional<file_source> source_;
  listener hears_;
};

// What berth adds to the files of a machine, in the same tree, so that captured ones have it too.
namespace added {
constexpr std::string_view environment = "/berth/environment";  // NAME=value, one a line
constexpr std::string_view access = "/berth/access";            // "/dev/kfd yes", one a line
constexpr std::string_view process = "/berth/process";          // "memory_limit 1024", one a line
constexpr std::string_view nvml = "/berth/nvml";                // what NVIDIA's library says
constexpr std::string_view unreadable = "/berth/unreadable";    // PATH, a tab, and why
constexpr std::string_view notes = "/berth/notes";              // what was cut, one a line
}  // namespace added

// The lines of a text, without their ends; empty ones too.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace berth::topology
