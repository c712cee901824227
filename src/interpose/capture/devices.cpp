// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/devices.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "interpose/capture/real_calls.hpp"

namespace berth::interpose {
namespace {

// The calls of both interfaces take the same arguments.
struct device_calls {
  call_id count;
  call_id name;
  call_id pci_address;
  call_id memory;
};

constexpr device_calls calls_of(api which) noexcept {
  return which == api::hip
             ? device_calls{call_id::hipGetDeviceCount, call_id::hipDeviceGetName,
                            call_id::hipDeviceGetPCIBusId, call_id::hipDeviceTotalMem}
             : device_calls{call_id::cuDeviceGetCount, call_id::cuDeviceGetName,
                            call_id::cuDeviceGetPCIBusId, call_id::cuDeviceTotalMem_v2};
}

template <class... Arguments>
bool ask(call_id call, Arguments... arguments) noexcept {
  auto* const real = reinterpret_cast<int (*)(Arguments...)>(real_call(call));
  return real != nullptr && real(arguments...) == 0;
}

std::int32_t node_of(std::array<char, 32> address) noexcept {
  for (char& letter : address) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  std::array<char, 96> path{};
  std::snprintf(path.data(), path.size(), "/sys/bus/pci/devices/%s/numa_node", address.data());
  std::array<char, 16> text{};
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return -1;
  }
  const auto length = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  return length > 0 ? std::atoi(text.data()) : -1;
}

}  // namespace

known_devices ask_for_devices(api which) noexcept {
  known_devices found;
  const auto calls = calls_of(which);
  int count = 0;
  if (!ask(calls.count, &count) || count < 0) {
    return found;
  }
  found.count = std::min(static_cast<std::size_t>(count), known_devices::most);
  for (std::size_t index = 0; index < found.count; ++index) {
    auto& one = found.of[index];
    const auto device = static_cast<int>(index);
    std::size_t memory = 0;
    ask(calls.name, one.name.data(), static_cast<int>(one.name.size() - 1), device);
    if (ask(calls.memory, &memory, device)) {
      one.memory = memory;
    }
    if (ask(calls.pci_address, one.pci_address.data(), static_cast<int>(one.pci_address.size() - 1),
            device)) {
      one.numa_node = node_of(one.pci_address);
    }
  }
  return found;
}

}  // namespace berth::interpose
