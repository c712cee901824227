// SPDX-License-Identifier: Apache-2.0
// The files of an emulated machine: what the kernel driver and the PCI bus would show below /sys,
// /proc and /dev, as a folder that the preloaded library puts over the real one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "berth/result.hpp"
#include "emulator/machine_spec.hpp"
#include "emulator/topology/plan.hpp"

namespace berth::emulator {

// A private folder that goes with the object.
class overlay_folder {
public:
  // @errors file_unwritable
  [[nodiscard]] static result<overlay_folder> create();
  overlay_folder(overlay_folder&& other) noexcept : root_(std::move(other.root_)) {
    other.root_.clear();
  }
  overlay_folder& operator=(overlay_folder&&) = delete;
  overlay_folder(const overlay_folder&) = delete;
  overlay_folder& operator=(const overlay_folder&) = delete;
  ~overlay_folder();

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

private:
  explicit overlay_folder(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
};

// Writes files below a root; paths are absolute as the program will see them.
// @throws exception (file_unwritable)
class file_writer {
public:
  explicit file_writer(std::filesystem::path root) : root_(std::move(root)) {}

  void write(std::string_view path, std::string_view text) const;
  void make_folder(std::string_view path) const;
  // The link leads to a path of the overlay, so that whoever reads it stays there.
  void link(std::string_view path, std::string_view target) const;
  // The link leads to a path of the real system.
  void link_real(std::string_view path, std::string_view target) const;

private:
  [[nodiscard]] std::filesystem::path place(std::string_view path) const;

  std::filesystem::path root_;
};

// /sys/devices/virtual/kfd and /dev/kfd
void write_kfd_files(const file_writer& files, const machine_plan& plan);
// /sys/devices/pci*, /sys/class/drm, /sys/bus/pci, /dev/dri, /sys/module/amdgpu
void write_device_files(const file_writer& files, const machine_plan& plan);
// /sys/devices/system/node, where the machine's NUMA nodes are not the real ones
void write_numa_files(const file_writer& files, const machine_plan& plan);

// All of them and the spec. @errors file_unwritable
[[nodiscard]] result<void> write_overlay(const overlay_folder& into, const machine_plan& plan,
                                         const machine_spec& spec);

}  // namespace berth::emulator
