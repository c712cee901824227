// SPDX-License-Identifier: Apache-2.0
// The simulated machines give the figures that were measured or published for the real ones, asked
// through the contract as a benchmark would ask a real runtime. Sizes are the sources' own; bytes
// are not carried, so that a gigabyte costs nothing here.
#include <sys/mman.h>

#include <ostream>

#include "sim_support.hpp"

namespace berth::test {
namespace {

using runtime::event_handle;
using runtime::host_work_kind;
using runtime::sim::data_effects;
using runtime::sim::migration;

// A machine with what a measurement needs.
class bench {
public:
  bench(std::string_view model, migration pages, unsigned devices = 0)
      : gpu_(open_sim(options_for(model, pages, devices))) {}

  [[nodiscard]] sim_driver& gpu() noexcept { return *gpu_; }

  // Device time between two events around what `queue` queues into a stream.
  template <typename Queue>
  double device_ns(const Queue& queue) {
    const auto stream = gpu_->create_stream(0).value();
    const runtime::event_options timed{.timing = runtime::event_timing::enabled};
    const auto start = gpu_->create_event(0, timed).value();
    const auto end = gpu_->create_event(0, timed).value();
    // Held until all is queued, so that queueing is not measured.
    gpu_->launch(runtime::kernel_spin{.release = nullptr, .at_most = 10ms}, stream).value();
    gpu_->record_event(start, stream).value();
    queue(stream);
    gpu_->record_event(end, stream).value();
    gpu_->synchronize_event(end).value();
    return static_cast<double>(gpu_->elapsed(start, end).value().count());
  }
  template <typename What>
  double host_ns(const What& what) {
    return static_cast<double>(host_time(*gpu_, what).count());
  }

private:
  static runtime::sim::options options_for(std::string_view model, migration pages,
                                           unsigned devices) {
    runtime::sim::options options{.model = std::string(model)};
    options.data = data_effects::time_only;
    options.pages = runtime::sim::page_state::resident;
    options.pages_migrate = pages;
    options.devices = devices;
    return options;
  }

  std::shared_ptr<sim_driver> gpu_;
};

// One published figure.
struct figure_case {
  std::string_view model;
  std::string_view what;
  bytes_t bytes;
  double least;  // of the source; equal to `most` where it gives one number
  double most;
  double tolerance;
  double (*measure)(bench& on, bytes_t bytes);
  migration pages = migration::by_model;

  friend void PrintTo(const figure_case& one, std::ostream* out) {
    *out << one.model << ' ' << one.what << ' ' << format_bytes(one.bytes);
  }
};

double rate(bytes_t bytes, double ns) {
  return static_cast<double>(bytes) / ns;
}

// --- Measurements: each gives GB/s, or microseconds where its name ends in _us ----------------

void* device_memory(bench& on, bytes_t bytes) {
  return on.gpu().allocate_device(0, bytes).value();
}
void* pinned_memory(bench& on, bytes_t bytes) {
  return on.gpu().allocate_pinned(bytes).value();
}

// Pageable memory without pages: nothing is carried.
class address_range {
public:
  explicit address_range(bytes_t bytes)
      : first_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
        bytes_(bytes) {}
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;
  address_range(address_range&&) = delete;
  address_range& operator=(address_range&&) = delete;
  ~address_range() { munmap(first_, bytes_); }
  [[nodiscard]] void* get() const noexcept { return first_; }

private:
  void* first_;
  bytes_t bytes_;
};

double pinned_h2d(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  auto* const src = pinned_memory(on, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().copy_async(dst, src, bytes, stream).value();
  }));
}
double pinned_d2h(bench& on, bytes_t bytes) {
  auto* const src = device_memory(on, bytes);
  auto* const dst = pinned_memory(on, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().copy_async(dst, src, bytes, stream).value();
  }));
}
double call_h2d_us(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  auto* const src = pinned_memory(on, bytes);
  return on.host_ns([&] { on.gpu().copy(dst, src, bytes).value(); }) / 1000;
}
double pageable_h2d(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  const address_range src(bytes);
  return rate(bytes, on.host_ns([&] { on.gpu().copy(dst, src.get(), bytes).value(); }));
}
double pageable_d2h(bench& on, bytes_t bytes) {
  auto* const src = device_memory(on, bytes);
  const address_range dst(bytes);
  return rate(bytes, on.host_ns([&] { on.gpu().copy(dst.get(), src, bytes).value(); }));
}
double fresh_h2d(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  const address_range src(bytes);
  on.gpu().declare_pages(src.get(), bytes,
                         {.traits = machine::trait::fresh_pages, .numa_node = {}});
  return rate(bytes, on.host_ns([&] { on.gpu().copy(dst, src.get(), bytes).value(); }));
}
double fresh_d2h(bench& on, bytes_t bytes) {
  auto* const src = device_memory(on, bytes);
  const address_range dst(bytes);
  on.gpu().declare_pages(dst.get(), bytes,
                         {.traits = machine::trait::fresh_pages, .numa_node = {}});
  return rate(bytes, on.host_ns([&] { on.gpu().copy(dst.get(), src, bytes).value(); }));
}
double fresh_huge_d2h(bench& on, bytes_t bytes) {
  auto* const src = device_memory(on, bytes);
  const address_range dst(bytes);
  on.gpu().declare_pages(
      dst.get(), bytes,
      {.traits = {machine::trait::fresh_pages, machine::trait::huge_pages}, .numa_node = {}});
  return rate(bytes, on.host_ns([&] { on.gpu().copy(dst.get(), src, bytes).value(); }));
}

