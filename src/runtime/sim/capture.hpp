// SPDX-License-Identifier: Apache-2.0
// Graph capture, as far as it decides what other calls may do. Nothing of a graph is kept but the
// number of its operations.
#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "berth/runtime/values.hpp"

namespace berth::runtime::sim {

// One capture, of one or more streams.
struct capture_group {
  capture_mode mode = capture_mode::global;
  std::thread::id begun_by;
  capture_status status = capture_status::active;
  std::size_t operations = 0;
};

class captures {
public:
  std::shared_ptr<capture_group> begin(capture_mode mode);
  void end(const std::shared_ptr<capture_group>& which);

  // Whether a call that could disturb a capture is refused to the calling thread. If so, the
  // captures concerned are invalidated.
  [[nodiscard]] bool refuse(capture_mode of_thread);

private:
  std::vector<std::shared_ptr<capture_group>> active_;
};

}  // namespace berth::runtime::sim
