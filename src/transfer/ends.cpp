// SPDX-License-Identifier: Apache-2.0
#include "transfer/ends.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/page_probe.hpp"

namespace berth::transfer {
namespace {

using runtime::driver;
using runtime::host_work_kind;
using runtime::huge_page;
using runtime::stream_handle;

// So far ahead of what is read now is a mapped file asked for.
constexpr bytes_t read_ahead_distance = 16 * mib;
// Advice to the kernel about the pages of a range; failure changes nothing but speed.
void advise_pages(const std::byte* memory, bytes_t bytes, int advice) noexcept {
  const auto first =
      reinterpret_cast<std::uintptr_t>(memory) / runtime::host_page * runtime::host_page;
  const auto end = reinterpret_cast<std::uintptr_t>(memory) + bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
  static_cast<void>(madvise(reinterpret_cast<void*>(first), end - first, advice));
}

void advise_huge_pages(const std::byte* memory, bytes_t bytes) noexcept {
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) + huge_page - 1) / huge_page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / huge_page;
  if (end > first) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
    auto* const start = reinterpret_cast<void*>(first * huge_page);
    static_cast<void>(madvise(start, (end - first) * huge_page, MADV_HUGEPAGE));
  }
}

class linear_host_side final : public host_side {
public:
  linear_host_side(driver& gpu, std::byte* memory, bytes_t bytes, page_care care, slot_store store)
      : gpu_(gpu), memory_(memory), bytes_(bytes), care_(care), store_(store) {
    if (care_ == page_care::populate) {
      advise_huge_pages(memory_, bytes_);
    }
  }
  result<void> fill(std::span<std::byte> slot, bytes_t offset) override {
    if (care_ == page_care::read_ahead) {
      ask_for(offset, slot.size());
    }
    write_slot(slot.data(), memory_ + offset, slot.size(), store_);
    gpu_.charge({.kind = host_work_kind::copy,
                 .bytes = slot.size(),
                 .src = memory_ + offset,
                 .dst = slot.data()});
    return {};
  }
  result<void> drain(std::span<const std::byte> slot, bytes_t offset) override {
    write_slot(memory_ + offset, slot.data(), slot.size(), store_);
    gpu_.charge({.kind = host_work_kind::copy,
                 .bytes = slot.size(),
                 .src = slot.data(),
                 .dst = memory_ + offset});
    return {};
  }
  // Units are huge pages: threads that make parts of one present wait for each other in the kernel.
  [[nodiscard]] std::uint32_t unit_count() const noexcept override {
    return care_ == page_care::populate ? unit_of(bytes_ - 1) + 1 : 0;
  }
  [[nodiscard]] std::uint32_t unit_of(bytes_t offset) const noexcept override {
    return static_cast<std::uint32_t>((misplaced() + offset) / huge_page);
  }
  void prepare(std::uint32_t unit) noexcept override {
    const bytes_t before = bytes_t{unit} * huge_page;
    const bytes_t first = before > misplaced() ? before - misplaced() : 0;
    const bytes_t end = std::min(bytes_, before + huge_page - misplaced());
    advise_pages(memory_ + first, end - first, runtime::advice_populate_write);
    gpu_.charge({.kind = host_work_kind::fault, .bytes = end - first, .dst = memory_ + first});
  }

private:
  [[nodiscard]] bytes_t misplaced() const noexcept {
    return reinterpret_cast<std::uintptr_t>(memory_) % huge_page;
  }
  // What is in the page cache is not asked for: a look at all its pages would cost more than the
  // faults of the threads that read it (docs/performance.md).
  void ask_for(bytes_t offset, bytes_t bytes) const noexcept {
    const bytes_t ahead = offset + read_ahead_distance;
    if (ahead < bytes_ && !runtime::is_cached(memory_ + ahead)) {
      advise_pages(memory_ + ahead, std::min(bytes, bytes_ - ahead), MADV_WILLNEED);
    }
  }

