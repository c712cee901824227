// SPDX-License-Identifier: Apache-2.0
#include "runtime/hip/devices.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "core/text.hpp"
#include "runtime/status.hpp"

namespace berth::runtime::hip {
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
    flag_row{attribute::fine_grained_memory, &device_info::fine_grained_memory},
    flag_row{attribute::large_bar, &device_info::large_bar},
};

constexpr std::array number_rows{
    number_row{attribute::compute_units, &device_info::compute_units},
    number_row{attribute::copy_engines, &device_info::copy_engines},
    number_row{attribute::wave_size, &device_info::wave_size},
    number_row{attribute::memory_clock_rate, &device_info::memory_clock_khz},
    number_row{attribute::memory_bus_width, &device_info::memory_bus_bits},
    number_row{attribute::host_numa_node, &device_info::numa_node},
};

std::optional<int> value_of(const api& calls, int attribute, int device) {
  int value = 0;
  const status answer = calls.hipDeviceGetAttribute(&value, attribute, device);
  if (answer != code::success) {
    forget_last_error(calls, answer);
    return std::nullopt;
  }
  return value;
}

// A text that a call writes into a buffer; empty if it fails.
template <typename Call>
std::string text_of(const api& calls, Call call, int device) {
  std::array<char, 256> buffer{};
  const status answer = call(buffer.data(), static_cast<int>(buffer.size()) - 1, device);
  if (answer != code::success) {
    forget_last_error(calls, answer);
    return {};
  }
  return buffer.data();
}

void read_identity(const api& calls, device_info& info) {
  info.name = text_of(calls, calls.hipDeviceGetName, info.index);
  if (auto address = text_of(calls, calls.hipDeviceGetPCIBusId, info.index); !address.empty()) {
    info.pci_address = text::to_lower(address);
  }
  unique_id uuid{};
  if (calls.hipDeviceGetUuid != nullptr) {
    const status answer = calls.hipDeviceGetUuid(&uuid, info.index);
    if (answer == code::success) {
      std::memcpy(info.uuid.emplace().data(), uuid.bytes, sizeof uuid.bytes);
    } else {
      forget_last_error(calls, answer);
    }
  }
}

device_info read_device(const api& calls, int device) {
  device_info info;
  info.index = device;
  read_identity(calls, info);
  std::size_t total = 0;
  if (const status answer = calls.hipDeviceTotalMem(&total, device); answer == code::success) {
    info.memory_total = total;
  } else {
    forget_last_error(calls, answer);
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
  return info;
}

}  // namespace

void forget_last_error(const api& calls, status failed) noexcept {
  if (calls.hipPeekAtLastError() == failed) {
    static_cast<void>(calls.hipGetLastError());
  }
}

result<std::vector<device_info>> list_devices(const api& calls) {
  int count = 0;
  const status answer = calls.hipGetDeviceCount(&count);
  if (answer != code::success) {
    const char* name = calls.hipGetErrorName(answer);
    forget_last_error(calls, answer);
    return failed_call("hipGetDeviceCount", name, answer);
  }
  if (count <= 0) {
    return error(errc::gpu_no_device, "the runtime counts no device", "hipGetDeviceCount");
  }
  std::vector<device_info> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int device = 0; device < count; ++device) {
    devices.push_back(read_device(calls, device));
  }
  return devices;
}

std::int64_t wall_clock_khz(const api& calls, int device) {
  constexpr std::int64_t usual_khz = 100'000;  // MI100 and later, where the attribute is missing
  const auto rate = value_of(calls, attribute::wall_clock_rate, device);
  return rate && *rate > 0 ? *rate : usual_khz;
}

}  // namespace berth::runtime::hip
