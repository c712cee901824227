// SPDX-License-Identifier: Apache-2.0
#include "emulator/launch.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/units.hpp"
#include "core/descriptor.hpp"
#include "emulator/shared_machine.hpp"
#include "emulator/topology/overlay.hpp"

namespace berth::emulator {
namespace {

namespace fs = std::filesystem;

std::string system_text(int number) {
  return std::strerror(number);  // NOLINT(concurrency-mt-unsafe)
}

// The memory that all processes of the machine share. It has no name: they open it through this
// process, and it goes with the last of them, even if we are killed.
result<descriptor> make_shared_memory(std::uint64_t slice_bytes) {
  descriptor file(::memfd_create("berth-emulator", MFD_CLOEXEC));
  const auto bytes = shared_file_bytes(slice_bytes);
  if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return error(errc::file_unwritable, system_text(errno), "memory of the emulated machine");
  }
  void* const at =
      ::mmap(nullptr, first_slice_offset, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) {
    return error(errc::file_unwritable, system_text(errno), "memory of the emulated machine");
  }
  initialise(*static_cast<machine_ledger*>(at));
  ::munmap(at, first_slice_offset);
  return file;
}

// A path that programs can use from any folder.
std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.empty() ? path : fs::absolute(path, ignored).string();
}

error bad_fault(std::string what) {
  return error(errc::usage, std::move(what), "--fault",
               "KIND[,nth=N|all][,from=SIZE][,by=DURATION][,kernel=NAME][,memory=device|gtt|user] "
               "with a kind of "
               "allocation-fails, queue-fails, kernel-faults, copy-slow, copy-corrupt");
}

result<void> apply_option(fault_spec& fault, std::string_view name, std::string_view value) {
  if (name == "nth") {
    if (value == "all") {
      fault.nth = 0;
      return {};
    }
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), fault.nth);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size() || fault.nth == 0) {
      return bad_fault(fmt::format("'{}' is no count from 1 on", value));
    }
    return {};
  }
  if (name == "from") {
    const auto bytes = try_parse_bytes(value);
    fault.at_least = bytes ? *bytes : 0;
    return bytes ? result<void>() : result<void>(bytes.error());
  }
  if (name == "by" && fault.kind == fault_kind::copy_slow) {
    const auto delay = try_parse_duration(value);
    fault.delay_ns = delay ? static_cast<std::uint64_t>(delay->count()) : 0;
    return delay ? result<void>() : result<void>(delay.error());
  }
  if (name == "kernel" && fault.kind == fault_kind::kernel_faults) {
    fault.only = value;
    return {};
  }
  if (name == "memory" && fault.kind == fault_kind::allocation_fails) {
    constexpr std::array<std::string_view, 3> kinds = {"device", "gtt", "user"};
    fault.only = value;
    return std::find(kinds.begin(), kinds.end(), value) != kinds.end()
               ? result<void>()
               : result<void>(bad_fault(fmt::format("'{}' is no kind of memory", value)));
  }
  return bad_fault(fmt::format("{} has no option '{}'", to_string(fault.kind), name));
}

}  // namespace

result<program::ending> run_on(const machine_plan& plan, const launch_request& request,
                               const program::held_signals& signals) {
  auto spec = spec_of(plan);
  auto memory = make_shared_memory(spec.slice_bytes);
  if (!memory) {
    return memory.error();
  }
  spec.memory_file = fmt::format("/proc/{}/fd/{}", ::getpid(), memory->get());
  spec.faults = request.faults;
  spec.trace_file = absolute(request.trace_file);
  spec.kernel_library = absolute(request.kernel_library);
  for (const auto& path : {spec.trace_file, spec.kernel_library}) {
    if (path.find('\n') != std::string::npos) {
      return error(errc::usage, "a path with a line break", path);
    }
  }
  if (!spec.trace_file.empty()) {
    const descriptor file(
        ::open(spec.trace_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) {
      return error(errc::file_unwritable, system_text(errno), spec.trace_file);
    }
  }
  const auto overlay = overlay_folder::create();
  if (!overlay) {
    return overlay.error();
  }
  if (const auto written = write_overlay(*overlay, plan, spec); !written) {
    return written.error();
  }
  auto start = request.program;
  start.environment.push_back(
      {.name = "LD_PRELOAD", .value = program::preload_list(request.preload)});
  start.environment.push_back({.name = overlay_variable, .value = overlay->root().string()});
  return program::run(start, signals);
}

result<std::filesystem::path> find_preload_library() {
  return program::find_library({.file = "libberth_emulator.so",
                                .variable = "BERTH_EMULATOR_LIBRARY",
                                .installed = BERTH_EMULATOR_INSTALLED});
}

result<fault_spec> parse_fault(std::string_view text) {
  const auto end = std::min(text.find(','), text.size());
  const auto kind = parse_fault_kind(text.substr(0, end));
  if (!kind) {
    return bad_fault(fmt::format("'{}' is no fault", text.substr(0, end)));
  }
  fault_spec fault{.kind = *kind, .nth = 1, .at_least = 0, .delay_ns = 0, .only = {}};
  text.remove_prefix(std::min(end + 1, text.size()));
  while (!text.empty()) {
    const auto stop = std::min(text.find(','), text.size());
    const auto option = text.substr(0, stop);
    const auto equals = option.find('=');
    if (equals == std::string_view::npos) {
      return bad_fault(fmt::format("'{}' is no NAME=VALUE", option));
    }
    if (const auto applied =
            apply_option(fault, option.substr(0, equals), option.substr(equals + 1));
        !applied) {
      return applied.error();
    }
    text.remove_prefix(std::min(stop + 1, text.size()));
  }
  if (fault.kind == fault_kind::copy_slow && fault.delay_ns == 0) {
    return bad_fault("copy-slow needs by=DURATION");
  }
  return fault;
}

}  // namespace berth::emulator
