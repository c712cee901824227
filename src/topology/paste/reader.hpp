// SPDX-License-Identifier: Apache-2.0
// What each family of tools' output has: a reader that takes the lines it understands, and then
// says what they told. The table of all of them is in paste.cpp.
#pragma once

#include <memory>

#include "topology/paste/lines.hpp"
#include "topology/paste/writer.hpp"

namespace berth::topology::paste {

class reader {
public:
  reader() = default;
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;
  virtual ~reader() = default;

  // Takes a line that cannot be another family's, though nothing came before it.
  virtual bool begins(const line& one) = 0;
  // Takes a line after one of this family's.
  virtual bool takes(const line& one) = 0;
  // A prompt or a rule: what comes next may be another piece.
  virtual void breaks() {}
  // Says all that was taken.
  virtual void tells(writer& to) = 0;
};

[[nodiscard]] std::unique_ptr<reader> make_rocminfo_reader();
[[nodiscard]] std::unique_ptr<reader> make_rocm_smi_reader();
[[nodiscard]] std::unique_ptr<reader> make_nvidia_topo_reader();
[[nodiscard]] std::unique_ptr<reader> make_lspci_reader();
[[nodiscard]] std::unique_ptr<reader> make_kfd_reader();
[[nodiscard]] std::unique_ptr<reader> make_lstopo_reader();
[[nodiscard]] std::unique_ptr<reader> make_rccl_xml_reader();
[[nodiscard]] std::unique_ptr<reader> make_amd_smi_reader();
[[nodiscard]] std::unique_ptr<reader> make_nccl_tree_reader();
[[nodiscard]] std::unique_ptr<reader> make_bandwidth_reader();
[[nodiscard]] std::unique_ptr<reader> make_settings_reader();
[[nodiscard]] std::unique_ptr<reader> make_copy_log_reader();
[[nodiscard]] std::unique_ptr<reader> make_told_reader();

}  // namespace berth::topology::paste
