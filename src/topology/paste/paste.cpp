// SPDX-License-Identifier: Apache-2.0
// The table of the families, and which of them a line of pasted text goes to.
#include "topology/paste.hpp"

#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/paste/lines.hpp"
#include "topology/paste/reader.hpp"
#include "topology/paste/writer.hpp"

namespace berth::topology {
namespace {

using paste::line;
using paste::reader;

constexpr std::size_t most_kept_unread = 1000;
constexpr std::size_t most_columns = 200;

struct family {
  std::string_view name;
  std::unique_ptr<reader> (*make)();
};
// In the order in which they speak: those first that know both the position of a GPU and its
// address, so that what has one of the two finds its GPU.
constexpr std::array families = {
    family{"rocminfo", paste::make_rocminfo_reader},
    family{"KFD topology", paste::make_kfd_reader},
    family{"rocm-smi", paste::make_rocm_smi_reader},
    family{"amd-smi topology", paste::make_amd_smi_reader},
    family{"nvidia-smi topo", paste::make_nvidia_topo_reader},
    family{"lspci", paste::make_lspci_reader},
    family{"RCCL topology", paste::make_rccl_xml_reader},
    family{"lstopo", paste::make_lstopo_reader},
    family{"NCCL's tree", paste::make_nccl_tree_reader},
    family{"bandwidth tools", paste::make_bandwidth_reader},
    family{"settings", paste::make_settings_reader},
    family{"ROCm's log", paste::make_copy_log_reader},
    family{"told by hand", paste::make_told_reader},
};

// The readers of one text.
class piece {
public:
  piece(std::string_view name, machine::survey& seen) : name_(name), seen_(&seen) {
    for (std::size_t at = 0; at < families.size(); ++at) {
      readers_[at] = families[at].make();
    }
  }

  void read(std::string_view text) {
    for (const auto& one : paste::lines_of(text)) {
      ++seen_->lines;
      if (one.text.empty()) {
        continue;
      }
      if (paste::is_border(one.text)) {
        breaks();
      }
      if (!give(one) && !paste::is_decoration(one.text) && !paste::is_border(one.text)) {
        keep_unread(one);
      }
    }
  }

  void tells(std::size_t at, paste::writer& to) {
    if (!was_used_[at]) {
      return;
    }
    seen_->sources.push_back(fmt::format("{} ({})", families[at].name, name_));
    to.enter(families[at].name, name_);
    readers_[at]->tells(to);
  }

private:
  bool give(const line& one) {
    if (present_ && readers_[*present_]->takes(one)) {
      return true;
    }
    for (std::size_t at = 0; at < readers_.size(); ++at) {
      if (readers_[at]->begins(one)) {
        present_ = at;
        was_used_[at] = true;
        return true;
      }
    }
    return false;
  }

  void breaks() {
    for (const auto& one : readers_) {
      one->breaks();
    }
  }

  void keep_unread(const line& one) {
    ++seen_->unread_lines;
    if (seen_->unread.size() < most_kept_unread) {
      seen_->unread.push_back({.source = fmt::format("{}, line {}", name_, one.number),
                               .text = text::printable(text::shorten(one.text, most_columns))});
    }
  }

  std::string_view name_;
  machine::survey* seen_;
  std::array<std::unique_ptr<reader>, families.size()> readers_;
  std::array<bool, families.size()> was_used_{};
  std::optional<std::size_t> present_;
};

}  // namespace

machine::survey read_pasted(std::span<const pasted_text> pieces) {
  machine::survey seen;
  seen.kind = machine::survey_kind::pasted;
  std::vector<std::unique_ptr<piece>> read;
  for (const auto& one : pieces) {
    if (paste::is_binary(one.text)) {
      seen.problems.push_back(
          {.source = one.name, .what = "it is binary data, not the text of a tool; left out"});
      continue;
    }
    read.push_back(std::make_unique<piece>(one.name, seen));
    read.back()->read(one.text);
  }
  paste::writer to(seen);
  for (std::size_t at = 0; at < families.size(); ++at) {
    for (const auto& one : read) {
      one->tells(at, to);
    }
  }
  return seen;
}

}  // namespace berth::topology
