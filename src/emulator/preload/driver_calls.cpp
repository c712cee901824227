// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/driver_calls.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "emulator/preload/aql_queue.hpp"
#include "emulator/preload/hsa_abi.hpp"
#include "emulator/preload/kfd_abi.hpp"
#include "emulator/preload/memory_calls.hpp"
#include "emulator/preload/sdma_queue.hpp"

namespace berth::emulator {
namespace {

int get_version(driver&, kfd::get_version_args& args) {
  args.major_version = 1;
  args.minor_version = 8;  // 1.4 and later: no work-arounds for old drivers
  return 0;
}

// --- queues ---

struct queue_words {
  std::optional<located> ring;
  std::uint64_t* write = nullptr;
  std::uint64_t* read = nullptr;
};

queue_words words_of(driver& in, const kfd::create_queue_args& args) {
  auto& machine = in.machine();
  return {.ring = machine.locate(args.ring_base_address),
          .write = machine.word<std::uint64_t>(args.write_pointer_address),
          .read = machine.word<std::uint64_t>(args.read_pointer_address)};
}

int create_queue(driver& in, kfd::create_queue_args& args) {
  auto& machine = in.machine();
  const auto gpu = gpu_index(in, args.gpu_id);
  const auto type = static_cast<kfd::queue_type>(args.queue_type);
  const auto words = words_of(in, args);
  if (!gpu || !words.ring || words.ring->available < args.ring_size ||
      args.ring_size < hsa::aql_packet_bytes || !std::has_single_bit(args.ring_size) ||
      words.write == nullptr || words.read == nullptr || type == kfd::queue_type::compute ||
      type > kfd::queue_type::sdma_xgmi) {
    return EINVAL;
  }
  if (machine.faults.occurs(fault_kind::queue_fails)) {
    return ENOMEM;
  }
  const queue_ring ring{.id = in.next_queue_id(),
                        .gpu = *gpu,
                        .base = words.ring->host,
                        .bytes = args.ring_size,
                        .write = words.write,
                        .read = words.read};
  constexpr std::uint32_t doorbells_in_region = 1024;
  const auto region = std::uint64_t{machine.spec.gpus[*gpu].kfd_node} << doorbell_region_shift;
  args.queue_id = ring.id;
  args.doorbell_offset = region + ring.id % doorbells_in_region * sizeof(std::uint64_t);
  std::memset(in.kfd_memory() + args.doorbell_offset, 0, sizeof(std::uint64_t));
  const bool compute = type == kfd::queue_type::aql;
  machine.trace.write(trace_line("queue_create")
                          .field("queue", ring.id)
                          .field("gpu", *gpu)
                          .field("engine", compute ? std::string_view("kernel") : "dma")
                          .field("type", args.queue_type)
                          .field("ring_bytes", args.ring_size));
  if (compute) {
    in.engines().add(std::make_unique<aql_queue>(machine, ring));
  } else {
    in.engines().add(std::make_unique<sdma_queue>(machine, ring));
  }
  return 0;
}

int destroy_queue(driver& in, kfd::destroy_queue_args& args) {
  if (!in.engines().remove(args.queue_id)) {
    return EINVAL;
  }
  in.machine().trace.write(trace_line("queue_destroy").field("queue", args.queue_id));
  return 0;
}

template <typename Args>
int needs_queue(driver& in, Args& args) {
  return in.engines().has(args.queue_id) ? 0 : EINVAL;
}

int alloc_queue_gws(driver& in, kfd::alloc_queue_gws_args& args) {
  args.first_gws = 0;
  return needs_queue(in, args);
}

template <typename Args>
int needs_gpu(driver& in, Args& args) {
  return gpu_index(in, args.gpu_id) ? 0 : EINVAL;
}

// --- devices ---

int get_clock_counters(driver&, kfd::get_clock_counters_args& args) {
  // Whole ticks, so that user space finds exactly the rate at which device timestamps count.
  const auto now = boot_time_ns() / ns_per_tick * ns_per_tick;
  args.gpu_clock_counter = now / ns_per_tick;
  args.cpu_clock_counter = now;
  args.system_clock_counter = now;
  args.system_clock_freq = 1'000'000'000;
  return 0;
}

int get_tile_config(driver& in, kfd::get_tile_config_args& args) {
  args.num_tile_configs = 0;
  args.num_macro_tile_configs = 0;
  args.gb_addr_config = 0x22010042;
  args.num_banks = 0;
  args.num_ranks = 0;
  return needs_gpu(in, args);
}

// The apertures of GFX9 and later; general addresses are those of the host.
int get_apertures(driver& in, kfd::get_apertures_args& args) {
  const auto& gpus = in.machine().spec.gpus;
  const auto wanted = std::min<std::size_t>(args.num_of_nodes, gpus.size());
  if (args.num_of_nodes == 0) {
    args.num_of_nodes = static_cast<std::uint32_t>(gpus.size());
    return 0;
  }
  auto* const apertures = host_pointer<kfd::device_apertures>(args.apertures_pointer);
  for (std::size_t index = 0; index < wanted; ++index) {
    constexpr auto lds = std::uint64_t{1} << 48U;
    constexpr auto scratch = std::uint64_t{2} << 48U;
    constexpr std::uint64_t last_of_aperture = 0xffffffff;
    apertures[index] = {.lds_base = lds,
                        .lds_limit = lds | last_of_aperture,
                        .scratch_base = scratch,
                        .scratch_limit = scratch | last_of_aperture,
                        .gpuvm_base = 0x1000,
                        .gpuvm_limit = (std::uint64_t{1} << 47U) - 1,
                        .gpu_id = gpus[index].kfd_id,
                        .pad = 0};
  }
  args.num_of_nodes = static_cast<std::uint32_t>(wanted);
  return 0;
}

int set_xnack_mode(driver& in, kfd::set_xnack_mode_args& args) {
  auto& machine = in.machine();
  if (args.xnack_enabled < 0) {
    args.xnack_enabled = machine.xnack.load() == xnack_mode::on ? 1 : 0;
    return 0;
  }
  if (!in.engines().empty()) {
    return EBUSY;
  }
  if (args.xnack_enabled != 0 && machine.spec.xnack_can == xnack_support::unsupported) {
    return EPERM;
  }
  machine.xnack = args.xnack_enabled != 0 ? xnack_mode::on : xnack_mode::off;
  return 0;
}

// --- events ---

int create_event(driver& in, kfd::create_event_args& args) {
  const auto id = in.machine().events.create(
      static_cast<kfd::event_type>(args.event_type),
      args.auto_reset != 0 ? reset_rule::by_wait : reset_rule::by_program);
  if (!id) {
    return ENOSPC;
  }
  args.event_id = *id;
  args.event_trigger_data = *id;
  args.event_slot_index = *id;
  const auto type = static_cast<kfd::event_type>(args.event_type);
  if (type == kfd::event_type::signal || type == kfd::event_type::debug) {
    // Any value but 0, with each call: without it, signals have no mailbox and nobody is woken.
    args.event_page_offset = std::uint64_t{2} << 62U;
  }
  return 0;
}

int destroy_event(driver& in, kfd::event_args& args) {
  return in.machine().events.destroy(args.event_id) ? 0 : EINVAL;
}

int set_event(driver& in, kfd::event_args& args) {
  return in.machine().events.set(args.event_id) ? 0 : EINVAL;
}

int reset_event(driver& in, kfd::event_args& args) {
  return in.machine().events.reset(args.event_id) ? 0 : EINVAL;
}

int wait_events(driver& in, kfd::wait_events_args& args) {
  const std::span events(host_pointer<kfd::event_data>(args.events_pointer), args.num_events);
  const auto outcome = in.machine().events.wait(
      events, args.wait_for_all != 0 ? wait_rule::all : wait_rule::any, args.timeout);
  struct answer {
    kfd::wait_result result;
    int error;
  };
  constexpr std::array<answer, 4> answers = {{{kfd::wait_result::complete, 0},
                                              {kfd::wait_result::timeout, 0},
                                              {kfd::wait_result::fail, EINVAL},
                                              {kfd::wait_result::fail, EIO}}};
  const auto& [result, error] = answers[static_cast<std::size_t>(outcome)];
  args.wait_result = static_cast<std::uint32_t>(result);
  return error;
}

// --- the table ---

// The arguments as this version lays them out, whatever size the caller's version has.
template <typename Args, int (*Function)(driver&, Args&)>
int with(driver& in, void* argument, std::size_t bytes) {
  Args args{};
  const auto known = std::min(bytes, sizeof(args));
  std::memcpy(&args, argument, known);
  const int error = Function(in, args);
  std::memcpy(argument, &args, known);
  return error;
}

// The attributes follow the arguments, so the size differs from call to call.
int svm_with(driver& in, void* argument, std::size_t bytes) {
  if (bytes < sizeof(kfd::svm_args)) {
    return EINVAL;
  }
  auto& args = *static_cast<kfd::svm_args*>(argument);
  if ((bytes - sizeof(args)) / sizeof(kfd::svm_attribute_value) < args.nattr) {
    return EINVAL;
  }
  auto* const first = static_cast<char*>(argument) + sizeof(args);
  return svm(in, args, {reinterpret_cast<kfd::svm_attribute_value*>(first), args.nattr});
}

// AMD's runtime asks for the debugger and goes on without it.
int no_debugger(driver&, void*, std::size_t) {
  return ENOTTY;
}

struct table_row {
  kfd::call number;
  int (*run)(driver&, void*, std::size_t);
};

constexpr std::array<table_row, 27> table = {{
    {kfd::call::get_version, with<kfd::get_version_args, get_version>},
    {kfd::call::create_queue, with<kfd::create_queue_args, create_queue>},
    {kfd::call::destroy_queue, with<kfd::destroy_queue_args, destroy_queue>},
    {kfd::call::set_memory_policy,
     with<kfd::set_memory_policy_args, needs_gpu<kfd::set_memory_policy_args>>},
    {kfd::call::get_clock_counters, with<kfd::get_clock_counters_args, get_clock_counters>},
    {kfd::call::update_queue, with<kfd::update_queue_args, needs_queue<kfd::update_queue_args>>},
    {kfd::call::create_event, with<kfd::create_event_args, create_event>},
    {kfd::call::destroy_event, with<kfd::event_args, destroy_event>},
    {kfd::call::set_event, with<kfd::event_args, set_event>},
    {kfd::call::reset_event, with<kfd::event_args, reset_event>},
    {kfd::call::wait_events, with<kfd::wait_events_args, wait_events>},
    {kfd::call::set_scratch_backing,
     with<kfd::set_scratch_backing_args, needs_gpu<kfd::set_scratch_backing_args>>},
    {kfd::call::get_tile_config, with<kfd::get_tile_config_args, get_tile_config>},
    {kfd::call::set_trap_handler,
     with<kfd::set_trap_handler_args, needs_gpu<kfd::set_trap_handler_args>>},
    {kfd::call::get_apertures, with<kfd::get_apertures_args, get_apertures>},
    {kfd::call::acquire_vm, with<kfd::acquire_vm_args, needs_gpu<kfd::acquire_vm_args>>},
    {kfd::call::alloc_memory, with<kfd::alloc_memory_args, alloc_memory>},
    {kfd::call::free_memory, with<kfd::free_memory_args, free_memory>},
    {kfd::call::map_memory, with<kfd::map_memory_args, map_memory>},
    {kfd::call::unmap_memory, with<kfd::map_memory_args, map_memory>},
    {kfd::call::set_cu_mask, with<kfd::set_cu_mask_args, needs_queue<kfd::set_cu_mask_args>>},
    {kfd::call::alloc_queue_gws, with<kfd::alloc_queue_gws_args, alloc_queue_gws>},
    {kfd::call::svm, svm_with},
    {kfd::call::set_xnack_mode, with<kfd::set_xnack_mode_args, set_xnack_mode>},
    {kfd::call::ipc_import, with<kfd::ipc_import_args, ipc_import>},
    {kfd::call::ipc_export, with<kfd::ipc_export_args, ipc_export>},
    {kfd::call::debug_trap, no_debugger},
}};

}  // namespace

driver::driver(machine_spec spec)
    : machine_(std::move(spec)),
      engines_(*new poller),
      kfd_descriptor_(moved_up(memfd_create("berth-emulator-kfd", MFD_CLOEXEC))) {
  if (kfd_descriptor_ < 0 || ftruncate(kfd_descriptor_, static_cast<off_t>(kfd_file_bytes)) != 0) {
    return;
  }
  void* const at = mmap(nullptr, kfd_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        kfd_descriptor_, 0);
  if (at != MAP_FAILED) {
    kfd_memory_ = static_cast<char*>(at);
    madvise(at, kfd_file_bytes, MADV_DONTDUMP);
  }
}

int driver::call(unsigned long request, void* argument) {
  const auto number = static_cast<kfd::call>(_IOC_NR(request));
  const auto* const row = std::find_if(table.begin(), table.end(),
                                       [&](const table_row& one) { return one.number == number; });
  if (row == table.end()) {
    say_once("unknown call of the driver, number " + std::to_string(_IOC_NR(request)) +
             ": refused, as a kernel without it would");
    return ENOTTY;
  }
  engines_.wake();
  return row->run(*this, argument, _IOC_SIZE(request));
}

}  // namespace berth::emulator
