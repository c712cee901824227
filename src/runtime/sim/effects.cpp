// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/effects.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace berth::runtime::sim {
namespace {

// Long kernels work in pieces, so that scratch space stays small.
constexpr bytes_t piece_bytes = 4 * mib;

template <typename Visit>
void for_pieces(bytes_t first, bytes_t end, const Visit& visit) {
  for (bytes_t at = first; at < end; at += piece_bytes) {
    visit(at, std::min(piece_bytes, end - at));
  }
}

struct span_of_bytes {
  bytes_t first;
  bytes_t end;
};

// Halves meet at a multiple of 8, as kernels store words.
span_of_bytes piece_of(bytes_t bytes, part which) noexcept {
  const bytes_t middle = bytes / 16 * 8;
  switch (which) {
    case part::first_half:
      return {0, middle};
    case part::second_half:
      return {middle, bytes};
    case part::all:
      break;
  }
  return {0, bytes};
}

void copy_plain(const memory_range& dst, const memory_range& src, span_of_bytes where) {
  std::vector<std::byte> scratch;
  for_pieces(where.first, where.end, [&](bytes_t at, bytes_t count) {
    const auto* const from = src.read(at, count, scratch);
    std::memcpy(dst.write(at, count), from, count);
  });
}

void copy_rows(const copy_work& what, part which) {
  const auto rows = piece_of(what.rows, part::all);
  const bytes_t middle = what.rows / 2;
  const bytes_t first = which == part::second_half ? middle : rows.first;
  const bytes_t end = which == part::first_half ? middle : rows.end;
  std::vector<std::byte> scratch;
  for (bytes_t row = first; row < end; ++row) {
    const auto* const from = what.src.read(row * what.src_pitch, what.width, scratch);
    std::memcpy(what.dst.write(row * what.dst_pitch, what.width), from, what.width);
  }
}

void run(const copy_work& what, part which) {
  if (!what.staged.empty()) {
    const auto where = piece_of(what.staged.size(), which);
    std::memcpy(what.dst.write(where.first, where.end - where.first),
                what.staged.data() + where.first, where.end - where.first);
  } else if (what.rows == 1) {
    copy_plain(what.dst, what.src, piece_of(what.width, which));
  } else {
    copy_rows(what, which);
  }
}

void run(const fill_work& what, part which) {
  const auto where = piece_of(what.dst.bytes, which);
  std::memset(what.dst.write(where.first, where.end - where.first),
              std::to_integer<int>(what.value), where.end - where.first);
}

void run_kernel(const kernel_copy& /*what*/, const kernel_work& all, part which) {
  copy_plain(all.writes[0], all.reads[0], piece_of(all.writes[0].bytes, which));
}

void run_kernel(const kernel_fill& what, const kernel_work& all, part which) {
  const auto& dst = all.writes[0];
  const auto where = piece_of(dst.bytes, which);
  for_pieces(where.first, where.end, [&](bytes_t at, bytes_t count) {
    write_pattern(dst.write(at, count), count, what.seed, what.offset + at);
  });
}

void run_kernel(const kernel_verify& what, const kernel_work& all, part which) {
  if (which == part::first_half) {
    return;  // it only reads, and adds to its counter at the end
  }
  const auto& data = all.reads[0];
  std::uint64_t wrong = 0;
  std::vector<std::byte> scratch;
  for_pieces(0, data.bytes, [&](bytes_t at, bytes_t count) {
    wrong += count_mismatches(data.read(at, count, scratch), count, what.seed, what.offset + at);
  });
  const auto& counter = all.writes[0];
  std::uint64_t sum = 0;
  std::memcpy(&sum, counter.read(0, sizeof sum, scratch), sizeof sum);
  sum += wrong;
  std::memcpy(counter.write(0, sizeof sum), &sum, sizeof sum);
}

// With the table as it is when the kernel runs: one that was changed too early spoils the copy.
void run_kernel(const kernel_scatter& what, const kernel_work& all, part which) {
  if (which == part::first_half) {
    return;
  }
  std::vector<std::byte> table_scratch;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < what.entries; ++i) {
    scatter_entry entry;
    std::memcpy(&entry, all.reads[0].read(i * sizeof entry, sizeof entry, table_scratch),
                sizeof entry);
    const auto& src = all.reads[i + 1];
    const auto& dst = all.writes[i];
    const bytes_t count = std::min({entry.bytes, src.bytes, dst.bytes});
    if (count > 0) {
      std::memcpy(dst.write(0, count), src.read(0, count, scratch), count);
    }
  }
}

