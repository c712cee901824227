// SPDX-License-Identifier: Apache-2.0
// Times of copies, fills and kernels on NVIDIA GPUs, from CUPTI's activity interface. CUPTI is
// looked for when the program initialises CUDA: the copy that the program has brought, else the
// machine's. There can be one user of it in a process, so when the program begins to use it, as
// torch.profiler does, the recorder stands aside for good.
//
// Our own declarations of its binary interface: of records only the fields at the beginning, which
// are the same in all versions since CUDA 10. A test compares them with CUPTI's headers where they
// are installed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "interpose/capture/recorder.hpp"

namespace berth::interpose {

namespace cupti_abi {

enum class activity : int { copy = 1, fill = 2, kernel = 10, peer_copy = 22, migration = 25 };

struct copy_record {
  int kind;
  std::uint8_t copy_kind;
  std::uint8_t src_kind;
  std::uint8_t dst_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};

struct fill_record {
  int kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};

struct kernel_record {
  int kind;
  std::array<std::byte, 12> launch;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::array<std::byte, 40> shape;
  std::uint32_t correlation;
  std::int64_t grid;
  const char* name;
};

struct migration_record {
  int kind;
  int counter;
  std::uint64_t value;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t address;
  std::uint32_t src_device;
  std::uint32_t dst_device;
  std::uint32_t stream;
};

}  // namespace cupti_abi

// cuptiActivityRegisterCallbacks takes these.
struct buffer_callbacks {
  using request = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
  using complete = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                            std::size_t bytes, std::size_t used);
  request requested = nullptr;
  complete completed = nullptr;
};

// The buffers that CUPTI holds of the recorder's.
class own_buffers {
public:
  // Null where there is no memory, or none may be out.
  [[nodiscard]] std::uint8_t* give() noexcept;
  // False for a buffer that is not one of them.
  [[nodiscard]] bool take_back(const std::uint8_t* buffer) noexcept;

private:
  static constexpr std::size_t most = 64;
  std::array<std::atomic<std::uint8_t*>, most> out_{};
};

// From CUPTI's clock to that of recordings.
struct clock_shift {
  std::uint64_t ns = 0;  // modulo 2^64
  [[nodiscard]] std::uint64_t operator()(std::uint64_t time) const noexcept { return time + ns; }
};

class cupti_source final : public device_source {
public:
  explicit cupti_source(recorder& to) noexcept : to_(to) {}

  // Finds CUPTI and enables it. What fails leaves the times unknown, with the reason in state().
  void begin() noexcept;
  void deliver() noexcept override;
  [[nodiscard]] const char* state() const noexcept override { return state_.load(); }
  // The program is about to use CUPTI itself.
  void stand_aside() noexcept;
  // The program's callbacks for buffers; what CUPTI is to be given in their place. CUPTI may still
  // hold buffers of the recorder's, with records that the program has asked for: those reach it in
  // buffers of its own.
  void adopt(buffer_callbacks& callbacks) noexcept;
  // The process ends: what is unfinished comes as it is.
  void end() noexcept;

private:
  // Its calls; null where it lacks one.
  struct calls {
    int (*register_callbacks)(void*, void*);
    int (*timestamp)(std::uint64_t*);
    int (*enable)(int);
    int (*disable)(int);
    int (*flush_all)(std::uint32_t);
    int (*next_record)(std::uint8_t*, std::size_t, std::uint8_t**);
    int (*count_dropped)(void*, std::uint32_t, std::size_t*);
    int (*configure_migrations)(void*, std::uint32_t);
  };

  [[nodiscard]] bool load() noexcept;
  [[nodiscard]] bool enable() const noexcept;
  void disable() const noexcept;
  // Buffers may come from several threads at a time.
  void take(std::uint8_t* buffer, std::size_t bytes) noexcept;
  void take(const cupti_abi::copy_record& from, clock_shift shift) noexcept;
  void take(const cupti_abi::fill_record& from, clock_shift shift) noexcept;
  void take(const cupti_abi::kernel_record& from, clock_shift shift) noexcept;
  void take(const cupti_abi::migration_record& from, clock_shift shift) noexcept;

  [[nodiscard]] std::optional<clock_shift> find_clock_shift() const noexcept;

  static void give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
  static void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t bytes, std::size_t used);
  static void pass_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t bytes, std::size_t used);
  void hand_over(void* context, std::uint32_t stream, std::uint8_t* records,
                 std::size_t used) noexcept;

  recorder& to_;
  calls calls_{};
  own_buffers buffers_;
  std::atomic<bool> active_{false};
  std::atomic<buffer_callbacks::request> program_requested_{nullptr};
  std::atomic<buffer_callbacks::complete> program_completed_{nullptr};
  std::atomic<const char*> state_{"none: CUDA was not initialised"};
};

}  // namespace berth::interpose
