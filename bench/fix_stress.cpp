// SPDX-License-Identifier: Apache-2.0
// Copies of random sizes between pageable memory and a CUDA device, on many threads, with every
// byte compared: a program for `berth run --fix`, of which it knows nothing.
//
//   BERTH_FIX=check berth run -- fix_stress [THREADS [COPIES [SECONDS [MOST_MIB]]]]
//
// Sizes are log-uniform from 1 MiB to MOST_MIB (default 16), ends begin at any byte, calls take
// turns: blocking and queued, the default stream and the thread's own. Each round takes a part of
// random data to the device and back to memory that held other data. It ends after COPIES (default
// 1000000) or SECONDS (default 480). Exit status: 0 all equal, 4 a difference, 3 no CUDA.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using context_t = void*;
using stream_t = void*;
using address_t = std::uint64_t;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20U;

struct cuda_calls {
  int (*init)(unsigned) = nullptr;
  int (*retain)(context_t*, int) = nullptr;
  int (*set_current)(context_t) = nullptr;
  int (*allocate)(address_t*, std::size_t) = nullptr;
  int (*create_stream)(stream_t*, unsigned) = nullptr;
  int (*synchronize)(stream_t) = nullptr;
  int (*to_device)(address_t, const void*, std::size_t) = nullptr;
  int (*to_device_async)(address_t, const void*, std::size_t, stream_t) = nullptr;
  int (*to_host)(void*, address_t, std::size_t) = nullptr;
  int (*to_host_async)(void*, address_t, std::size_t, stream_t) = nullptr;
};

struct options {
  unsigned threads = 8;
  std::uint64_t copies = 1'000'000;
  double seconds = 480;
  std::size_t most = 16 * mib;
};

struct totals {
  std::atomic<std::uint64_t> copies{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> refused{0};
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool open(cuda_calls& calls) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return library != nullptr && find(library, "cuInit", calls.init) &&
         find(library, "cuDevicePrimaryCtxRetain", calls.retain) &&
         find(library, "cuCtxSetCurrent", calls.set_current) &&
         find(library, "cuMemAlloc_v2", calls.allocate) &&
         find(library, "cuStreamCreate", calls.create_stream) &&
         find(library, "cuStreamSynchronize", calls.synchronize) &&
         find(library, "cuMemcpyHtoD_v2", calls.to_device) &&
         find(library, "cuMemcpyHtoDAsync_v2", calls.to_device_async) &&
         find(library, "cuMemcpyDtoH_v2", calls.to_host) &&
         find(library, "cuMemcpyDtoHAsync_v2", calls.to_host_async);
}

std::vector<std::byte> random_bytes(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> made(bytes);
  std::mt19937_64 numbers(seed);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const auto number = numbers();
    std::memcpy(made.data() + at, &number, 8);
  }
  return made;
}

struct round_trip {
  const std::byte* from;
  std::byte* to;
  address_t device;
  std::size_t bytes;
  stream_t stream;
  unsigned forms;  // bit 0: queued to the device, bit 1: queued to the host
};

int go(const cuda_calls& calls, const round_trip& one) {
  // A blocking call is in the default stream's order, not in that of a stream which does not wait
  // for it.
  int status = (one.forms & 1U) != 0
                   ? calls.to_device_async(one.device, one.from, one.bytes, one.stream)
                   : calls.to_device(one.device, one.from, one.bytes);
  if (status == 0 && (one.forms & 1U) != 0 && (one.forms & 2U) == 0) {
    status = calls.synchronize(one.stream);
  }
  if (status != 0) {
    return status;
  }
  status = (one.forms & 2U) != 0 ? calls.to_host_async(one.to, one.device, one.bytes, one.stream)
                                 : calls.to_host(one.to, one.device, one.bytes);
  return status != 0 ? status : calls.synchronize(one.stream);
}

void work(const cuda_calls& calls, context_t context, const options& wanted, unsigned index,
          clock_type::time_point deadline, totals& all) {
  calls.set_current(context);
  stream_t own = nullptr;
  address_t device = 0;
  if (calls.create_stream(&own, index % 2) != 0 || calls.allocate(&device, wanted.most + 64) != 0) {
    all.refused.fetch_add(1);
    return;
  }
  const auto source = random_bytes(2 * wanted.most, index + 1);
  std::vector<std::byte> target(wanted.most + 64);
  std::mt19937_64 numbers(1000 + index);
  std::uniform_real_distribution<double> power(0,
                                               std::log2(static_cast<double>(wanted.most) / mib));
  while (all.copies.load() < wanted.copies && clock_type::now() < deadline) {
    const auto bytes = std::min(wanted.most, static_cast<std::size_t>(static_cast<double>(mib) *
                                                                      std::exp2(power(numbers))));
    const auto bits = numbers();
    const round_trip one{.from = source.data() + (bits >> 8U) % (source.size() - bytes),
                         .to = target.data() + (bits & 63U),
                         .device = device + ((bits >> 6U) & 63U),
                         .bytes = bytes,
                         .stream = (bits & (1U << 31U)) != 0 ? own : nullptr,
                         .forms = static_cast<unsigned>(bits >> 40U) & 3U};
    if (go(calls, one) != 0) {
      all.refused.fetch_add(1);
      return;
    }
    if (std::memcmp(one.from, one.to, bytes) != 0) {
      all.wrong.fetch_add(1);
    }
    all.copies.fetch_add(2);
    all.bytes.fetch_add(2 * bytes);
  }
}

options read_options(int count, char** words) {
  options made;
  const auto number = [&](int index, double otherwise) {
    return count > index ? std::strtod(words[index], nullptr) : otherwise;
  };
  made.threads = static_cast<unsigned>(number(1, made.threads));
  made.copies = static_cast<std::uint64_t>(number(2, static_cast<double>(made.copies)));
  made.seconds = number(3, made.seconds);
  made.most = static_cast<std::size_t>(number(4, 16)) * mib;
  return made;
}

}  // namespace

int main(int count, char** words) {
  const auto wanted = read_options(count, words);
  cuda_calls calls;
  context_t context = nullptr;
  if (wanted.threads == 0 || wanted.most < mib) {
    std::fprintf(stderr, "fix_stress [THREADS [COPIES [SECONDS [MOST_MIB]]]]\n");
    return 2;
  }
  if (!open(calls) || calls.init(0) != 0 || calls.retain(&context, 0) != 0) {
    std::fprintf(stderr, "no CUDA device here\n");
    return 3;
  }
  totals all;
  const auto begin = clock_type::now();
  const auto deadline = begin + std::chrono::duration_cast<clock_type::duration>(
                                    std::chrono::duration<double>(wanted.seconds));
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < wanted.threads; ++index) {
    threads.emplace_back([&, index] { work(calls, context, wanted, index, deadline, all); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  const std::chrono::duration<double> took = clock_type::now() - begin;
  std::printf("%llu copies, %.1f GB, %.0f s, %u threads: %llu wrong, %llu threads refused\n",
              static_cast<unsigned long long>(all.copies), static_cast<double>(all.bytes) / 1e9,
              took.count(), wanted.threads, static_cast<unsigned long long>(all.wrong),
              static_cast<unsigned long long>(all.refused));
  return all.wrong == 0 && all.refused == 0 ? 0 : 4;
}
