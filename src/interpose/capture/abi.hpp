// SPDX-License-Identifier: Apache-2.0
// Structures of the GPU runtimes that only intercepted calls take, beside those of
// runtime/*/abi.hpp. A test compares them with the runtimes' headers where those are installed.
#pragma once

#include <cstddef>

#include "runtime/cuda/abi.hpp"
#include "runtime/hip/abi.hpp"

namespace berth::interpose::abi {

struct dim3_t {  // dim3
  unsigned x;
  unsigned y;
  unsigned z;
};

struct extent_t {  // hipExtent
  std::size_t width;
  std::size_t height;
  std::size_t depth;
};

struct pitched_t {  // hipPitchedPtr
  void* address;
  std::size_t pitch;
  std::size_t width;
  std::size_t height;
};

struct ipc_handle_t {  // hipIpcMemHandle_t, CUipcMemHandle
  char bytes[64];
};

struct hip_copy_2d_t {  // hip_Memcpy2D; the numbers of its types depend on the version
  std::size_t src_x;
  std::size_t src_y;
  int src_type;
  const void* src_host;
  void* src_device;
  void* src_array;
  std::size_t src_pitch;
  std::size_t dst_x;
  std::size_t dst_y;
  int dst_type;
  void* dst_host;
  void* dst_device;
  void* dst_array;
  std::size_t dst_pitch;
  std::size_t width;
  std::size_t rows;
};

struct hip_copy_3d_t {  // hipMemcpy3DParms
  void* src_array;
  std::size_t src_position[3];
  pitched_t src;
  void* dst_array;
  std::size_t dst_position[3];
  pitched_t dst;
  extent_t extent;  // in elements of the array where one end is an array
  int kind;
};

struct cuda_copy_3d_t {  // CUDA_MEMCPY3D_v2
  std::size_t src_x;
  std::size_t src_y;
  std::size_t src_z;
  std::size_t src_lod;
  int src_type;
  const void* src_host;
  unsigned long long src_device;
  void* src_array;
  void* src_reserved;
  std::size_t src_pitch;
  std::size_t src_height;
  std::size_t dst_x;
  std::size_t dst_y;
  std::size_t dst_z;
  std::size_t dst_lod;
  int dst_type;
  void* dst_host;
  unsigned long long dst_device;
  void* dst_array;
  void* dst_reserved;
  std::size_t dst_pitch;
  std::size_t dst_height;
  std::size_t width;
  std::size_t rows;
  std::size_t depth;
};

// CUDA_MEMCPY3D_PEER: the same layout, with a context where the other has reserved fields.
struct cuda_copy_3d_peer_t : cuda_copy_3d_t {};

struct cuda_launch_t {  // CUlaunchConfig
  unsigned grid_x;
  unsigned grid_y;
  unsigned grid_z;
  unsigned block_x;
  unsigned block_y;
  unsigned block_z;
  unsigned shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

}  // namespace berth::interpose::abi