// Both directions at once, over the time when both are busy.
double both_directions(bench& on, bytes_t bytes) {
  auto* const up = device_memory(on, bytes);
  auto* const down = device_memory(on, bytes);
  auto* const src = pinned_memory(on, bytes);
  auto* const dst = pinned_memory(on, bytes);
  auto& gpu = on.gpu();
  const auto one = gpu.create_stream(0).value();
  const auto two = gpu.create_stream(0).value();
  gpu.copy_async(up, src, bytes, one).value();
  gpu.copy_async(dst, down, bytes, two).value();
  gpu.synchronize_device(0).value();
  const auto done = gpu.executed();
  double sum = 0;
  double from = 0;
  double to = 1e18;
  for (const auto& copy : done) {
    if (copy.what == "copy") {
      from = std::max(from, static_cast<double>(copy.started.count()));
      to = std::min(to, static_cast<double>(copy.ended.count()));
    }
  }
  for (const auto& copy : done) {
    if (copy.what == "copy") {
      const auto spent = static_cast<double>((copy.ended - copy.started).count());
      sum += static_cast<double>(bytes) / spent * (to - from);
    }
  }
  return sum / (to - from);
}

template <unsigned Blocks>
double kernel_h2d(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  auto* const src = pinned_memory(on, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu()
        .launch(runtime::kernel_copy{.dst = dst, .src = src, .bytes = bytes}, stream,
                {.blocks = Blocks, .threads = 512})
        .value();
  }));
}
template <unsigned Blocks>
double kernel_d2h(bench& on, bytes_t bytes) {
  auto* const src = device_memory(on, bytes);
  auto* const dst = pinned_memory(on, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu()
        .launch(runtime::kernel_copy{.dst = dst, .src = src, .bytes = bytes}, stream,
                {.blocks = Blocks, .threads = 512})
        .value();
  }));
}
// Read and write counted, as the sources do.
double local_copy(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  auto* const src = device_memory(on, bytes);
  return 2 * rate(bytes, on.device_ns([&](stream_handle stream) {
           on.gpu().copy_async(dst, src, bytes, stream).value();
         }));
}
double local_kernel(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  auto* const src = device_memory(on, bytes);
  return 2 * rate(bytes, on.device_ns([&](stream_handle stream) {
           on.gpu()
               .launch(runtime::kernel_copy{.dst = dst, .src = src, .bytes = bytes}, stream)
               .value();
         }));
}
double peer_copy(bench& on, bytes_t bytes) {
  auto* const src = device_memory(on, bytes);
  auto* const dst = on.gpu().allocate_device(1, bytes).value();
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().copy_peer_async(dst, 1, src, 0, bytes, stream).value();
  }));
}