  driver& gpu_;
  std::byte* memory_;
  bytes_t bytes_;
  page_care care_;
  slot_store store_;
};

// Calls visit(place in the slot, row, place in the row, bytes) for each part of a row.
template <typename Visitor>
void for_each_row(bytes_t offset, bytes_t bytes, std::size_t width, Visitor visit) {
  bytes_t done = 0;
  while (done < bytes) {
    const bytes_t at = offset + done;
    const bytes_t column = at % width;
    const bytes_t part = std::min(bytes - done, width - column);
    visit(done, at / width, column, part);
    done += part;
  }
}

class pitched_host_side final : public host_side {
public:
  pitched_host_side(driver& gpu, std::byte* memory, std::size_t pitch, std::size_t width)
      : gpu_(gpu), memory_(memory), pitch_(pitch), width_(width) {}
  result<void> fill(std::span<std::byte> slot, bytes_t offset) override {
    for_each_row(offset, slot.size(), width_,
                 [&](bytes_t place, bytes_t row, bytes_t column, bytes_t bytes) {
                   write_slot(slot.data() + place, memory_ + row * pitch_ + column, bytes,
                              slot_store::streaming);
                 });
    gpu_.charge({.kind = host_work_kind::copy, .bytes = slot.size(), .dst = slot.data()});
    return {};
  }
  result<void> drain(std::span<const std::byte> slot, bytes_t offset) override {
    for_each_row(offset, slot.size(), width_,
                 [&](bytes_t place, bytes_t row, bytes_t column, bytes_t bytes) {
                   std::memcpy(memory_ + row * pitch_ + column, slot.data() + place, bytes);
                 });
    gpu_.charge({.kind = host_work_kind::copy, .bytes = slot.size(), .src = slot.data()});
    return {};
  }

private:
  driver& gpu_;
  std::byte* memory_;
  std::size_t pitch_;
  std::size_t width_;
};

// What a callback throws, or returns, as the error of the copy.
template <typename Callback>
result<void> guarded(Callback callback, std::string_view what) {
  std::string why;
  try {
    const result<void> done = callback();
    if (done) {
      return {};
    }
    why = done.error().to_string();
  } catch (const std::exception& thrown) {
    why = thrown.what();
  } catch (...) {
    why = "it threw something that is not a std::exception";
  }
  return error(errc::transfer_callback, fmt::format("the {} failed: {}", what, why), "copy engine");
}

class producing_side final : public host_side {
public:
  explicit producing_side(const slot_producer& from) : from_(from) {}
  result<void> fill(std::span<std::byte> slot, bytes_t offset) override {
    return guarded([&] { return from_(slot, offset); }, "producer");
  }
  result<void> drain(std::span<const std::byte> /*slot*/, bytes_t /*offset*/) override {
    return error(errc::internal, "a producer cannot be drained");
  }

private:
  const slot_producer& from_;  // the caller waits until all is filled
};

class consuming_side final : public host_side {
public:
  explicit consuming_side(slot_consumer to) : to_(std::move(to)) {}
  result<void> fill(std::span<std::byte> /*slot*/, bytes_t /*offset*/) override {
    return error(errc::internal, "a consumer cannot fill");
  }
  result<void> drain(std::span<const std::byte> slot, bytes_t offset) override {
    return guarded([&] { return to_(slot, offset); }, "consumer");
  }

private:
  slot_consumer to_;
};

class linear_device_side final : public device_side {
public:
  linear_device_side(driver& gpu, std::byte* memory) : gpu_(gpu), memory_(memory) {}
  result<void> send(const ring_slot& slot, bytes_t offset, stream_handle stream) override {
    return gpu_.copy_async(memory_ + offset, slot.bytes.data(), slot.bytes.size(), stream);
  }
  result<void> fetch(const ring_slot& slot, bytes_t offset, stream_handle stream) override {
    return gpu_.copy_async(slot.bytes.data(), memory_ + offset, slot.bytes.size(), stream);
  }

private:
  driver& gpu_;
  std::byte* memory_;
};

