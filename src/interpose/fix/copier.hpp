// SPDX-License-Identifier: Apache-2.0
// The copy engines of one runtime, for calls of a program that knows nothing of them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "berth/copy_engine.hpp"
#include "interpose/fix/interface.hpp"
#include "interpose/fix/pinned_pool.hpp"
#include "memory/context_state.hpp"
#include "runtime/driver.hpp"
#include "transfer/engine_state.hpp"

namespace berth::interpose::fix {

// CUDA only: berth's engines live in the devices' primary contexts, and so must the call.
class primary_contexts {
public:
  // Of an open libcuda, which stays open. Null calls: every context is foreign.
  explicit primary_contexts(void* library);
  // Whether the calling thread's context is the primary one of its device.
  [[nodiscard]] bool is_current();

private:
  static constexpr std::size_t most_devices = 64;

  [[nodiscard]] void* primary_of(int device);

  int (*get_current_)(void** context) = nullptr;
  int (*get_device_)(int* device) = nullptr;
  int (*get_state_)(int device, unsigned* flags, int* active) = nullptr;
  int (*retain_)(void** context, int device) = nullptr;
  std::array<std::atomic<void*>, most_devices> known_{};
};

class copier {
public:
  // Null where the runtime cannot be used. `library`: the file that the program's calls go to.
  [[nodiscard]] static std::unique_ptr<copier> open(runtime of, const char* library);

  [[nodiscard]] const std::string& library() const noexcept { return library_; }
  // Blocks as the call would. Pre: this process has opened it.
  [[nodiscard]] outcome copy(const request& what);
  // A step of the program's page-locked memory (see pinned_step).
  [[nodiscard]] bool handle_pinned(pinned_request& what);
  // Gives back the rings that no copy uses. Blocks for work of the device; nothing where there are
  // several.
  void give_back() noexcept;
  // Waits for copies under way and ends the engines; later calls must not come.
  void end() noexcept;

private:
  copier(std::string library, std::shared_ptr<berth::runtime::driver> gpu);

  [[nodiscard]] transfer::engine_state* engine_of(int device);
  [[nodiscard]] bool keep_pinned(void* memory, int device);
  void forget_pinned(void* memory);
  bool release_pinned();
  [[nodiscard]] outcome staged(const request& what, transfer::engine_state& engine);
  [[nodiscard]] outcome compared(const request& what, direction way);
  [[nodiscard]] outcome compared_run(const std::byte* host, const std::byte* device, bytes_t bytes,
                                     berth::runtime::stream_handle stream);

  // A buffer for self-checks, of `check_bytes`; used again, for new ones would be fresh pages.
  using check_buffer = std::unique_ptr<std::byte[]>;  // NOLINT: not to be cleared
  [[nodiscard]] check_buffer take_check_buffer();
  void put_back(check_buffer one);

  std::string library_;
  std::shared_ptr<berth::runtime::driver> gpu_;
  std::shared_ptr<memory::context_state> home_;
  calibration profile_;
  std::optional<primary_contexts> contexts_;  // CUDA
  std::mutex making_;
  struct place {
    std::atomic<transfer::engine_state*> known{nullptr};
    std::shared_ptr<transfer::engine_state> owner;  // under making_
  };
  std::vector<place> engines_;       // by device
  std::mutex pooling_;               // nobody calls the GPU under it
  std::optional<pinned_pool> pool_;  // under pooling_; from the first step on
  std::mutex checking_;
  std::vector<check_buffer> check_buffers_;  // under checking_
};

}  // namespace berth::interpose::fix