void host_touch(bench& on, void* memory, bytes_t bytes) {
  on.gpu().charge({.kind = host_work_kind::fault, .bytes = bytes, .dst = memory});
}
double managed_touch(bench& on, bytes_t bytes) {
  auto* const memory = on.gpu().allocate_managed(0, bytes).value();
  host_touch(on, memory, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().launch(runtime::kernel_touch{.first = memory, .bytes = bytes}, stream).value();
  }));
}
double managed_touch_back(bench& on, bytes_t bytes) {
  auto* const memory = on.gpu().allocate_managed(0, bytes).value();
  on.gpu().prefetch_async(memory, bytes, {.device = 0}, default_stream).value();
  on.gpu().synchronize_device(0).value();
  return rate(bytes, on.host_ns([&] { host_touch(on, memory, bytes); }));
}
double managed_prefetch(bench& on, bytes_t bytes) {
  auto* const memory = on.gpu().allocate_managed(0, bytes).value();
  host_touch(on, memory, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().prefetch_async(memory, bytes, {.device = 0}, stream).value();
  }));
}
double managed_prefetch_back(bench& on, bytes_t bytes) {
  auto* const memory = on.gpu().allocate_managed(0, bytes).value();
  on.gpu().prefetch_async(memory, bytes, {.device = 0}, default_stream).value();
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().prefetch_async(memory, bytes, {.where = side::host}, stream).value();
  }));
}
double managed_resident(bench& on, bytes_t bytes) {
  auto* const src = on.gpu().allocate_managed(0, bytes).value();
  auto* const dst = on.gpu().allocate_managed(0, bytes).value();
  const auto run = [&](stream_handle stream) {
    on.gpu().launch(runtime::kernel_copy{.dst = dst, .src = src, .bytes = bytes}, stream).value();
  };
  on.device_ns(run);
  return rate(bytes, on.device_ns(run));
}
// A kernel reads host memory where it is.
double managed_in_place(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, bytes);
  auto* const src = on.gpu().allocate_managed(0, bytes).value();
  host_touch(on, src, bytes);
  const auto run = [&](stream_handle stream) {
    on.gpu().launch(runtime::kernel_copy{.dst = dst, .src = src, .bytes = bytes}, stream).value();
  };
  on.device_ns(run);  // nothing has moved after a first time
  return rate(bytes, on.device_ns(run));
}
double zero_copy_write(bench& on, bytes_t bytes) {
  auto* const memory = pinned_memory(on, bytes);
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu().launch(runtime::kernel_fill{.dst = memory, .bytes = bytes}, stream).value();
  }));
}
double zero_copy_read(bench& on, bytes_t bytes) {
  auto* const memory = pinned_memory(on, bytes);
  auto* const count = static_cast<std::uint64_t*>(device_memory(on, 8));
  return rate(bytes, on.device_ns([&](stream_handle stream) {
    on.gpu()
        .launch(runtime::kernel_verify{.data = memory, .bytes = bytes, .mismatches = count}, stream)
        .value();
  }));
}

double register_us(bench& on, bytes_t bytes) {
  const address_range memory(bytes);
  const double ns = on.host_ns([&] { on.gpu().register_host(memory.get(), bytes).value(); });
  on.gpu().unregister_host(memory.get()).value();
  return ns / 1000;
}
double unregister_us(bench& on, bytes_t bytes) {
  const address_range memory(bytes);
  on.gpu().register_host(memory.get(), bytes).value();
  return on.host_ns([&] { on.gpu().unregister_host(memory.get()).value(); }) / 1000;
}
double pinned_alloc_us(bench& on, bytes_t bytes) {
  return on.host_ns([&] { pinned_memory(on, bytes); }) / 1000;
}
double pinned_free_us(bench& on, bytes_t bytes) {
  auto* const memory = pinned_memory(on, bytes);
  return on.host_ns([&] { on.gpu().free_pinned(memory).value(); }) / 1000;
}
double device_alloc_us(bench& on, bytes_t bytes) {
  return on.host_ns([&] { device_memory(on, bytes); }) / 1000;
}
double device_free_us(bench& on, bytes_t bytes) {
  auto* const memory = device_memory(on, bytes);
  return on.host_ns([&] { on.gpu().free_device(memory).value(); }) / 1000;
}

