// SPDX-License-Identifier: Apache-2.0
#include "emulator/rocm_libraries.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "emulator/tried_rocm.hpp"

namespace berth::emulator {
namespace {

namespace fs = std::filesystem;

constexpr std::array<missing_library, 4> rocm_libraries = {{
    {"libhsakmt.so.1", "libhsakmt1"},
    {"libhsa-runtime64.so.1", "libhsa-runtime64-1"},
    {"libamd_comgr.so.2", "libamd-comgr2"},
    {"libamdhip64.so.5", "libamdhip64-5"},
}};

// The first file of this name; empty if there is none.
fs::path found_in(std::span<const std::string> folders, std::string_view file) {
  for (const auto& folder : folders) {
    std::error_code ignored;
    const auto path = fs::path(folder) / file;
    if (fs::exists(path, ignored)) {
      return path;
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  const char* const value = std::getenv("LD_LIBRARY_PATH");  // NOLINT(concurrency-mt-unsafe)
  const std::string list = value != nullptr ? value : "";
  for (std::size_t at = 0; at < list.size();) {
    const auto end = std::min(list.find(':', at), list.size());
    folders.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  for (const auto* const usual : {"/opt/rocm/lib", "/opt/rocm/lib64", "/usr/lib/x86_64-linux-gnu",
                                  "/usr/lib64", "/usr/lib", "/usr/local/lib"}) {
    folders.emplace_back(usual);
  }
  return folders;
}

std::vector<missing_library> missing_rocm_libraries(std::span<const std::string> folders) {
  std::vector<missing_library> missing;
  std::copy_if(rocm_libraries.begin(), rocm_libraries.end(), std::back_inserter(missing),
               [&](const auto& library) { return found_in(folders, library.file).empty(); });
  return missing;
}

std::string described(std::span<const missing_library> missing) {
  std::string text;
  for (const auto& [file, package] : missing) {
    text += fmt::format("{}{} (Debian package {})", text.empty() ? "" : ", ", file, package);
  }
  return text;
}

std::string untried_hsa_runtime(std::span<const std::string> folders) {
  const auto path = found_in(folders, fmt::format("{}.1", hsa_runtime_stem));
  std::error_code ignored;
  const auto file = path.empty() ? "" : fs::canonical(path, ignored).filename().string();
  return is_tried(file) ? "" : file;
}

}  // namespace berth::emulator
