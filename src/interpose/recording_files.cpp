// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/program.hpp"
#include "trace/recording/layout.hpp"

namespace berth::interpose {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".berth";

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

std::size_t digits_at_begin(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                  text.begin());
}

// Does all of `name` fit the pattern, its % filled in?
bool fits(std::string_view name, std::string_view pattern) {
  while (!pattern.empty() && (pattern.front() != '%' || pattern.size() == 1)) {
    if (name.empty() || name.front() != pattern.front()) {
      return false;
    }
    name.remove_prefix(1);
    pattern.remove_prefix(1);
  }
  if (pattern.empty()) {
    return name.empty();
  }
  const char what = pattern[1];
  const auto rest = pattern.substr(2);
  if (what == '%') {
    return name.starts_with('%') && fits(name.substr(1), rest);
  }
  if (what != 'p' && what != 'h' && what != 'r') {  // stays as it is
    return name.starts_with(pattern.substr(0, 2)) && fits(name.substr(2), rest);
  }
  const auto longest = what == 'p' ? digits_at_begin(name) : name.size();
  for (std::size_t taken = what == 'p' ? 1 : 0; taken <= longest; ++taken) {
    if (fits(name.substr(taken), rest)) {
      return true;
    }
  }
  return false;
}

// Without the ".PID" or ".PID.COUNT" that stands before the extension; empty if there is none.
std::string without_number(std::string_view name, std::string_view suffix) {
  auto stem = name.substr(0, name.size() - suffix.size());
  const auto dot = stem.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == stem.size() ||
      digits_at_begin(stem.substr(dot + 1)) != stem.size() - dot - 1) {
    return {};
  }
  return std::string(stem.substr(0, dot)) + std::string(suffix);
}

error unwritable_place(std::string message, const fs::path& where) {
  return error(errc::file_unwritable, std::move(message), where.string(),
               "name a file in a folder that exists and can be written");
}

std::string last_reason() {
  return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
}

// Whether a recording may have this name. What is no recording is never replaced.
result<void> check_place(const fs::path& file) {
  std::error_code failure;
  const auto status = fs::symlink_status(file, failure);
  if (!fs::exists(status)) {
    return {};
  }
  namespace layout = trace::recording;
  std::string begin(layout::file_magic.size(), '\0');
  std::ifstream opened(file, std::ios::binary);
  opened.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  const bool empty = opened.gcount() == 0 && opened.eof();
  const bool recording =
      opened.good() && std::equal(begin.begin(), begin.end(), layout::file_magic.begin());
  if (!fs::is_regular_file(status) || !(empty || recording)) {
    return error(errc::file_unwritable, "exists already and is no recording", file.string(),
                 "name another file for --record");
  }
  return {};
}

}  // namespace

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (fits(name, pattern)) {
    return true;
  }
  const auto dot = pattern.rfind('.');
  const auto suffix = dot == std::string_view::npos || dot == 0 ? "" : pattern.substr(dot);
  if (!name.ends_with(suffix)) {
    return false;
  }
  const auto shorter = without_number(name, suffix);
  return !shorter.empty() && (fits(shorter, pattern) || [&] {
    const auto shortest = without_number(shorter, suffix);
    return !shortest.empty() && fits(shortest, pattern);
  }());
}

recording_files::recording_files(fs::path folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)), before_(matching()) {}

result<recording_files> recording_files::prepare(std::string_view where, std::string_view program) {
  std::error_code failure;
  auto file = fs::absolute(where, failure);
  if (where.empty() || failure) {
    return error(errc::usage, "the name of the recording is empty", "--record",
                 "--record run.berth");
  }
  if (fs::is_directory(file, failure) || !file.has_filename()) {
    std::string name(program);
    for (auto at = name.find('%'); at != std::string::npos; at = name.find('%', at + 2)) {
      name.insert(at, 1, '%');
    }
    file /= name + "-%p" + std::string(extension);
  }
  const auto folder = file.parent_path();
  if (folder.string().find('%') != std::string::npos) {
    return error(errc::usage, "a folder whose name has a %", folder.string(),
                 "%p, %h and %r can stand in the name of the file only");
  }
  if (!fs::is_directory(folder, failure)) {
    return unwritable_place(
        fs::exists(folder, failure) ? "is no folder" : "there is no such folder", folder);
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return unwritable_place(last_reason(), folder);
  }
  if (const auto free = check_place(file); !free) {
    return free.error();
  }
  return recording_files(fs::canonical(folder, failure), file.filename().string());
}

result<void> recording_files::make_room() {
  std::error_code failure;
  fs::remove(folder_ / name_, failure);
  if (failure) {
    return unwritable_place(failure.message(), folder_ / name_);
  }
  before_.erase(name_);
  return {};
}

std::set<std::string> recording_files::matching() const {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    auto name = entry.path().filename().string();
    if (matches_pattern(name, name_)) {
      names.insert(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> recording_files::made() const {
  std::vector<std::string> files;
  for (const auto& name : matching()) {
    if (!before_.contains(name)) {
      files.push_back((folder_ / name).string());
    }
  }
  return files;
}

}  // namespace berth::interpose