// A kernel's time beside something else, relative to its time alone.
template <typename Beside>
double slowdown(bench& on, bytes_t bytes, const Beside& beside) {
  auto* const memory = device_memory(on, bytes);
  const auto work = [&](stream_handle stream) {
    on.gpu().launch(runtime::kernel_fill{.dst = memory, .bytes = bytes}, stream).value();
  };
  const double alone = on.device_ns(work);
  const auto other = on.gpu().create_stream(0).value();
  const double together = on.device_ns([&](stream_handle stream) {
    beside(other);
    work(stream);
  });
  on.gpu().synchronize_device(0).value();
  return together / alone;
}
double kernel_beside_dma(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, 4 * gib);
  auto* const src = pinned_memory(on, 4 * gib);
  return slowdown(on, bytes, [&](stream_handle stream) {
    on.gpu().copy_async(dst, src, 4 * gib, stream).value();
  });
}
double kernel_beside_kernel_copy(bench& on, bytes_t bytes) {
  auto* const dst = device_memory(on, 4 * gib);
  auto* const src = pinned_memory(on, 4 * gib);
  return slowdown(on, bytes, [&](stream_handle stream) {
    on.gpu()
        .launch(runtime::kernel_copy{.dst = dst, .src = src, .bytes = 4 * gib}, stream,
                {.blocks = 32, .threads = 512})
        .value();
  });
}

// --- The figures ------------------------------------------------------------------------------

