// SPDX-License-Identifier: Apache-2.0
// Holds a mutex of the system's; std::mutex cannot be made anew in the child of a fork.
#pragma once

#include <pthread.h>

namespace berth::interpose {

class locked {
public:
  explicit locked(pthread_mutex_t& what) noexcept : what_(what) { ::pthread_mutex_lock(&what_); }
  ~locked() { ::pthread_mutex_unlock(&what_); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
  locked(locked&&) = delete;
  locked& operator=(locked&&) = delete;

private:
  pthread_mutex_t& what_;
};

}  // namespace berth::interpose
