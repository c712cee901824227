// SPDX-License-Identifier: Apache-2.0
#include "bandwidth/measure.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "bandwidth/host_buffer.hpp"
#include "runtime/kernels.hpp"

namespace berth::bandwidth {
namespace {

using machine::bandwidth_figure;
using machine::timed_by;
using machine::trait;
using runtime::capability;
using runtime::driver;
using runtime::event_handle;
using runtime::stream_handle;
using nanoseconds = std::chrono::nanoseconds;

// A gate's copies take about so long at the rate of a fast link, and are so many at most: enough to
// hide the clock's grain, few enough that no runtime waits for room to queue them.
constexpr bytes_t bytes_in_gate = 64 * mib;
constexpr unsigned most_in_gate = 16;
constexpr std::chrono::seconds longest_gate{5};
constexpr bytes_t checked_at_once = 32 * mib;
constexpr std::byte stale{0x5A};

bool is_blocking(const machine::path& of) {
  return of.host == memory_kind::pageable;
}

// A stream with the two events around its copies.
class timed_stream {
public:
  static result<timed_stream> make(driver& gpu, int device) {
    timed_stream made(gpu);
    const auto stream = gpu.create_stream(device, {});
    if (!stream) {
      return stream.error();
    }
    made.stream_ = *stream;
    for (auto& one : made.events_) {
      const auto event = gpu.create_event(device, {.timing = runtime::event_timing::enabled});
      if (!event) {
        return event.error();
      }
      one = *event;
    }
    return made;
  }
  timed_stream(timed_stream&& other) noexcept
      : gpu_(std::exchange(other.gpu_, nullptr)), stream_(other.stream_), events_(other.events_) {}
  timed_stream(const timed_stream&) = delete;
  timed_stream& operator=(const timed_stream&) = delete;
  timed_stream& operator=(timed_stream&&) = delete;
  ~timed_stream() {
    if (gpu_ == nullptr) {
      return;
    }
    for (const auto one : events_) {
      if (one.bits != 0) {
        static_cast<void>(gpu_->destroy_event(one));
      }
    }
    if (stream_.bits != 0) {
      static_cast<void>(gpu_->destroy_stream(stream_));
    }
  }

  [[nodiscard]] stream_handle stream() const noexcept { return stream_; }
  [[nodiscard]] event_handle begin() const noexcept { return events_[0]; }
  [[nodiscard]] event_handle end() const noexcept { return events_[1]; }

private:
  explicit timed_stream(driver& gpu) noexcept : gpu_(&gpu) {}

  driver* gpu_;
  stream_handle stream_{};
  std::array<event_handle, 2> events_{};
};

// One direction of what is measured.
struct lane {
  machine::path where;
  owned_memory host;    // empty for copies within the device
  owned_memory device;  // the end on the device
  owned_memory second;  // the other, within it
  void* dst = nullptr;
  const void* src = nullptr;
  std::uint64_t seed = 0;
};

result<void> set_ends(lane& one, driver& gpu, int device, bytes_t bytes) {
  auto on_device = make_device_memory(gpu, device, bytes);
  if (!on_device) {
    return on_device.error();
  }
  one.device = std::move(*on_device);
  const bool within = one.where.way == direction::device_to_device;
  auto other = within ? make_device_memory(gpu, device, bytes)
                      : make_host_memory(gpu, device, one.where, bytes);
  if (!other) {
    return other.error();
  }
  (within ? one.second : one.host) = std::move(*other);
  std::byte* const beside = within ? one.second.data() : one.host.data();
  const bool up = one.where.way == direction::host_to_device;
  one.dst = up ? one.device.data() : beside;
  one.src = up ? beside : one.device.data();
  return {};
}

// --- Contents -----------------------------------------------------------------------------------

// Page-locked memory between the host and what it cannot reach.
class checker {
public:
  static result<checker> make(driver& gpu, int device, bytes_t bytes) {
    const machine::path pinned{.host = memory_kind::pinned};
    checker made(gpu, std::min(bytes, checked_at_once));
    auto memory = make_host_memory(gpu, device, pinned, made.room_);
    if (!memory) {
      return memory.error();
    }
    made.between_ = std::move(*memory);
    return made;
  }

