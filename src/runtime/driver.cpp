// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver.hpp"

namespace berth::runtime {

result<scoped_device> scoped_device::make(driver& on, int device) {
  const auto former = on.current_device();
  if (!former) {
    return former.error();
  }
  if (*former == device) {
    return scoped_device(nullptr, device);
  }
  if (const auto set = on.set_current_device(device); !set) {
    return set.error();
  }
  return scoped_device(&on, *former);
}

scoped_device::~scoped_device() {
  if (on_ != nullptr) {
    // It was current before; a failure now means that the runtime is going down.
    static_cast<void>(on_->set_current_device(former_));
  }
}

}  // namespace berth::runtime
