// SPDX-License-Identifier: Apache-2.0
// A program that is linked with CUDA's driver: copies with rows, and in batches. "fork": a child of
// it ends as programs do, with its handlers, and its status is the program's.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interpose/capture/abi.hpp"

using namespace berth::runtime::cuda;  // NOLINT

extern "C" {
status cuInit(unsigned flags);
status cuMemAlloc_v2(address_t* memory, std::size_t bytes);
status cuMemFree_v2(address_t memory);
status cuMemcpyHtoD_v2(address_t dst, const void* src, std::size_t bytes);
status cuMemcpy2DAsync_v2(const copy_2d_t* info, stream_t stream);
status cuMemcpyBatchAsync_v2(address_t* dst, address_t* src, std::size_t* bytes, std::size_t count,
                             void* attributes, std::size_t* indices, std::size_t attribute_count,
                             stream_t stream);
status cuStreamSynchronize(stream_t stream);
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "fork") == 0) {
    cuInit(0);
    const pid_t child = fork();
    if (child == 0) {
      std::exit(7);
    }
    int state = 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 100 + WTERMSIG(state);
  }
  address_t device = 0;
  int wrong = cuInit(0) + cuMemAlloc_v2(&device, 4096);
  unsigned char host[256] = {1, 2, 3};
  wrong += cuMemcpyHtoD_v2(device, host, 100);
  copy_2d_t info{};
  info.src_type = 1;
  info.src_host = host;
  info.src_pitch = 16;
  info.dst_type = 2;
  info.dst_device = device;
  info.dst_pitch = 16;
  info.width = 16;
  info.rows = 4;
  wrong += cuMemcpy2DAsync_v2(&info, nullptr);
  address_t dst[2] = {device, device + 64};
  address_t src[2] = {reinterpret_cast<address_t>(host), reinterpret_cast<address_t>(host + 64)};
  std::size_t bytes[2] = {10, 20};
  wrong += cuMemcpyBatchAsync_v2(dst, src, bytes, 2, nullptr, nullptr, 0, nullptr);
  wrong += cuStreamSynchronize(nullptr) + cuMemFree_v2(device);
  std::printf("wrong %d\n", wrong);
  return wrong;
}
