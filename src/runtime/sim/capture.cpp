// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/capture.hpp"

#include <algorithm>

namespace berth::runtime::sim {

std::shared_ptr<capture_group> captures::begin(capture_mode mode) {
  auto made = std::make_shared<capture_group>();
  made->mode = mode;
  made->begun_by = std::this_thread::get_id();
  active_.push_back(made);
  return made;
}

void captures::end(const std::shared_ptr<capture_group>& which) {
  active_.erase(std::remove(active_.begin(), active_.end(), which), active_.end());
}

bool captures::refuse(capture_mode of_thread) {
  if (of_thread == capture_mode::relaxed) {
    return false;
  }
  bool refused = false;
  for (const auto& one : active_) {
    const bool own =
        one->begun_by == std::this_thread::get_id() && one->mode != capture_mode::relaxed;
    const bool of_all = of_thread == capture_mode::global && one->mode == capture_mode::global;
    if (own || of_all) {
      one->status = capture_status::invalidated;
      refused = true;
    }
  }
  return refused;
}

}  // namespace berth::runtime::sim
