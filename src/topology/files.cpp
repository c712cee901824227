// SPDX-License-Identifier: Apache-2.0
#include "topology/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>

#include "core/descriptor.hpp"
#include "topology/identity.hpp"

namespace berth::topology {
namespace {

constexpr std::size_t most_bytes = 1U << 20U;
constexpr std::size_t most_names = 8192;
constexpr int most_links = 40;

answer because_of(int reason) {
  if (reason == ENOENT || reason == ENOTDIR || reason == ENODEV || reason == ENXIO) {
    return {};
  }
  return {answer_kind::failed, std::generic_category().message(reason)};
}

std::deque<std::string> parts_of(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") {
      parts.emplace_back(path.substr(0, end));
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::optional<std::string> target_of(const std::string& link) {
  std::array<char, 4096> target{};
  const auto length = ::readlink(link.c_str(), target.data(), target.size());
  if (length <= 0 || static_cast<std::size_t>(length) == target.size()) {
    return std::nullopt;
  }
  return std::string(target.data(), static_cast<std::size_t>(length));
}

// All of a file that is open, or why not.
answer read_all(int file) {
  std::string text;
  std::array<char, 65536> part{};
  while (text.size() < most_bytes) {
    const auto got = ::read(file, part.data(), part.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return because_of(errno);
    }
    if (got == 0) {
      return {answer_kind::text, std::move(text)};
    }
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return {answer_kind::failed, "longer than 1 MiB, which no file of a machine is"};
}

template <typename Each>
void for_each_part(std::string_view text, std::string_view separators, const Each& each) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find_first_of(separators, at), text.size());
    each(text.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

file_source::file_source(const std::filesystem::path& root) : root_(root.string()) {
  while (root_.ends_with('/')) {
    root_.pop_back();
  }
}

answer file_source::real_path(std::string_view path) const {
  auto parts = parts_of(path);
  std::string at;
  std::size_t from_link = 0;  // so many of the parts are what a link said
  for (int links = 0; !parts.empty();) {
    const auto part = std::move(parts.front());
    parts.pop_front();
    const bool of_link = from_link > 0;
    from_link -= of_link ? 1 : 0;
    if (part == "..") {
      at.erase(std::min(at.rfind('/'), at.size()));
      continue;
    }
    auto next = at;
    next.append("/").append(part);
    struct stat about = {};
    if (::lstat((root_ + next).c_str(), &about) != 0) {
      return of_link && errno == ENOENT
                 ? answer{answer_kind::failed, "a link to something that is not there"}
                 : because_of(errno);
    }
    if (!S_ISLNK(about.st_mode)) {
      at = next;
      continue;
    }
    auto target = target_of(root_ + next);
    if (!target || ++links > most_links) {
      return {answer_kind::failed, "a link that leads nowhere"};
    }
    if (target->starts_with('/')) {
      // Also one that names the root itself, as whoever made the folder saw it.
      if (!root_.empty() && target->starts_with(root_ + "/")) {
        target->erase(0, root_.size());
      }
      at.clear();
    }
    const auto more = parts_of(*target);
    from_link += more.size();
    parts.insert(parts.begin(), more.begin(), more.end());
  }
  return {answer_kind::text, at.empty() ? "/" : at};
}

answer file_source::content_of(const std::string& path) const {
  const auto real = real_path(path);
  if (real.kind != answer_kind::text) {
    return real;
  }
  const descriptor file(::open((root_ + real.text).c_str(),
                               O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (file.get() < 0) {
    return because_of(errno);
  }
  struct stat about = {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return {answer_kind::failed, "not a file"};
  }
  auto read = read_all(file.get());
  if (read.kind == answer_kind::text) {
    read.text = without_identity(path, read.text);
  }
  return read;
}

answer file_source::names_in(const std::string& path) const {
  const auto real = real_path(path);
  if (real.kind != answer_kind::text) {
    return real;
  }
  DIR* const folder = ::opendir((root_ + real.text).c_str());
  if (folder == nullptr) {
    return because_of(errno);
  }
  std::vector<std::string> names;
  // Nobody else reads this folder's stream.
  for (const dirent* entry = ::readdir(folder);  // NOLINT(concurrency-mt-unsafe)
       entry != nullptr && names.size() < most_names;
       entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (!name.starts_with('.') && name.find('\n') == std::string_view::npos) {
      names.emplace_back(name);
    }
  }
  ::closedir(folder);
  std::ranges::sort(names);
  std::string text;
  for (const auto& name : names) {
    text += name + "\n";
  }
  return {answer_kind::text, std::move(text)};
}

answer file_source::ask(const question& what) const {
  switch (what.kind) {
    case question_kind::content:
      return content_of(what.path);
    case question_kind::names:
      return names_in(what.path);
    case question_kind::real:
      break;
  }
  return real_path(what.path);
}

const answer& machine_files::ask(const question& what) {
  if (const auto found = known_.find(what); found != known_.end()) {
    return found->second;
  }
  if (!source_) {
    return known_[what];
  }
  if (hears_) {
    hears_(what, nullptr);
  }
  auto said = source_->ask(what);
  if (hears_) {
    hears_(what, &said);
  }
  return known_[what] = std::move(said);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for_each_part(text, "\n", [&](std::string_view line) { lines.push_back(line); });
  return lines;
}

}  // namespace berth::topology
