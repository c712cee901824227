// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/sharing.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace berth::runtime::sim {
namespace {

// What is asked of one resource: all together, and the most of one.
struct load {
  double sum = 0;
  double most = 0;
  unsigned count = 0;

  void add(double rate) noexcept {
    sum += rate;
    most = std::max(most, rate);
    ++count;
  }
  // Several together get no more than the fastest would get alone.
  [[nodiscard]] double factor() const noexcept { return sum > most ? most / sum : 1.0; }
  [[nodiscard]] double granted() const noexcept { return std::min(sum, most); }
};

struct device_load {
  load to_device;
  load to_host;
  unsigned using_memory = 0;
  unsigned dma_copies = 0;
  unsigned kernel_copies = 0;
};

double factor_of_both(const load& one, const load& other, double limit) noexcept {
  const double sum = one.granted() + other.granted();
  const bool both = one.count > 0 && other.count > 0;
  return both && limit > 0 && sum > limit ? limit / sum : 1.0;
}

// In hundredths of ns per byte, rates can be anything; what cannot be told takes no share.
bool draws(double rate) noexcept {
  return rate > 0 && rate < 1e6;
}

using device_loads = std::map<int, device_load>;
using peer_loads = std::map<std::pair<int, int>, load>;

void add(const operation& one, device_loads& devices, peer_loads& peers) {
  auto& here = devices[one.device];
  if (draws(one.cost.to_device_gb_per_s)) {
    here.to_device.add(one.cost.to_device_gb_per_s);
  }
  if (draws(one.cost.to_host_gb_per_s)) {
    here.to_host.add(one.cost.to_host_gb_per_s);
  }
  if (one.cost.peer >= 0 && draws(one.cost.peer_gb_per_s)) {
    peers[{one.device, one.cost.peer}].add(one.cost.peer_gb_per_s);
  }
  here.using_memory += one.cost.uses_memory ? 1 : 0;
  const bool is_copy = std::holds_alternative<copy_work>(one.what);
  here.dma_copies += is_copy && !one.cost.by_kernel_copy ? 1 : 0;
  here.kernel_copies += one.cost.by_kernel_copy ? 1 : 0;
}

double rate_of(const operation& one, const device_loads& devices, const peer_loads& peers,
               const costs& of) {
  const auto& here = devices.at(one.device);
  double rate = 1;
  const double both = factor_of_both(here.to_device, here.to_host, of.bidirectional_gb_per_s());
  if (draws(one.cost.to_device_gb_per_s)) {
    rate = std::min(rate, here.to_device.factor() * both);
  }
  if (draws(one.cost.to_host_gb_per_s)) {
    rate = std::min(rate, here.to_host.factor() * both);
  }
  if (one.cost.peer >= 0 && draws(one.cost.peer_gb_per_s)) {
    const auto& there = peers.at({one.device, one.cost.peer});
    const auto back = peers.find({one.cost.peer, one.device});
    const double shared =
        back == peers.end() ? 1.0
                            : factor_of_both(there, back->second, of.peer_bidirectional_gb_per_s());
    rate = std::min(rate, there.factor() * shared);
  }
  if (one.cost.uses_memory && here.using_memory > 1) {
    rate = std::min(rate, 1.0 / here.using_memory);
  }
  if (one.cost.slowed_by_copies) {
    rate /= here.kernel_copies > 0 ? of.slowdown_beside_kernel_copy()
            : here.dma_copies > 0  ? of.slowdown_beside_dma()
                                   : 1.0;
  }
  return rate;
}

}  // namespace

void share(std::span<const std::shared_ptr<operation>> running, costs& of) {
  device_loads devices;
  peer_loads peers;
  for (const auto& one : running) {
    add(*one, devices, peers);
  }
  for (const auto& one : running) {
    one->rate = rate_of(*one, devices, peers, of);
  }
}

}  // namespace berth::runtime::sim
