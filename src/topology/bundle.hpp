// SPDX-License-Identifier: Apache-2.0
// A machine as one file: everything that the reader read, as a tar archive compressed with zstd.
// Its tree is that of the machine, and in /berth what is in no file there:
//   bundle       "berth.bundle/1"
//   environment  NAME=value, one a line
//   access       "/dev/kfd yes": which device nodes the process that looked may open
//   process      "memory_limit 1073741824 SOURCE", "container on SOURCE"
//   nvml         what NVIDIA's library said
//   unreadable   what could not be read there, and why
//   notes        what was cut
// No serial numbers, unique ids, names of hosts or users are in it (identity.hpp).
#pragma once

#include <filesystem>
#include <utility>

#include "berth/result.hpp"
#include "core/temporary_folder.hpp"
#include "topology/live.hpp"

namespace berth::topology {

// Blocks for up to the deadline of the options, and for the writing. An existing file is replaced
// when the new one is complete. @errors file_unwritable
[[nodiscard]] result<void> gather(const live_options& options, const std::filesystem::path& into);

// The files of a bundle in a private folder, which goes with the object.
class opened_bundle {
public:
  explicit opened_bundle(temporary_folder files) : files_(std::move(files)) {}

  // For live_options::root.
  [[nodiscard]] const std::filesystem::path& root() const noexcept { return files_.path(); }

private:
  temporary_folder files_;
};

// @errors file_unreadable; input_unknown_format for what is no bundle; input_malformed for paths
// that lead out of it; input_out_of_range for one that is too large; file_unwritable
[[nodiscard]] result<opened_bundle> open_bundle(const std::filesystem::path& file);

}  // namespace berth::topology