// Pre: blocks are whole rows.
class pitched_device_side final : public device_side {
public:
  pitched_device_side(driver& gpu, std::byte* memory, std::size_t pitch, std::size_t width)
      : gpu_(gpu), memory_(memory), pitch_(pitch), width_(width) {}
  result<void> send(const ring_slot& slot, bytes_t offset, stream_handle stream) override {
    return gpu_.copy_2d_async({.dst = memory_ + offset / width_ * pitch_,
                               .dst_pitch = pitch_,
                               .src = slot.bytes.data(),
                               .src_pitch = width_,
                               .width = width_,
                               .rows = slot.bytes.size() / width_},
                              stream);
  }
  result<void> fetch(const ring_slot& slot, bytes_t offset, stream_handle stream) override {
    return gpu_.copy_2d_async({.dst = slot.bytes.data(),
                               .dst_pitch = width_,
                               .src = memory_ + offset / width_ * pitch_,
                               .src_pitch = pitch_,
                               .width = width_,
                               .rows = slot.bytes.size() / width_},
                              stream);
  }

private:
  driver& gpu_;
  std::byte* memory_;
  std::size_t pitch_;
  std::size_t width_;
};

// Calls visit(place in the part, range, place in the range, bytes) for each range, or part of one,
// of [offset, offset + bytes).
template <typename Visitor>
void for_each_range(const std::vector<packed_range>& ranges, bytes_t offset, bytes_t bytes,
                    Visitor visit) {
  auto at = std::upper_bound(ranges.begin(), ranges.end(), offset,
                             [](bytes_t wanted, const auto& one) { return wanted < one.offset; });
  at = std::prev(at);  // the first range begins at 0
  bytes_t done = 0;
  for (; done < bytes; ++at) {
    const bytes_t inside = offset + done - at->offset;
    const bytes_t part = std::min(bytes - done, at->bytes - inside);
    visit(done, *at, inside, part);
    done += part;
  }
}

class scattered_host_side final : public host_side {
public:
  scattered_host_side(driver& gpu, packed_ranges ranges) : gpu_(gpu), ranges_(std::move(ranges)) {}
  result<void> fill(std::span<std::byte> slot, bytes_t offset) override {
    for_each_range(*ranges_, offset, slot.size(),
                   [&](bytes_t place, const packed_range& one, bytes_t inside, bytes_t bytes) {
                     write_slot(slot.data() + place, one.host + inside, bytes,
                                slot_store::streaming);
                   });
    gpu_.charge({.kind = host_work_kind::copy, .bytes = slot.size(), .dst = slot.data()});
    return {};
  }
  result<void> drain(std::span<const std::byte> slot, bytes_t offset) override {
    for_each_range(*ranges_, offset, slot.size(),
                   [&](bytes_t place, const packed_range& one, bytes_t inside, bytes_t bytes) {
                     std::memcpy(one.host + inside, slot.data() + place, bytes);
                   });
    gpu_.charge({.kind = host_work_kind::copy, .bytes = slot.size(), .src = slot.data()});
    return {};
  }

private:
  driver& gpu_;
  packed_ranges ranges_;
};

// By a kernel that spreads or collects a block; where there are no kernels, by one DMA for each
// range, which is still free of the runtime's own staging.
class scattered_device_side final : public device_side {
public:
  scattered_device_side(driver& gpu, packed_ranges ranges)
      : gpu_(gpu),
        ranges_(std::move(ranges)),
        by_kernel_(gpu.info().capabilities.has(runtime::capability::kernels)) {}

