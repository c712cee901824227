// SPDX-License-Identifier: Apache-2.0
// berth's own kernels, see kernels.hpp for what each promises. One source for both runtimes: nvcc
// makes cuda/builtin_kernels.ptx of it (scripts/make-ptx.sh), hiprtc compiles it when it is needed.
// So it includes nothing, and its parameters are all 8 bytes wide.

typedef unsigned char byte_t;
typedef unsigned int word32_t;
typedef unsigned long long word_t;

#if defined(__HIP__) || defined(__HIPCC_RTC__)
#define BERTH_ON_AMD 1
#endif

// A clock of constant rate: nanoseconds on NVIDIA, ticks of the device's wall clock on AMD.
static __device__ inline word_t steady_ticks() {
#if !defined(BERTH_ON_AMD)
  word_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#elif defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_s_sendmsg_rtnl(0x83);
#else
  return __builtin_amdgcn_s_memrealtime();
#endif
}

static __device__ inline word_t first_item() {
  return (word_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline word_t item_count() {
  return (word_t)gridDim.x * blockDim.x;
}

// The same sequence as pattern_word in kernels.hpp.
static __device__ inline word_t pattern_word(word_t seed, word_t index) {
  word_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

static __device__ inline byte_t pattern_byte(word_t seed, word_t offset) {
  return (byte_t)(pattern_word(seed, offset / 8) >> (offset % 8 * 8));
}

// Items first, first + step, ... of a copy.
static __device__ inline void copy_share(byte_t* dst, const byte_t* src, word_t bytes, word_t first,
                                         word_t step) {
  word_t done = 0;
  if ((((word_t)dst | (word_t)src) & 15) == 0) {
    struct alignas(16) block {
      word_t low, high;
    };
    const word_t blocks = bytes / 16;
    block* to = (block*)dst;
    const block* from = (const block*)src;
    // Four loads in flight for each thread: what a link of long latency needs.
    word_t i = first;
    for (; i + 3 * step < blocks; i += 4 * step) {
      const block a = from[i];
      const block b = from[i + step];
      const block c = from[i + 2 * step];
      const block d = from[i + 3 * step];
      to[i] = a;
      to[i + step] = b;
      to[i + 2 * step] = c;
      to[i + 3 * step] = d;
    }
    for (; i < blocks; i += step) {
      to[i] = from[i];
    }
    done = blocks * 16;
  }
  for (word_t i = done + first; i < bytes; i += step) {
    dst[i] = src[i];
  }
}

extern "C" __global__ void berth_copy(byte_t* dst, const byte_t* src, word_t bytes) {
  copy_share(dst, src, bytes, first_item(), item_count());
}

extern "C" __global__ void berth_fill(byte_t* dst, word_t bytes, word_t seed, word_t first_word) {
  word_t* words = (word_t*)dst;
  const word_t whole = bytes / 8;
  for (word_t i = first_item(); i < whole; i += item_count()) {
    words[i] = pattern_word(seed, first_word + i);
  }
  for (word_t i = whole * 8 + first_item(); i < bytes; i += item_count()) {
    dst[i] = pattern_byte(seed, first_word * 8 + i);
  }
}

extern "C" __global__ void berth_touch(byte_t* first, word_t bytes, word_t stride, word_t write) {
  // ceil(bytes / stride) places, so that the last, partial stride is touched too.
  for (word_t i = first_item(); i * stride < bytes; i += item_count()) {
    volatile byte_t* place = first + i * stride;
    const byte_t value = *place;
    if (write) {
      *place = value;
    }
  }
}

extern "C" __global__ void berth_spin(const volatile word32_t* release, word_t ticks) {
  const word_t begin = steady_ticks();
  while (steady_ticks() - begin < ticks) {
    if (release && *release) {
      return;
    }
  }
}

extern "C" __global__ void berth_verify(const byte_t* data, word_t bytes, word_t seed,
                                        word_t first_word, word_t* mismatches) {
  const word_t* words = (const word_t*)data;
  const word_t whole = bytes / 8;
  word_t wrong = 0;
  for (word_t i = first_item(); i < whole; i += item_count()) {
    const word_t difference = words[i] ^ pattern_word(seed, first_word + i);
    for (word_t byte = 0; byte < 8; ++byte) {
      wrong += ((difference >> (byte * 8)) & 255) != 0;
    }
  }
  for (word_t i = whole * 8 + first_item(); i < bytes; i += item_count()) {
    wrong += data[i] != pattern_byte(seed, first_word * 8 + i);
  }
  if (wrong) {
    atomicAdd(mismatches, wrong);
  }
}

struct scatter_entry {
  byte_t* memory;
  word_t place;
  word_t bytes;
};

// 64 threads for an entry: a wave of AMD's data centre GPUs, two warps of NVIDIA's.
extern "C" __global__ void berth_scatter(byte_t* packed, const scatter_entry* table, word_t entries,
                                         word_t collect) {
  const word_t team = 64;
  for (word_t i = first_item() / team; i < entries; i += item_count() / team) {
    const scatter_entry one = table[i];
    byte_t* run = packed + one.place;
    if (collect) {
      copy_share(run, one.memory, one.bytes, threadIdx.x % team, team);
    } else {
      copy_share(one.memory, run, one.bytes, threadIdx.x % team, team);
    }
  }
}
