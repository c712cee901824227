// SPDX-License-Identifier: Apache-2.0
// The files of one recorded run: where they may be made, and which they are afterwards.
//
// The recorder fills in a pattern for each process (%p process, %h host, %r rank, %% percent).
// Where that file exists already, it puts the process' number before the last extension, and a
// counter behind that.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"

namespace berth::interpose {

// Could the recorder have named a file so?
[[nodiscard]] bool matches_pattern(std::string_view name, std::string_view pattern);

class recording_files {
public:
  // `where`: a pattern, or a folder, in which files then are named after `program` and the process.
  // A recording that has the pattern's own name already is removed: it is to be replaced.
  // @errors file_unwritable: no such folder, no right to write, or a file that is no recording;
  //         usage: a folder whose name has a %
  [[nodiscard]] static result<recording_files> prepare(std::string_view where,
                                                       std::string_view program);

  // Absolute, so that it means the same in whatever folder the program works.
  [[nodiscard]] std::string pattern() const { return (folder_ / name_).string(); }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  // Removes an earlier recording of the name. The last thing before the program starts.
  // @errors file_unwritable
  [[nodiscard]] result<void> make_room();
  // Those that were made since, by name.
  [[nodiscard]] std::vector<std::string> made() const;

private:
  recording_files(std::filesystem::path folder, std::string name);
  [[nodiscard]] std::set<std::string> matching() const;

  std::filesystem::path folder_;
  std::string name_;
  std::set<std::string> before_;
};

}  // namespace berth::interpose