  // The source gets its pattern, the destination something else.
  result<void> prepare(const lane& one, bytes_t bytes) {
    for (bytes_t done = 0; done < bytes; done += room_) {
      const auto part = std::min(room_, bytes - done);
      runtime::write_pattern(between_.data(), part, one.seed, done);
      if (auto sent = put(one.src, done, part); !sent) {
        return sent;
      }
      std::memset(between_.data(), static_cast<int>(stale), part);
      if (auto sent =
              one.where.traits.has(trait::fresh_pages) ? result<void>() : put(one.dst, done, part);
          !sent) {
        return sent;
      }
    }
    return {};
  }

  // @errors transfer_wrong_data
  result<void> compare(const lane& one, bytes_t bytes) {
    for (bytes_t done = 0; done < bytes; done += room_) {
      const auto part = std::min(room_, bytes - done);
      const auto* const from = static_cast<const std::byte*>(one.dst) + done;
      if (auto got = gpu_->copy(between_.data(), from, part); !got) {
        return got;
      }
      const auto wrong = runtime::count_mismatches(between_.data(), part, one.seed, done);
      if (wrong > 0) {
        return found_wrong(one, done, part, wrong);
      }
    }
    return {};
  }

private:
  checker(driver& gpu, bytes_t room) noexcept : gpu_(&gpu), room_(room) {}

  result<void> put(const void* where, bytes_t offset, bytes_t bytes) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): our own buffer
    auto* const to = static_cast<std::byte*>(const_cast<void*>(where)) + offset;
    return gpu_->copy(to, between_.data(), bytes);
  }

  [[nodiscard]] error found_wrong(const lane& one, bytes_t offset, bytes_t bytes,
                                  std::uint64_t count) const {
    bytes_t first = 0;
    while (first + 1 < bytes &&
           runtime::count_mismatches(between_.data() + first, 1, one.seed, offset + first) == 0) {
      ++first;
    }
    return error(
        errc::transfer_wrong_data,
        fmt::format("{} bytes arrived wrong, the first at offset {} (address {})", count,
                    offset + first,
                    fmt::ptr(static_cast<const std::byte*>(one.dst) + offset + first)),
        machine::to_string(one.where),
        "run it again; if it comes again, memory, link or driver of this machine is faulty");
  }

  driver* gpu_;
  bytes_t room_;
  owned_memory between_;
};

// --- Times --------------------------------------------------------------------------------------

class meter {
public:
  meter(driver& gpu, const planned& what, const method& how) noexcept
      : gpu_(gpu), what_(what), how_(how) {}

  result<std::vector<bandwidth_figure>> run();

private:
  [[nodiscard]] unsigned in_gate() const noexcept {
    return static_cast<unsigned>(std::clamp<bytes_t>(bytes_in_gate / what_.bytes, 1, most_in_gate));
  }
  [[nodiscard]] bandwidth_figure figure_of(const machine::path& where) const {
    return {.device = what_.device,
            .where = where,
            .bytes = what_.bytes,
            .clock = is_blocking(where) ? timed_by::host_clock : timed_by::device_events};
  }
  [[nodiscard]] std::vector<machine::path> paths() const;
  [[nodiscard]] result<void> time_all(std::vector<lane>& lanes, checker& check);
  [[nodiscard]] result<void> time_calls(lane& one, checker& check);
  [[nodiscard]] result<void> time_queued(const std::vector<lane>& lanes, checker& check);
  [[nodiscard]] result<void> compare_all(const std::vector<lane>& lanes, checker& check) const;
  [[nodiscard]] result<void> pass_gate(const std::vector<lane>& lanes,
                                       const std::vector<timed_stream>& streams,
                                       std::atomic_ref<std::uint32_t>& word, const void* seen);
  [[nodiscard]] result<void> queue(const lane& one, stream_handle on);
  [[nodiscard]] result<void> note_overlap(const std::vector<timed_stream>& streams);

