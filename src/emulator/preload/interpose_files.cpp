// SPDX-License-Identifier: Apache-2.0
// The calls of libc that look at files: paths below the folders where a driver shows itself lead
// into the overlay folder if the file is there, all else goes its way. This file and its neighbours
// define functions of other libraries on purpose; what they are for stands in docs/emulator.md.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "emulator/preload/process.hpp"
#include "emulator/preload/system.hpp"

#define BERTH_EXPORT extern "C" [[gnu::visibility("default")]]

namespace berth::emulator {
namespace {

constexpr std::array<std::string_view, 4> overlaid = {"/sys/", "/dev/dri", "/dev/kfd",
                                                      "/proc/modules"};

// The path to use instead: in the overlay folder if the file is there. No allocation, because
// these calls are made at any time.
class overlaid_path {
public:
  explicit overlaid_path(const char* path) noexcept : chosen_(path) {
    const auto& root = overlay_root();
    if (root.empty() || path == nullptr || path[0] != '/') {
      return;
    }
    const std::string_view wanted(path);
    bool fits = false;
    for (const auto prefix : overlaid) {
      fits = fits || wanted.starts_with(prefix);
    }
    if (!fits || root.size() + wanted.size() >= buffer_.size()) {
      return;
    }
    std::memcpy(buffer_.data(), root.data(), root.size());
    std::memcpy(buffer_.data() + root.size(), path, wanted.size() + 1);
    if (syscall(SYS_faccessat, AT_FDCWD, buffer_.data(), F_OK) == 0) {
      chosen_ = buffer_.data();
    }
  }
  overlaid_path(const overlaid_path&) = delete;
  overlaid_path& operator=(const overlaid_path&) = delete;
  ~overlaid_path() = default;

  [[nodiscard]] const char* get() const noexcept { return chosen_; }

private:
  const char* chosen_;
  std::array<char, PATH_MAX> buffer_{};
};

constexpr int not_a_device = -2;

// A descriptor for one of the emulated devices, -1 with errno, or not_a_device.
int open_device(const char* path) {
  constexpr std::string_view render = "/dev/dri/renderD";
  if (path == nullptr || overlay_root().empty()) {
    return not_a_device;
  }
  const std::string_view wanted(path);
  const bool is_kfd = wanted == "/dev/kfd";
  if (!is_kfd && !wanted.starts_with(render)) {
    return not_a_device;
  }
  auto* const driver = open_driver();
  if (driver == nullptr) {
    return not_a_device;
  }
  if (is_kfd) {
    return fcntl(driver->kfd_descriptor(), F_DUPFD_CLOEXEC, 3);
  }
  const auto minor = static_cast<std::uint32_t>(std::atoi(path + render.size()));
  for (const auto& gpu : driver->machine().spec.gpus) {
    if (gpu.render_minor == minor) {
      return fcntl(driver->machine().memory.descriptor(), F_DUPFD_CLOEXEC, 3);
    }
  }
  errno = ENOENT;
  return -1;
}

template <typename Open>
int open_with(Open* real, const char* path, int flags, mode_t mode) {
  const int device = open_device(path);
  return device != not_a_device ? device : real(overlaid_path(path).get(), flags, mode);
}

mode_t mode_of(int flags, va_list arguments) {
  constexpr int creates = O_CREAT | O_TMPFILE;
  return (flags & creates) != 0 ? va_arg(arguments, mode_t) : 0;
}

using open_call = int(const char*, int, ...);
using openat_call = int(int, const char*, int, ...);

}  // namespace
}  // namespace berth::emulator

using berth::emulator::next;
using berth::emulator::overlaid_path;

BERTH_EXPORT int open(const char* path, int flags, ...) {
  static auto* const real = next<berth::emulator::open_call>("open");
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = berth::emulator::mode_of(flags, arguments);
  va_end(arguments);
  return berth::emulator::open_with(real, path, flags, mode);
}

BERTH_EXPORT int open64(const char* path, int flags, ...) {
  static auto* const real = next<berth::emulator::open_call>("open64");
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = berth::emulator::mode_of(flags, arguments);
  va_end(arguments);
  return berth::emulator::open_with(real, path, flags, mode);
}

// NOLINTNEXTLINE(readability-identifier-naming,bugprone-*): glibc's name
BERTH_EXPORT int __open_2(const char* path, int flags) {
  static auto* const real = next<berth::emulator::open_call>("open");
  return berth::emulator::open_with(real, path, flags, 0);
}

// NOLINTNEXTLINE(readability-identifier-naming,bugprone-*): glibc's name
BERTH_EXPORT int __open64_2(const char* path, int flags) {
  static auto* const real = next<berth::emulator::open_call>("open64");
  return berth::emulator::open_with(real, path, flags, 0);
}

