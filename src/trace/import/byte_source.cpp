// SPDX-License-Identifier: Apache-2.0
#include "trace/import/byte_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

namespace berth::trace {
namespace {

constexpr std::size_t input_size = 1 << 18;
constexpr int gzip_window = 15 + 16;  // zlib's way to ask for gzip framing

struct closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }  // NOLINT: read only
};

std::string reason() {
  return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

struct byte_source::state {
  std::string path;
  std::unique_ptr<std::FILE, closer> file;
  std::uint64_t size = 0;
  std::uint64_t consumed = 0;
  std::vector<char> input;
  std::size_t input_at = 0;
  std::size_t input_end = 0;
  std::vector<char> peeked;  // read, and to be given again
  bool compressed = false;
  bool inside_member = false;  // between a gzip header and its end mark
  bool at_end = false;
  z_stream inflater{};

  state() = default;
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    if (compressed) {
      inflateEnd(&inflater);
    }
  }

  // From the file itself; fewer bytes than there is room for only at its end.
  result<std::size_t> read_file(std::span<char> target) {
    if (!file || target.empty()) {
      return std::size_t{0};
    }
    errno = 0;
    const auto count = std::fread(target.data(), 1, target.size(), file.get());
    consumed += count;
    if (count < target.size() && std::ferror(file.get()) != 0) {
      return error(errc::file_unreadable, reason(), path);
    }
    return count;
  }

  // Makes at least one input byte available unless the file is at its end.
  result<void> refill() {
    if (input_at < input_end) {
      return {};
    }
    auto count = read_file(input);
    if (!count) {
      return count.error();
    }
    input_at = 0;
    input_end = *count;
    return {};
  }

  result<std::size_t> read_new(std::span<char> target) {
    return compressed ? read_gzip(target) : read_plain(target);
  }

  result<std::size_t> read_plain(std::span<char> target) {
    // What open() has read to recognise the format comes first.
    const auto known = std::min(target.size(), input_end - input_at);
    std::copy_n(input.data() + input_at, known, target.data());
    input_at += known;
    auto rest = read_file(target.subspan(known));
    if (!rest) {
      return rest;
    }
    return known + *rest;
  }

  result<std::size_t> read_gzip(std::span<char> target) {
    std::size_t filled = 0;
    while (filled < target.size() && !at_end) {
      if (auto ready = refill(); !ready) {
        return ready.error();
      }
      const bool no_input = input_at == input_end;
      if (no_input && !inside_member) {
        at_end = true;
        break;
      }
      // Also without input: of data that ends early, zlib may still hold some bytes.
      auto part = inflate_some(target.subspan(filled));
      if (!part) {
        return part;
      }
      filled += *part;
      at_end = no_input && *part == 0;
    }
    return filled;
  }

  result<std::size_t> inflate_some(std::span<char> target) {
    inside_member = true;
    // zlib's interface predates const and counts in 32 bits.
    inflater.next_in = reinterpret_cast<Bytef*>(input.data() + input_at);  // NOLINT
    inflater.avail_in = static_cast<uInt>(input_end - input_at);
    inflater.next_out = reinterpret_cast<Bytef*>(target.data());  // NOLINT
    const auto room = static_cast<uInt>(std::min<std::size_t>(target.size(), 1U << 30U));
    inflater.avail_out = room;
    const int status = inflate(&inflater, Z_NO_FLUSH);
    input_at = input_end - inflater.avail_in;
    const std::size_t produced = room - inflater.avail_out;
    if (status == Z_STREAM_END) {
      // A file may hold several members, one behind the other.
      inside_member = false;
      inflateReset2(&inflater, gzip_window);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return error(
          errc::input_compression,
          fmt::format("gzip data is damaged: {}",
                      inflater.msg != nullptr ? inflater.msg : "no reason given"),
          fmt::format("{} at byte {} of the file", path, consumed - (input_end - input_at)),
          "copy or record the file again");
    }
    return produced;
  }
};

byte_source::byte_source(std::unique_ptr<state> opened) : state_(std::move(opened)) {}
byte_source::byte_source(byte_source&&) noexcept = default;
byte_source& byte_source::operator=(byte_source&&) noexcept = default;
byte_source::~byte_source() = default;

result<byte_source> byte_source::open(const std::string& path) {
  auto opened = std::make_unique<state>();
  opened->path = path;
  errno = 0;
  opened->file.reset(std::fopen(path.c_str(), "rb"));
  struct stat status {};
  if (!opened->file || ::fstat(fileno(opened->file.get()), &status) != 0) {
    return error(errc::file_unreadable, reason(), path);
  }
  if (S_ISDIR(status.st_mode)) {
    return error(errc::file_unreadable, "is a directory", path, "name the trace file in it");
  }
  opened->size = static_cast<std::uint64_t>(status.st_size);
  opened->input.resize(input_size);
  if (auto ready = opened->refill(); !ready) {
    return ready.error();
  }
  return start(std::move(opened));
}

result<byte_source> byte_source::from_memory(std::string name, std::vector<char> content) {
  auto opened = std::make_unique<state>();
  opened->path = std::move(name);
  opened->size = content.size();
  opened->consumed = content.size();
  opened->input_end = content.size();
  opened->input = std::move(content);
  return start(std::move(opened));
}

// Recognises compression from the first bytes.
result<byte_source> byte_source::start(std::unique_ptr<state> opened) {
  if (opened->input_end == 0) {
    return error(errc::input_empty, "the file is empty", opened->path);
  }
  constexpr std::array gzip_magic{'\x1f', '\x8b'};
  if (opened->input_end >= gzip_magic.size() &&
      std::equal(gzip_magic.begin(), gzip_magic.end(), opened->input.begin())) {
    if (inflateInit2(&opened->inflater, gzip_window) != Z_OK) {
      return error(errc::internal, "zlib cannot be initialised", opened->path);
    }
    opened->compressed = true;
  }
  return byte_source(std::move(opened));
}

result<std::size_t> byte_source::read(std::span<char> target) {
  auto& again = state_->peeked;
  const auto known = std::min(target.size(), again.size());
  std::copy_n(again.begin(), known, target.begin());
  again.erase(again.begin(), again.begin() + static_cast<std::ptrdiff_t>(known));
  auto rest = state_->read_new(target.subspan(known));
  return rest ? result<std::size_t>(known + *rest) : rest;
}

result<std::string_view> byte_source::peek(std::size_t count) {
  auto& again = state_->peeked;
  if (const auto known = again.size(); known < count) {
    again.resize(count);
    auto more = state_->read_new(std::span(again).subspan(known));
    again.resize(known + (more ? *more : 0));
    if (!more) {
      return more.error();
    }
  }
  return std::string_view(again.data(), std::min(count, again.size()));
}

bool byte_source::ended_early() const noexcept {
  return state_->compressed && state_->at_end && state_->inside_member;
}
const std::string& byte_source::name() const noexcept {
  return state_->path;
}
bool byte_source::is_compressed() const noexcept {
  return state_->compressed;
}
std::uint64_t byte_source::file_bytes_read() const noexcept {
  return state_->consumed;
}
std::uint64_t byte_source::file_bytes() const noexcept {
  return state_->size;
}

}  // namespace berth::trace
