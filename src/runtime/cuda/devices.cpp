// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/devices.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/status.hpp"

namespace berth::runtime::cuda {
namespace {

struct flag_row {
  int attribute;
  std::optional<bool> device_info::*member;
};
struct number_row {
  int attribute;
  std::optional<int> device_info::*member;
};

constexpr std::array flag_rows{
    flag_row{attribute::integrated, &device_info::integrated},
    flag_row{attribute::unified_addressing, &device_info::unified_addressing},
    flag_row{attribute::managed_memory, &device_info::managed_memory},
    flag_row{attribute::concurrent_managed_access, &device_info::concurrent_managed_access},
    flag_row{attribute::direct_managed_access_from_host,
             &device_info::direct_managed_access_from_host},
    flag_row{attribute::pageable_access, &device_info::pageable_access},
    flag_row{attribute::pageable_uses_host_page_tables,
             &device_info::pageable_uses_host_page_tables},
    flag_row{attribute::host_native_atomics, &device_info::host_native_atomics},
    flag_row{attribute::can_map_host_memory, &device_info::can_map_host_memory},
    flag_row{attribute::host_register_supported, &device_info::host_register_supported},
};

constexpr std::array number_rows{
    number_row{attribute::compute_units, &device_info::compute_units},
    number_row{attribute::copy_engines, &device_info::copy_engines},
    number_row{attribute::wave_size, &device_info::wave_size},
    number_row{attribute::memory_clock_rate, &device_info::memory_clock_khz},
    number_row{attribute::memory_bus_width, &device_info::memory_bus_bits},
    number_row{attribute::host_numa_node, &device_info::numa_node},
};

std::optional<int> value_of(const api& calls, int attribute, device_t device) {
  int value = 0;
  return calls.cuDeviceGetAttribute(&value, attribute, device) == code::success
             ? std::optional(value)
             : std::nullopt;
}

template <typename Call>
std::string text_of(Call call, device_t device) {
  std::array<char, 256> buffer{};
  const auto room = static_cast<int>(buffer.size()) - 1;
  return call(buffer.data(), room, device) == code::success ? buffer.data() : "";
}

void read_identity(const api& calls, device_t device, device_info& info) {
  info.name = text_of(calls.cuDeviceGetName, device);
  if (auto address = text_of(calls.cuDeviceGetPCIBusId, device); !address.empty()) {
    info.pci_address = text::to_lower(address);
  }
  const auto major = value_of(calls, attribute::capability_major, device);
  const auto minor = value_of(calls, attribute::capability_minor, device);
  if (major && minor) {
    info.architecture = fmt::format("sm_{}{}", *major, *minor);
  }
  unique_id uuid{};
  if (calls.cuDeviceGetUuid != nullptr && calls.cuDeviceGetUuid(&uuid, device) == code::success) {
    std::memcpy(info.uuid.emplace().data(), uuid.bytes, sizeof uuid.bytes);
  }
}

device_info read_device(const api& calls, int index, device_t device) {
  device_info info;
  info.index = index;
  read_identity(calls, device, info);
  std::size_t total = 0;
  if (calls.cuDeviceTotalMem_v2(&total, device) == code::success) {
    info.memory_total = total;
  }
  for (const auto& row : flag_rows) {
    if (const auto value = value_of(calls, row.attribute, device)) {
      info.*row.member = *value != 0;
    }
  }
  for (const auto& row : number_rows) {
    info.*row.member = value_of(calls, row.attribute, device);
  }
  if (const auto l2 = value_of(calls, attribute::l2_bytes, device); l2 && *l2 > 0) {
    info.l2_bytes = static_cast<bytes_t>(*l2);
  }
  if (info.numa_node && *info.numa_node < 0) {
    info.numa_node.reset();
  }
  info.fine_grained_memory = false;
  return info;
}

}  // namespace

const char* name_of(const api& calls, status answer) noexcept {
  const char* name = nullptr;
  return calls.cuGetErrorName(answer, &name) == code::success && name != nullptr ? name
                                                                                 : "unknown error";
}

result<std::vector<device_entry>> list_devices(const api& calls) {
  int count = 0;
  if (const status answer = calls.cuInit(0); answer != code::success) {
    return failed_call("cuInit", name_of(calls, answer), answer);
  }
  if (const status answer = calls.cuDeviceGetCount(&count); answer != code::success) {
    return failed_call("cuDeviceGetCount", name_of(calls, answer), answer);
  }
  if (count <= 0) {
    return error(errc::gpu_no_device, "the driver counts no device", "cuDeviceGetCount");
  }
  std::vector<device_entry> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) {
    device_t handle = 0;
    if (const status answer = calls.cuDeviceGet(&handle, index); answer != code::success) {
      return failed_call("cuDeviceGet", name_of(calls, answer), answer);
    }
    devices.push_back({handle, read_device(calls, index, handle)});
  }
  return devices;
}

}  // namespace berth::runtime::cuda