// Contents stay, and places change elsewhere.
void run_kernel(const kernel_touch& /*what*/, const kernel_work& /*all*/, part /*which*/) {}
void run_kernel(const kernel_spin& /*what*/, const kernel_work& /*all*/, part /*which*/) {}

void run(const kernel_work& what, part which) {
  std::visit([&](const auto& request) { run_kernel(request, what, which); }, what.request);
}

void run(const prefetch_work& /*what*/, part /*which*/) {}
void run(const host_work_call& /*what*/, part /*which*/) {}
void run(const marker_work& /*what*/, part /*which*/) {}

}  // namespace

void carry_out(const operation& what, part which) {
  std::visit([which](const auto& one) { run(one, which); }, what.what);
}

const memory_range* host_result_of(const operation& what) noexcept {
  const memory_range* result = nullptr;
  if (const auto* const copy = std::get_if<copy_work>(&what.what)) {
    result = &copy->dst;
  } else if (const auto* const fill = std::get_if<fill_work>(&what.what)) {
    result = &fill->dst;
  } else if (const auto* const kernel = std::get_if<kernel_work>(&what.what)) {
    // touch leaves contents as they are, verify only adds
    const auto kind = kind_of(kernel->request);
    const bool overwrites = kind == builtin_kernel::copy || kind == builtin_kernel::fill;
    result = overwrites ? kernel->writes.data() : nullptr;
  }
  const bool seen = result != nullptr && result->of != nullptr && result->host_view() != nullptr;
  return seen ? result : nullptr;
}

void poison_results(const operation& what) {
  const auto* const result = host_result_of(what);
  if (result == nullptr) {
    return;
  }
  const auto* const copy = std::get_if<copy_work>(&what.what);
  if (copy == nullptr || copy->rows == 1) {
    poison_bytes(result->host_view(), result->bytes);
    return;
  }
  for (std::size_t row = 0; row < copy->rows; ++row) {
    poison_bytes(result->host_view() + row * copy->dst_pitch, copy->width);
  }
}

void corrupt(const operation& what) {
  const auto* const copy = std::get_if<copy_work>(&what.what);
  if (copy == nullptr || copy->width == 0) {
    return;
  }
  std::vector<std::byte> scratch;
  const bytes_t at = copy->width / 2;
  const auto value = *copy->dst.read(at, 1, scratch);
  *copy->dst.write(at, 1) = value ^ std::byte{0x5A};
}

const memory_range* first_gone(const operation& what) noexcept {
  const memory_range* found = nullptr;
  for_ranges(what.what, [&found](const memory_range& range) {
    if (found == nullptr && range.gone()) {
      found = &range;
    }
  });
  return found;
}

namespace {

constexpr std::array<std::string_view, 6> names_of_kernels{
    "kernel_copy", "kernel_fill", "kernel_touch", "kernel_spin", "kernel_verify", "kernel_scatter"};
constexpr std::array<std::string_view, 3> marker_names{"record_event", "wait_event", "barrier"};

struct namer {
  std::string_view operator()(const copy_work& /*what*/) const { return "copy"; }
  std::string_view operator()(const fill_work& /*what*/) const { return "fill"; }
  std::string_view operator()(const kernel_work& one) const {
    return names_of_kernels[one.request.index()];
  }
  std::string_view operator()(const prefetch_work& /*what*/) const { return "prefetch"; }
  std::string_view operator()(const host_work_call& /*what*/) const { return "call_host"; }
  std::string_view operator()(const marker_work& one) const {
    return marker_names[static_cast<unsigned>(one.kind)];
  }
};

}  // namespace

std::string_view name_of(const operation_work& what) {
  return std::visit(namer{}, what);
}

}  // namespace berth::runtime::sim
