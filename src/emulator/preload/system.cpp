// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/system.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

namespace berth::emulator {
namespace {

constexpr int first_own_descriptor = 700;

std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

void* next_symbol(const char* name) noexcept {
  return dlsym(RTLD_NEXT, name);
}

int moved_up(int descriptor) noexcept {
  if (descriptor < 0) {
    return descriptor;
  }
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, first_own_descriptor);
  if (moved < 0) {
    return descriptor;
  }
  syscall(SYS_close, descriptor);
  return moved;
}

std::string read_whole_file(const std::string& path) {
  std::string text;
  const auto file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) {
    return text;
  }
  std::array<char, 4096> part{};
  for (;;) {
    const long got = syscall(SYS_read, file, part.data(), part.size());
    if (got <= 0) {
      break;
    }
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  syscall(SYS_close, file);
  return text;
}

void say(std::string_view text) noexcept {
  std::array<char, 1024> line{};
  constexpr std::string_view prefix = "berth emulator: ";
  const auto length = std::min(text.size(), line.size() - prefix.size() - 1);
  std::memcpy(line.data(), prefix.data(), prefix.size());
  std::memcpy(line.data() + prefix.size(), text.data(), length);
  line[prefix.size() + length] = '\n';
  syscall(SYS_write, STDERR_FILENO, line.data(), prefix.size() + length + 1);
}

void say_once(const std::string& text) {
  struct said {
    std::mutex lock;
    std::set<std::string> texts;
  };
  static auto& before = *new said;  // never destroyed: the engines outlive static objects
  const std::lock_guard hold(before.lock);
  if (before.texts.insert(text).second) {
    say(text);
  }
}

bool copy_safely(void* to, const void* from, std::size_t bytes) noexcept {
  const iovec local{to, bytes};
  iovec remote{};
  std::memcpy(&remote.iov_base, &from, sizeof(from));
  remote.iov_len = bytes;
  const auto copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(bytes)) {
    return true;
  }
  if (copied < 0 && errno != EFAULT) {  // a sandbox without this call: trust the program
    std::memmove(to, from, bytes);
    return true;
  }
  return false;
}

bool read_safely(std::uint64_t address, void* into, std::size_t bytes) noexcept {
  return copy_safely(into, host_pointer<const void>(address), bytes);
}

std::uint64_t boot_time_ns() noexcept {
  return clock_ns(CLOCK_BOOTTIME);
}

std::uint64_t steady_time_ns() noexcept {
  return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace berth::emulator