// Measured on an H200 with PCIe 5 x16 (docs/performance.md).
constexpr double near_h200 = 0.10;
constexpr figure_case h200_figures[] = {
    {"h200", "pinned H2D", 512 * mib, 55.4, 55.4, near_h200, pinned_h2d},
    {"h200", "pinned D2H", 512 * mib, 55.2, 55.2, near_h200, pinned_d2h},
    {"h200", "both directions", 512 * mib, 98, 101, near_h200, both_directions},
    {"h200", "kernel H2D, 16 blocks", 512 * mib, 51, 51, near_h200, kernel_h2d<16>},
    {"h200", "kernel H2D, 4 blocks", 512 * mib, 23, 23, near_h200, kernel_h2d<4>},
    {"h200", "kernel D2H, 4 blocks", 512 * mib, 52, 52, near_h200, kernel_d2h<4>},
    {"h200", "local copy", gib, 4125, 4125, near_h200, local_copy},
    {"h200", "local kernel copy", gib, 3830, 3830, near_h200, local_kernel},
    {"h200", "call us", 4 * kib, 8, 8, near_h200, call_h2d_us},
    {"h200", "call us", 64 * kib, 9, 9, near_h200, call_h2d_us},
    {"h200", "call us", mib, 27, 27, near_h200, call_h2d_us},
    {"h200", "call us", 4 * mib, 84, 84, near_h200, call_h2d_us},
    {"h200", "call us", 16 * mib, 310, 310, near_h200, call_h2d_us},
    {"h200", "call us", 64 * mib, 1217, 1217, near_h200, call_h2d_us},
    {"h200", "pageable H2D", 64 * kib, 2.9, 4.3, near_h200, pageable_h2d},
    {"h200", "pageable H2D", mib, 12.5, 12.5, near_h200, pageable_h2d},
    {"h200", "pageable H2D", 16 * mib, 15.6, 15.6, near_h200, pageable_h2d},
    {"h200", "pageable H2D", 64 * mib, 10.2, 10.2, near_h200, pageable_h2d},
    {"h200", "pageable H2D", 256 * mib, 9.0, 9.0, near_h200, pageable_h2d},
    {"h200", "pageable H2D", gib, 7.4, 9.3, near_h200, pageable_h2d},
    {"h200", "pageable D2H", 64 * kib, 4.1, 4.1, near_h200, pageable_d2h},
    {"h200", "pageable D2H", mib, 9.6, 9.6, near_h200, pageable_d2h},
    {"h200", "pageable D2H", 16 * mib, 15.9, 15.9, near_h200, pageable_d2h},
    {"h200", "pageable D2H", 64 * mib, 16.7, 16.7, near_h200, pageable_d2h},
    {"h200", "pageable D2H", 256 * mib, 15.5, 15.5, near_h200, pageable_d2h},
    {"h200", "pageable D2H", gib, 14.2, 16, near_h200, pageable_d2h},
    {"h200", "fresh H2D", gib, 2.8, 2.8, near_h200, fresh_h2d},
    {"h200", "fresh D2H", gib, 1.3, 1.3, near_h200, fresh_d2h},
    {"h200", "fresh huge D2H", gib, 3.0, 3.0, near_h200, fresh_huge_d2h},
    {"h200", "managed first touch", 256 * mib, 12.6, 12.6, near_h200, managed_touch},
    {"h200", "managed touch back", 256 * mib, 3.0, 3.0, near_h200, managed_touch_back},
    {"h200", "managed prefetch", 256 * mib, 48, 48, near_h200, managed_prefetch},
    {"h200", "managed resident copy", 256 * mib, 1490, 1490, near_h200, managed_resident},
    {"h200", "managed prefetch back", 256 * mib, 10.9, 10.9, near_h200, managed_prefetch_back},
    {"h200", "zero-copy read", 256 * mib, 51, 51, near_h200, zero_copy_read},
    {"h200", "zero-copy write", 256 * mib, 52, 52, near_h200, zero_copy_write},
    {"h200", "register us", mib, 120, 120, near_h200, register_us},
    {"h200", "register us", 16 * mib, 930, 930, near_h200, register_us},
    {"h200", "register us", gib, 52'000, 52'000, near_h200, register_us},
    {"h200", "unregister us", mib, 60, 60, near_h200, unregister_us},
    {"h200", "unregister us", gib, 19'000, 19'000, near_h200, unregister_us},
    {"h200", "pinned alloc us", 4 * kib, 860, 1000, near_h200, pinned_alloc_us},
    {"h200", "pinned alloc us", 64 * mib, 31'000, 31'000, near_h200, pinned_alloc_us},
    {"h200", "pinned alloc us", gib, 521'000, 521'000, near_h200, pinned_alloc_us},
    {"h200", "pinned free us", 64 * mib, 9'400, 9'400, near_h200, pinned_free_us},
    {"h200", "device alloc us", 4 * kib, 89, 89, near_h200, device_alloc_us},
    {"h200", "device alloc us", gib, 351, 351, near_h200, device_alloc_us},
    {"h200", "device free us", 64 * mib, 150, 150, near_h200, device_free_us},
    {"h200", "kernel beside DMA", 60 * gib, 1.01, 1.01, 0.01, kernel_beside_dma},
    {"h200", "kernel beside kernel copy", 60 * gib, 1.44, 1.44, 0.05, kernel_beside_kernel_copy},
};