BERTH_EXPORT int openat(int folder, const char* path, int flags, ...) {
  static auto* const real = next<berth::emulator::openat_call>("openat");
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = berth::emulator::mode_of(flags, arguments);
  va_end(arguments);
  const int device = berth::emulator::open_device(path);
  return device != berth::emulator::not_a_device
             ? device
             : real(folder, overlaid_path(path).get(), flags, mode);
}

BERTH_EXPORT int openat64(int folder, const char* path, int flags, ...) {
  static auto* const real = next<berth::emulator::openat_call>("openat64");
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = berth::emulator::mode_of(flags, arguments);
  va_end(arguments);
  const int device = berth::emulator::open_device(path);
  return device != berth::emulator::not_a_device
             ? device
             : real(folder, overlaid_path(path).get(), flags, mode);
}

BERTH_EXPORT FILE* fopen(const char* path, const char* mode) {
  static auto* const real = next<FILE*(const char*, const char*)>("fopen");
  return real(overlaid_path(path).get(), mode);
}

BERTH_EXPORT FILE* fopen64(const char* path, const char* mode) {
  static auto* const real = next<FILE*(const char*, const char*)>("fopen64");
  return real(overlaid_path(path).get(), mode);
}

BERTH_EXPORT DIR* opendir(const char* path) {
  static auto* const real = next<DIR*(const char*)>("opendir");
  return real(overlaid_path(path).get());
}

BERTH_EXPORT int scandir(const char* path, dirent*** names, int (*filter)(const dirent*),
                         int (*compare)(const dirent**, const dirent**)) {
  static auto* const real = next<int(const char*, dirent***, int (*)(const dirent*),
                                     int (*)(const dirent**, const dirent**))>("scandir");
  return real(overlaid_path(path).get(), names, filter, compare);
}

BERTH_EXPORT int access(const char* path, int mode) {
  static auto* const real = next<int(const char*, int)>("access");
  return real(overlaid_path(path).get(), mode);
}

BERTH_EXPORT int faccessat(int folder, const char* path, int mode, int flags) {
  static auto* const real = next<int(int, const char*, int, int)>("faccessat");
  return real(folder, overlaid_path(path).get(), mode, flags);
}

BERTH_EXPORT int stat(const char* path, struct stat* about) {
  static auto* const real = next<int(const char*, struct stat*)>("stat");
  return real(overlaid_path(path).get(), about);
}

BERTH_EXPORT int stat64(const char* path, struct stat64* about) {
  static auto* const real = next<int(const char*, struct stat64*)>("stat64");
  return real(overlaid_path(path).get(), about);
}

BERTH_EXPORT int lstat(const char* path, struct stat* about) {
  static auto* const real = next<int(const char*, struct stat*)>("lstat");
  return real(overlaid_path(path).get(), about);
}

BERTH_EXPORT int lstat64(const char* path, struct stat64* about) {
  static auto* const real = next<int(const char*, struct stat64*)>("lstat64");
  return real(overlaid_path(path).get(), about);
}

BERTH_EXPORT int fstatat(int folder, const char* path, struct stat* about, int flags) {
  static auto* const real = next<int(int, const char*, struct stat*, int)>("fstatat");
  return real(folder, overlaid_path(path).get(), about, flags);
}

BERTH_EXPORT int fstatat64(int folder, const char* path, struct stat64* about, int flags) {
  static auto* const real = next<int(int, const char*, struct stat64*, int)>("fstatat64");
  return real(folder, overlaid_path(path).get(), about, flags);
}

BERTH_EXPORT int statx(int folder, const char* path, int flags, unsigned mask,
                       struct statx* about) {
  static auto* const real = next<int(int, const char*, int, unsigned, struct statx*)>("statx");
  return real(folder, overlaid_path(path).get(), flags, mask, about);
}

BERTH_EXPORT ssize_t readlink(const char* path, char* into, std::size_t bytes) {
  static auto* const real = next<ssize_t(const char*, char*, std::size_t)>("readlink");
  return real(overlaid_path(path).get(), into, bytes);
}

BERTH_EXPORT ssize_t readlinkat(int folder, const char* path, char* into, std::size_t bytes) {
  static auto* const real = next<ssize_t(int, const char*, char*, std::size_t)>("readlinkat");
  return real(folder, overlaid_path(path).get(), into, bytes);
}

BERTH_EXPORT char* realpath(const char* path, char* into) {
  static auto* const real = next<char*(const char*, char*)>("realpath");
  return real(overlaid_path(path).get(), into);
}