  driver& gpu_;
  const planned& what_;
  const method& how_;
  std::vector<std::vector<double>> samples_;  // ns of one copy, by lane
  std::vector<double> overlaps_;
};

std::vector<machine::path> meter::paths() const {
  auto first = what_.what.where;
  if (what_.what.at_once == directions::one) {
    return {first};
  }
  auto second = first;
  second.way = direction::device_to_host;
  return {first, second};
}

result<void> meter::queue(const lane& one, stream_handle on) {
  if (one.where.by != engine::kernel) {
    return gpu_.copy_async(one.dst, one.src, what_.bytes, on);
  }
  const auto from = gpu_.device_address(one.host.data());
  if (!from) {
    return from.error();
  }
  const bool up = one.where.way == direction::host_to_device;
  return gpu_.launch(
      runtime::kernel_copy{
          .dst = up ? one.dst : *from, .src = up ? *from : one.src, .bytes = what_.bytes},
      on);
}

result<void> meter::pass_gate(const std::vector<lane>& lanes,
                              const std::vector<timed_stream>& streams,
                              std::atomic_ref<std::uint32_t>& word, const void* seen) {
  word.store(0);
  const bool has_gate = gpu_.info().capabilities.has(capability::kernels);
  for (const auto& one : streams) {
    if (has_gate) {
      if (auto shut = gpu_.launch(
              runtime::kernel_spin{.release = static_cast<const volatile std::uint32_t*>(seen),
                                   .at_most = longest_gate},
              one.stream());
          !shut) {
        return shut;
      }
    }
    if (auto marked = gpu_.record_event(one.begin(), one.stream()); !marked) {
      return marked;
    }
  }
  result<void> queued;
  for (unsigned count = 0; count < in_gate() && queued; ++count) {
    for (std::size_t index = 0; index < lanes.size() && queued; ++index) {
      queued = queue(lanes[index], streams[index].stream());
    }
  }
  for (const auto& one : streams) {
    if (queued) {
      queued = gpu_.record_event(one.end(), one.stream());
    }
  }
  word.store(1);  // whatever has failed: nothing may stand still
  for (const auto& one : streams) {
    if (auto done = gpu_.synchronize_stream(one.stream()); !done && queued) {
      queued = done;
    }
  }
  return queued;
}

// Of two: both begin behind one gate.
result<void> meter::note_overlap(const std::vector<timed_stream>& streams) {
  if (streams.size() < 2) {
    return {};
  }
  std::array<nanoseconds, 3> after_first_begin{};
  const std::array events{streams[0].end(), streams[1].begin(), streams[1].end()};
  for (std::size_t index = 0; index < events.size(); ++index) {
    const auto time = gpu_.elapsed(streams[0].begin(), events[index]);
    if (!time) {
      return time.error();
    }
    after_first_begin[index] = *time;
  }
  const auto [first_end, second_begin, second_end] = after_first_begin;
  const auto both = std::min(first_end, second_end) - std::max(nanoseconds(0), second_begin);
  const auto either = std::max(first_end, second_end) - std::min(nanoseconds(0), second_begin);
  if (either.count() > 0) {
    overlaps_.push_back(std::max(0.0, static_cast<double>(both.count())) /
                        static_cast<double>(either.count()));
  }
  return {};
}

// After each sample: a later copy would cover what an earlier one has spoilt.
result<void> meter::compare_all(const std::vector<lane>& lanes, checker& check) const {
  for (const auto& one : lanes) {
    if (auto same = check.compare(one, what_.bytes); !same) {
      return same;
    }
  }
  return {};
}