// Published for AMD Instinct: rocm-bandwidth-test in AMD's documentation, issues.
constexpr double near_amd = 0.05;
constexpr figure_case amd_figures[] = {
    {"mi300x", "pinned H2D", gib, 57.3, 57.3, near_amd, pinned_h2d},
    {"mi300x", "pinned D2H", gib, 48.4, 56, near_amd, pinned_d2h},
    {"mi300x", "both directions", gib, 91.8, 91.8, near_amd, both_directions},
    {"mi300x", "peer", gib, 47.6, 49.4, near_amd, peer_copy},
    {"mi300x", "local copy", gib, 2670, 3660, near_amd, local_copy},
    {"mi300x", "local kernel copy", gib, 2670, 3660, near_amd, local_kernel},
    {"mi300x", "kernel H2D", gib, 55, 55, near_amd, kernel_h2d<16>},
    {"mi300x", "kernel D2H", gib, 55.2, 55.2, near_amd, kernel_d2h<16>},
    {"mi300x", "call us", 4 * kib, 36, 50, near_amd, call_h2d_us},
    {"mi300x", "pageable H2D, a third of pinned", gib, 57.3 / 3, 57.3 / 3, near_amd, pageable_h2d},
    {"mi300x", "managed, XNACK off", 256 * mib, 57.3, 57.3, near_amd, managed_in_place,
     migration::off},
    {"mi300x", "managed first touch, XNACK on", 256 * mib, 0.52, 0.52, near_amd, managed_touch,
     migration::on},
    {"mi300x", "managed touch back, XNACK on", 256 * mib, 1.66, 1.66, near_amd, managed_touch_back,
     migration::on},
    {"mi300x", "managed once resident, XNACK on", 256 * mib, 500, 5300, near_amd, managed_in_place,
     migration::on},
    {"mi300x", "zero-copy read", 256 * mib, 55, 57.3, near_amd, zero_copy_read},
    {"mi250-x8", "pinned H2D", gib, 14.0, 14.1, near_amd, pinned_h2d},
    {"mi250-x8", "pinned D2H", gib, 14.0, 14.1, near_amd, pinned_d2h},
    {"mi250-x8", "both directions", gib, 24, 25, near_amd, both_directions},
    {"mi250-x8", "peer of the same package", gib, 150, 152, near_amd, peer_copy},
    {"mi250-x8", "local copy", gib, 980, 1058, near_amd, local_copy},
    {"mi250x", "pinned H2D, PCIe 4 x16", gib, 26, 28, near_amd, pinned_h2d},
    {"mi250x", "pinned D2H, PCIe 4 x16", gib, 26, 28, near_amd, pinned_d2h},
    {"mi250x", "both directions, as MI210", gib, 45, 45, near_amd, both_directions},
    {"mi250x", "local copy", gib, 980, 1058, near_amd, local_copy},
    {"mi250x", "pageable D2H, a third of pinned", gib, 26.5 / 3, 26.5 / 3, near_amd, pageable_d2h},
    {"mi250x", "kernel H2D", gib, 26, 28, near_amd, kernel_h2d<16>},
    {"mi250x", "call us", 4 * kib, 24, 24, near_amd, call_h2d_us},
    {"mi250x", "managed, XNACK off", 256 * mib, 26, 28, near_amd, managed_in_place, migration::off},
    {"mi250x", "managed first touch, XNACK on", 256 * mib, 0.52, 0.52, near_amd, managed_touch,
     migration::on},
    {"mi250x", "managed prefetch, XNACK off", 256 * mib, 22.96, 22.96, near_amd, managed_prefetch,
     migration::off},
    {"mi250x", "zero-copy write", 256 * mib, 26, 28, near_amd, zero_copy_write},
};

class figures : public ::testing::TestWithParam<figure_case> {};

TEST_P(figures, are_reproduced) {
  const auto& wanted = GetParam();
  const bool several = wanted.what.starts_with("peer");
  const bool is_node = wanted.model == "mi250-x8";
  bench on(wanted.model, wanted.pages, several && !is_node ? 2 : 0);
  const double got = wanted.measure(on, wanted.bytes);
  EXPECT_GE(got, wanted.least * (1 - wanted.tolerance));
  EXPECT_LE(got, wanted.most * (1 + wanted.tolerance));
  RecordProperty("measured", std::to_string(got));
}

INSTANTIATE_TEST_SUITE_P(h200, figures, ::testing::ValuesIn(h200_figures));
INSTANTIATE_TEST_SUITE_P(amd, figures, ::testing::ValuesIn(amd_figures));

}  // namespace
}  // namespace berth::test
