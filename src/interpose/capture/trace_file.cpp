// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/trace_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#define ZSTD_STATIC_LINKING_ONLY  // NOLINT(readability-identifier-naming): zstd's
#include <zstd.h>

namespace berth::interpose {
namespace {

using namespace trace::recording;

constexpr int compression_level = 1;
// Blocks are small: a larger window would only cost memory.
constexpr int window_log = 18;
// Programs that close what they have not opened begin at 3.
constexpr int least_descriptor = 200;
constexpr unsigned most_attempts = 1000;

ZSTD_compressionParameters parameters() noexcept {
  auto chosen = ZSTD_getCParams(compression_level, trace_file::most_payload, 0);
  chosen.windowLog = window_log;
  return chosen;
}

std::size_t workspace_bytes() noexcept {
  return (ZSTD_estimateCCtxSize_usingCParams(parameters()) + (std::size_t{64} << 10)) / 4096 * 4096;
}

constexpr std::size_t stored_bytes = trace_file::most_payload + block_header_bytes;

// The same file at a number that programs leave alone, where the limit of descriptors allows it.
int out_of_the_way(int made) noexcept {
  const int high = made < 0 ? -1 : ::fcntl(made, F_DUPFD_CLOEXEC, least_descriptor);
  if (high < 0) {
    return made;
  }
  ::close(made);
  return high;
}

int make_file(const char* path) noexcept {
  return out_of_the_way(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644));
}

}  // namespace

own_memory::own_memory(std::size_t bytes) noexcept {
  void* const got =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got != MAP_FAILED) {
    all_ = {static_cast<std::byte*>(got), bytes};
  }
}

own_memory::~own_memory() {
  if (!all_.empty()) {
    ::munmap(all_.data(), all_.size());
  }
}

trace_file::trace_file() noexcept
    : memory_(most_payload + stored_bytes + workspace_bytes() + 4096) {
  if (!memory_.all().empty()) {
    const auto workspace = memory_.all().last(workspace_bytes());
    auto* const made = ZSTD_initStaticCCtx(workspace.data(), workspace.size());
    if (made != nullptr) {
      ZSTD_CCtx_setParameter(made, ZSTD_c_compressionLevel, compression_level);
      ZSTD_CCtx_setParameter(made, ZSTD_c_windowLog, window_log);
    }
    compressor_ = made;
  }
}

trace_file::~trace_file() {
  close();
}

bool trace_file::create(const settings& how) noexcept {
  if (memory_.all().empty()) {
    return fail(ENOMEM);
  }
  for (unsigned attempt = 0; attempt < most_attempts; ++attempt) {
    if (!expand_path(how, attempt, path_)) {
      return fail(ENAMETOOLONG);
    }
    descriptor_ = make_file(path_.data());
    if (descriptor_ >= 0) {
      break;
    }
    if (errno != EEXIST) {
      return fail(errno);
    }
  }
  struct stat found {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &found) != 0) {
    return fail(EEXIST);
  }
  device_ = found.st_dev;
  inode_ = found.st_ino;
  end_ = 0;
  sequence_ = 0;
  state_ = file_state::open;
  std::array<std::byte, file_header_bytes> header{};
  byte_writer to(header);
  put_file_header(to);
  if (!write_all(to.written())) {
    const int why = errno;
    ::unlink(path_.data());  // not even a header: nobody could read it
    return fail(why);
  }
  return true;
}

byte_writer trace_file::payload() noexcept {
  return byte_writer(memory_.all().empty() ? std::span<std::byte>{}
                                           : memory_.all().first(most_payload));
}

// The stored bytes stand behind room for their header.
std::span<const std::byte> trace_file::compressed(std::span<const std::byte> payload) noexcept {
  const auto room = memory_.all().subspan(most_payload + block_header_bytes, most_payload);
  if (compressor_ == nullptr) {
    return payload;
  }
  const auto size = ZSTD_compress2(static_cast<ZSTD_CCtx*>(compressor_), room.data(), room.size(),
                                   payload.data(), payload.size());
  return ZSTD_isError(size) != 0U || size >= payload.size() ? payload : room.first(size);
}

bool trace_file::write(block_type type, std::span<const std::byte> payload) noexcept {
  if (state_ != file_state::open) {
    return false;
  }
  const auto stored = compressed(payload);
  const bool is_compressed = stored.data() != payload.data();
  std::array<std::byte, block_header_bytes> header{};
  byte_writer to(header);
  put_block_header(to,
                   {.type = type,
                    .encoding = is_compressed ? block_encoding::zstd : block_encoding::plain,
                    .plain_bytes = static_cast<std::uint32_t>(payload.size()),
                    .sequence = sequence_},
                   stored);
  if (!is_still_ours() && !reopen()) {
    return fail(errno);
  }
  const off_t begin = end_;
  if (!write_all(header) || !write_all(stored)) {
    const int why = errno;
    static_cast<void>(::ftruncate(descriptor_, begin));
    end_ = begin;
    put_farewell(why);
    return fail(why);
  }
  ++sequence_;
  return true;
}

// Far smaller than what has not fitted.
void trace_file::put_farewell(int why) noexcept {
  std::array<char, 96> text{};
  std::array<char, 80> words{};
  std::snprintf(text.data(), text.size(), "disk: %s",
                ::strerror_r(why, words.data(), words.size()));
  std::array<std::byte, 256> room{};
  byte_writer pairs(room);
  pairs.put_varint(1);
  pairs.put_string("reason");
  pairs.put_string(text.data());
  std::array<std::byte, block_header_bytes> header{};
  byte_writer to(header);
  put_block_header(to,
                   {.type = block_type::end,
                    .plain_bytes = static_cast<std::uint32_t>(pairs.size()),
                    .sequence = sequence_},
                   pairs.written());
  const off_t begin = end_;
  if (!write_all(header) || !write_all(pairs.written())) {
    static_cast<void>(::ftruncate(descriptor_, begin));
    end_ = begin;
  }
}

void trace_file::close() noexcept {
  if (descriptor_ >= 0 && is_still_ours()) {
    ::close(descriptor_);
  }
  abandon();
}

void trace_file::abandon() noexcept {
  descriptor_ = -1;
  state_ = file_state::closed;
  failure_ = 0;
}

// A daemon closes all descriptors, and may have got ours for a file of its own.
bool trace_file::is_still_ours() const noexcept {
  struct stat found {};
  return ::fstat(descriptor_, &found) == 0 && found.st_dev == device_ && found.st_ino == inode_;
}

bool trace_file::reopen() noexcept {
  descriptor_ = out_of_the_way(::open(path_.data(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (descriptor_ >= 0 && !is_still_ours()) {
    ::close(descriptor_);
    descriptor_ = -1;
    errno = ESTALE;
  }
  return descriptor_ >= 0;
}

bool trace_file::write_all(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      errno = written == 0 ? ENOSPC : errno;
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    end_ += written;
  }
  return true;
}

bool trace_file::fail(int why) noexcept {
  if (descriptor_ >= 0 && is_still_ours()) {
    ::close(descriptor_);
  }
  descriptor_ = -1;
  failure_ = why;
  state_ = file_state::failed;
  return false;
}

}  // namespace berth::interpose