result<void> meter::time_queued(const std::vector<lane>& lanes, checker& check) {
  const machine::path pinned{.host = memory_kind::pinned};
  auto gate = make_host_memory(gpu_, what_.device, pinned, 4096);
  if (!gate) {
    return gate.error();
  }
  const auto seen = gpu_.device_address(gate->data());
  if (!seen) {
    return seen.error();
  }
  std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(gate->data()));
  std::vector<timed_stream> streams;
  for (std::size_t index = 0; index < lanes.size(); ++index) {
    auto made = timed_stream::make(gpu_, what_.device);
    if (!made) {
      return made.error();
    }
    streams.push_back(std::move(*made));
  }
  for (unsigned sample = 0; sample < how_.warm_up + how_.samples; ++sample) {
    if (auto passed = pass_gate(lanes, streams, word, *seen); !passed) {
      return passed;
    }
    if (auto same = compare_all(lanes, check); !same) {
      return same;
    }
    if (sample < how_.warm_up) {
      continue;
    }
    for (std::size_t index = 0; index < lanes.size(); ++index) {
      const auto time = gpu_.elapsed(streams[index].begin(), streams[index].end());
      if (!time) {
        return time.error();
      }
      samples_[index].push_back(static_cast<double>(time->count()) / in_gate());
    }
    if (auto noted = note_overlap(streams); !noted) {
      return noted;
    }
  }
  return {};
}

// New pages for each sample where they are to be fresh.
result<void> meter::time_calls(lane& one, checker& check) {
  const bool fresh = one.where.traits.has(trait::fresh_pages);
  for (unsigned sample = 0; sample < how_.warm_up + how_.samples; ++sample) {
    if (fresh) {
      auto pages = make_host_memory(gpu_, what_.device, one.where, what_.bytes);
      if (!pages) {
        return pages.error();
      }
      one.host = std::move(*pages);
      one.dst = one.host.data();
    }
    const auto begin = gpu_.now();
    if (auto copied = gpu_.copy(one.dst, one.src, what_.bytes); !copied) {
      return copied;
    }
    const auto took = gpu_.now() - begin;
    if (auto same = check.compare(one, what_.bytes); !same) {
      return same;
    }
    if (sample >= how_.warm_up) {
      samples_.front().push_back(static_cast<double>(took.count()));
    }
  }
  return {};
}

result<void> meter::time_all(std::vector<lane>& lanes, checker& check) {
  return is_blocking(lanes.front().where) ? time_calls(lanes.front(), check)
                                          : time_queued(lanes, check);
}

// A refusal is an answer, unless what was refused is lost with it.
bool is_answer(const error& why) {
  return why.scope() == error_scope::call && why.code() != errc::transfer_wrong_data;
}

result<std::vector<bandwidth_figure>> meter::run() {
  std::vector<bandwidth_figure> figures;
  std::vector<lane> lanes;
  for (const auto& where : paths()) {
    figures.push_back(figure_of(where));
    lane made;
    made.where = where;
    made.seed = what_.bytes * 2 + lanes.size() + 1;
    lanes.push_back(std::move(made));
  }
  samples_.resize(lanes.size());
  const auto done = [&]() -> result<void> {
    const auto current = runtime::scoped_device::make(gpu_, what_.device);
    if (!current) {
      return current.error();
    }
    auto check = checker::make(gpu_, what_.device, what_.bytes);
    if (!check) {
      return check.error();
    }
    for (auto& one : lanes) {
      if (auto set = set_ends(one, gpu_, what_.device, what_.bytes); !set) {
        return set;
      }
      if (auto prepared = check->prepare(one, what_.bytes); !prepared) {
        return prepared;
      }
    }
    return time_all(lanes, *check);
  }();
  if (!done && !is_answer(done.error())) {
    return done.error();
  }
  for (std::size_t index = 0; index < figures.size(); ++index) {
    if (done) {
      figures[index].ns = statistics::summarise(samples_[index]);
      figures[index].overlap = statistics::median(overlaps_);
    } else {
      figures[index].why_not = done.error().to_string();
    }
  }
  return figures;
}

}  // namespace

result<std::vector<bandwidth_figure>> measure(driver& gpu, const planned& what, const method& how) {
  const bool needs_kernels = what.what.where.by == engine::kernel;
  if (needs_kernels && !gpu.info().capabilities.has(capability::kernels)) {
    bandwidth_figure none{.device = what.device, .where = what.what.where, .bytes = what.bytes};
    none.why_not = "this runtime runs no kernels of berth's";
    return std::vector{none};
  }
  return meter(gpu, what, how).run();
}

}  // namespace berth::bandwidth
