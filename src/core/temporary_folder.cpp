// SPDX-License-Identifier: Apache-2.0
#include "core/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "core/program.hpp"

namespace berth {

namespace fs = std::filesystem;

result<temporary_folder> temporary_folder::create(std::string_view purpose) {
  const auto place = program::environment("TMPDIR");
  auto pattern = fmt::format("{}/berth-{}-XXXXXX", place.empty() ? "/tmp" : place, purpose);
  if (::mkdtemp(pattern.data()) == nullptr) {
    return error(errc::file_unwritable, std::generic_category().message(errno), pattern,
                 "the folder of temporary files (TMPDIR) must be writable");
  }
  std::error_code ignored;
  return temporary_folder(fs::absolute(pattern, ignored));
}

void temporary_folder::remove() noexcept {
  if (!path_.empty()) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    path_.clear();
  }
}

}  // namespace berth