  result<void> send(const ring_slot& slot, bytes_t offset, stream_handle stream) override {
    if (by_kernel_) {
      return launch(slot, offset, runtime::scatter_way::spread, stream);
    }
    return one_by_one(offset, slot.bytes.size(),
                      [&](bytes_t place, std::byte* device, bytes_t bytes) {
                        return gpu_.copy_async(device, slot.bytes.data() + place, bytes, stream);
                      });
  }
  result<void> fetch(const ring_slot& slot, bytes_t offset, stream_handle stream) override {
    if (by_kernel_) {
      return launch(slot, offset, runtime::scatter_way::collect, stream);
    }
    return one_by_one(offset, slot.bytes.size(),
                      [&](bytes_t place, std::byte* device, bytes_t bytes) {
                        return gpu_.copy_async(slot.bytes.data() + place, device, bytes, stream);
                      });
  }
  [[nodiscard]] bytes_t scratch_for(bytes_t offset, bytes_t bytes) const noexcept override {
    bytes_t entries = 0;
    if (by_kernel_) {
      for_each_range(*ranges_, offset, bytes,
                     [&](bytes_t, const packed_range&, bytes_t, bytes_t) { ++entries; });
    }
    return entries * sizeof(runtime::scatter_entry);
  }

private:
  template <typename Copy>
  result<void> one_by_one(bytes_t offset, bytes_t bytes, Copy copy) const {
    result<void> done;
    for_each_range(*ranges_, offset, bytes,
                   [&](bytes_t place, const packed_range& one, bytes_t inside, bytes_t part) {
                     if (done) {
                       done = copy(place, one.device + inside, part);
                     }
                   });
    return done;
  }

  result<void> launch(const ring_slot& slot, bytes_t offset, runtime::scatter_way way,
                      stream_handle stream) const {
    auto* const table = reinterpret_cast<runtime::scatter_entry*>(slot.scratch.data());
    std::uint64_t count = 0;
    for_each_range(*ranges_, offset, slot.bytes.size(),
                   [&](bytes_t place, const packed_range& one, bytes_t inside, bytes_t part) {
                     table[count++] = {
                         .memory = one.device + inside, .place = place, .bytes = part};
                   });
    const auto* const device_table =
        reinterpret_cast<const runtime::scatter_entry*>(slot.device_scratch);
    return gpu_.launch(
        runtime::kernel_scatter{
            .packed = slot.device_bytes, .table = device_table, .entries = count, .way = way},
        stream);
  }

  driver& gpu_;
  packed_ranges ranges_;
  bool by_kernel_;
};

}  // namespace

std::unique_ptr<host_side> linear_host(driver& gpu, std::byte* memory, bytes_t bytes,
                                       page_care care, slot_store store) {
  return std::make_unique<linear_host_side>(gpu, memory, bytes, care, store);
}
std::unique_ptr<host_side> pitched_host(driver& gpu, std::byte* memory, std::size_t pitch,
                                        std::size_t width) {
  return std::make_unique<pitched_host_side>(gpu, memory, pitch, width);
}
std::unique_ptr<host_side> producing_host(const slot_producer& from) {
  return std::make_unique<producing_side>(from);
}
std::unique_ptr<host_side> consuming_host(slot_consumer to) {
  return std::make_unique<consuming_side>(std::move(to));
}
std::unique_ptr<host_side> scattered_host(driver& gpu, packed_ranges ranges) {
  return std::make_unique<scattered_host_side>(gpu, std::move(ranges));
}
std::unique_ptr<device_side> linear_device(driver& gpu, std::byte* memory) {
  return std::make_unique<linear_device_side>(gpu, memory);
}
std::unique_ptr<device_side> pitched_device(driver& gpu, std::byte* memory, std::size_t pitch,
                                            std::size_t width) {
  return std::make_unique<pitched_device_side>(gpu, memory, pitch, width);
}
std::unique_ptr<device_side> scattered_device(driver& gpu, packed_ranges ranges) {
  return std::make_unique<scattered_device_side>(gpu, std::move(ranges));
}

}  // namespace berth::transfer
