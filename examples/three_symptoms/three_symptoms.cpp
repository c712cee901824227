// SPDX-License-Identifier: Apache-2.0
// Three ways to lose half of the time to copies, each in a program that works:
//   pageable   inputs come from memory of malloc, so each copy takes a detour
//   managed    managed memory that both sides use in turns, without a prefetch or advice
//   pingpong   host and GPU take turns on one buffer, which crosses the link twice each time
// `--cured` does the same work as it should be done. Run it under `berth run`:
//   berth run -- three_symptoms
//   berth run -- three_symptoms --cured
//   three_symptoms [pageable|managed|pingpong]... [--mib N] [--rounds N] [--cured]
#include <chrono>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "gpu_compat.hpp"

// clang-format off
GPU_KERNEL(scale,
extern "C" __global__ void scale(float* data, unsigned count, float factor) {
  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) {
    data[index] = data[index] * factor;
  }
})
// clang-format on

namespace {

enum class way { ill, cured };

struct job {
  std::size_t bytes = 16U << 20U;
  int rounds = 10;
  way how = way::ill;

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(bytes / sizeof(float)); }
};

// Host work on the data: what makes it the host's for a while.
void work_on_host(float* data, unsigned count) {
  for (unsigned index = 0; index < count; ++index) {
    data[index] += 1.0F;
  }
}

float* device_memory(const job& asked) {
  void* at = nullptr;
  GPU_CHECK(gpuMalloc(&at, asked.bytes));
  return static_cast<float*>(at);
}

float* pinned_memory(const job& asked) {
  void* at = nullptr;
  GPU_CHECK(gpuHostMalloc(&at, asked.bytes));
  return static_cast<float*>(at);
}

// What a runtime does once, at the first copy and launch, is no symptom.
void warm_up() {
  const job little{1024, 1, way::ill};
  float numbers[256] = {};
  float* const on_device = device_memory(little);
  GPU_CHECK(gpuMemcpy(on_device, numbers, little.bytes, gpuMemcpyHostToDevice));
  gpu::launch_scale(on_device, little.count(), 1.0F, nullptr);
  GPU_CHECK(gpuDeviceSynchronize());
  GPU_CHECK(gpuFree(on_device));
}

// Symptom 1. Inputs of ordinary memory; the cure fills pinned memory instead.
void pageable(const job& asked) {
  std::vector<float> ordinary;
  float* input = nullptr;
  if (asked.how == way::ill) {
    ordinary.resize(asked.count());
    input = ordinary.data();
  } else {
    input = pinned_memory(asked);
  }
  float* const on_device = device_memory(asked);
  for (int round = 0; round < asked.rounds; ++round) {
    work_on_host(input, asked.count());  // the next input arrives
    GPU_CHECK(gpuMemcpy(on_device, input, asked.bytes, gpuMemcpyHostToDevice));
    gpu::launch_scale(on_device, asked.count(), 0.5F, nullptr);
    GPU_CHECK(gpuDeviceSynchronize());
  }
  GPU_CHECK(gpuFree(on_device));
  if (asked.how == way::cured) {
    GPU_CHECK(gpuHostFree(input));
  }
}

// Symptom 2. Managed memory, written by the host and used by the GPU in turns; the cure has memory
// of each side and one copy each round.
void managed(const job& asked) {
  if (asked.how == way::cured) {
    pageable(asked);
    return;
  }
  void* at = nullptr;
  GPU_CHECK(gpuMallocManaged(&at, asked.bytes, gpuMemAttachGlobal));
  auto* const shared = static_cast<float*>(at);
  std::memset(shared, 0, asked.bytes);
  for (int round = 0; round < asked.rounds; ++round) {
    work_on_host(shared, asked.count());
    gpu::launch_scale(shared, asked.count(), 0.5F, nullptr);
    GPU_CHECK(gpuDeviceSynchronize());
  }
  GPU_CHECK(gpuFree(shared));
}

// Symptom 3. One buffer that goes to the GPU, comes back, is changed, and goes again; the cure
// leaves it on the GPU, does the host's part there, and brings it back once.
void pingpong(const job& asked) {
  float* const on_host = pinned_memory(asked);
  float* const on_device = device_memory(asked);
  std::memset(on_host, 0, asked.bytes);
  GPU_CHECK(gpuMemcpy(on_device, on_host, asked.bytes, gpuMemcpyHostToDevice));
  for (int round = 0; round < asked.rounds; ++round) {
    gpu::launch_scale(on_device, asked.count(), 0.5F, nullptr);
    if (asked.how == way::ill) {
      GPU_CHECK(gpuMemcpy(on_host, on_device, asked.bytes, gpuMemcpyDeviceToHost));
      work_on_host(on_host, asked.count());
      GPU_CHECK(gpuMemcpy(on_device, on_host, asked.bytes, gpuMemcpyHostToDevice));
    } else {
      gpu::launch_scale(on_device, asked.count(), 1.0F, nullptr);
    }
  }
  GPU_CHECK(gpuMemcpy(on_host, on_device, asked.bytes, gpuMemcpyDeviceToHost));
  GPU_CHECK(gpuFree(on_device));
  GPU_CHECK(gpuHostFree(on_host));
}

struct part {
  const char* name;
  void (*run)(const job&);
};
constexpr part parts[] = {{"pageable", pageable}, {"managed", managed}, {"pingpong", pingpong}};

void run(const part& what, const job& asked) {
  const auto begin = std::chrono::steady_clock::now();
  what.run(asked);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::printf("%-8s %s: %d rounds of %zu MiB, %.1f ms\n", what.name,
              asked.how == way::ill ? "ill" : "cured", asked.rounds, asked.bytes >> 20U,
              took.count());
}

struct request {
  job asked;
  std::vector<part> chosen;
};

// Takes one word and, of options with a number, the next one too. Gives how many; 0: no such word.
int take_word(request& into, const std::string& word, const char* next) {
  if (word == "--cured") {
    into.asked.how = way::cured;
    return 1;
  }
  for (const auto& one : parts) {
    if (word == one.name) {
      into.chosen.push_back(one);
      return 1;
    }
  }
  const int number = next != nullptr ? std::atoi(next) : 0;
  if (number < 1 || number > 4096) {
    return 0;
  }
  if (word == "--mib") {
    into.asked.bytes = static_cast<std::size_t>(number) << 20U;
    return 2;
  }
  if (word == "--rounds") {
    into.asked.rounds = number;
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  request wanted;
  for (int index = 1; index < argc;) {
    const int taken = take_word(wanted, argv[index], argv[index + 1]);
    if (taken == 0) {
      std::fprintf(stderr,
                   "'%s'? three_symptoms [pageable|managed|pingpong]... [--mib N] [--rounds N] "
                   "[--cured]\n",
                   argv[index]);
      return 2;
    }
    index += taken;
  }
  int devices = 0;
  if (gpuGetDeviceCount(&devices) != gpuSuccess || devices == 0) {
    std::fprintf(stderr, "no GPU that the runtime can use\n");
    return 1;
  }
  if (wanted.chosen.empty()) {
    wanted.chosen.assign(std::begin(parts), std::end(parts));
  }
  warm_up();
  for (const auto& one : wanted.chosen) {
    run(one, wanted.asked);
  }
  return 0;
}
