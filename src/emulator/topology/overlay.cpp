// SPDX-License-Identifier: Apache-2.0
#include "emulator/topology/overlay.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace berth::emulator {
namespace {

namespace fs = std::filesystem;

// TMPDIR where it is set. Else memory: a node of eight devices has 800 files, which take longer to
// make and to remove on a disk than rocminfo takes to run.
std::vector<fs::path> places_for_folders() {
  const char* const chosen = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  if (chosen != nullptr && *chosen != '\0') {
    return {chosen};
  }
  return {"/dev/shm", "/tmp"};
}

[[noreturn]] void fail(const fs::path& path) {
  throw_error(error(errc::file_unwritable, std::strerror(errno),  // NOLINT(concurrency-mt-unsafe)
                    path.string(), "the folder of temporary files (TMPDIR) must be writable"));
}

}  // namespace

result<overlay_folder> overlay_folder::create() {
  std::string pattern;
  for (const auto& place : places_for_folders()) {
    pattern = (place / "berth-emulator-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) {
      return overlay_folder(pattern);
    }
  }
  return error(errc::file_unwritable, std::strerror(errno),  // NOLINT(concurrency-mt-unsafe)
               pattern, "the folder of temporary files (TMPDIR) must be writable");
}

overlay_folder::~overlay_folder() {
  if (root_.empty()) {
    return;
  }
  // Also what AMD's user space leaves in shared memory: the preloaded library has put our name
  // in front.
  const auto name = root_.filename().string();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored)) {
    if (entry.path().filename().string().find(name) != std::string::npos) {
      std::error_code not_removed;
      fs::remove(entry.path(), not_removed);
    }
  }
  fs::remove_all(root_, ignored);
}

fs::path file_writer::place(std::string_view path) const {
  auto at = root_;
  at += path;
  std::error_code failed;
  fs::create_directories(at.parent_path(), failed);
  return at;
}

void file_writer::write(std::string_view path, std::string_view text) const {
  const auto at = place(path);
  std::ofstream file(at, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) {
    fail(at);
  }
}

void file_writer::make_folder(std::string_view path) const {
  std::error_code failed;
  const auto at = place(path);
  fs::create_directories(at, failed);
  if (failed) {
    errno = failed.value();
    fail(at);
  }
}

void file_writer::link(std::string_view path, std::string_view target) const {
  auto inside = root_;
  inside += target;
  link_real(path, inside.string());
}

void file_writer::link_real(std::string_view path, std::string_view target) const {
  std::error_code failed;
  const auto at = place(path);
  fs::create_symlink(target, at, failed);
  if (failed) {
    errno = failed.value();
    fail(at);
  }
}

result<void> write_overlay(const overlay_folder& into, const machine_plan& plan,
                           const machine_spec& spec) {
  const file_writer files(into.root());
  try {
    write_kfd_files(files, plan);
    write_device_files(files, plan);
    if (plan.numa == numa_nodes::invented) {
      write_numa_files(files, plan);
    }
    files.write(fmt::format("/{}", spec_file_name), write_spec(spec));
  } catch (const exception& failed) {
    return failed.details();
  }
  return {};
}

}  // namespace berth::emulator
