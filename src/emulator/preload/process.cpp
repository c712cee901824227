// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/process.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "emulator/preload/system.hpp"
#include "emulator/tried_rocm.hpp"

namespace berth::emulator {
namespace {

struct open_state {
  driver* made;
  pid_t owner;
  struct stat kfd;
  struct stat memory;
};

std::atomic<const open_state*>& state() {
  static std::atomic<const open_state*> current{nullptr};
  return current;
}

// Of which file a descriptor is; an inode of 0 for none. Not interposed.
struct stat identity_of(int descriptor) noexcept {
  struct stat about {};
  if (syscall(SYS_fstat, descriptor, &about) != 0) {
    about.st_ino = 0;
  }
  return about;
}

bool same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_ino != 0;
}

int warn_of_untried(dl_phdr_info* object, std::size_t, void*) {
  const std::string_view path = object->dlpi_name != nullptr ? object->dlpi_name : "";
  if (path.find(hsa_runtime_stem) == std::string_view::npos) {
    return 0;
  }
  std::array<char, PATH_MAX> resolved{};
  const auto length = readlink(object->dlpi_name, resolved.data(), resolved.size() - 1);
  const std::string_view target =
      length > 0 ? std::string_view(resolved.data(), static_cast<std::size_t>(length)) : path;
  const auto file = target.substr(target.rfind('/') + 1);
  if (!is_tried(file)) {
    say("this ROCm (" + std::string(file) + ") has not been tried; " +
        std::string(tried_hsa_runtimes.front()) + " has");
  }
  return 1;
}

const open_state* make_driver() {
  const auto* const spec = described_machine();
  if (spec == nullptr) {
    return nullptr;
  }
  dl_iterate_phdr(warn_of_untried, nullptr);
  auto* const made = new driver(*spec);
  made->machine().trace.write(trace_line("start")
                                  .field("machine", spec->name)
                                  .field("gpus", spec->gpus.size())
                                  .field("program", program_invocation_name));
  return new open_state{.made = made,
                        .owner = getpid(),
                        .kfd = identity_of(made->kfd_descriptor()),
                        .memory = identity_of(made->machine().memory.descriptor())};
}

// What the user should know of the run: kernels that have not run.
[[gnu::destructor]] void close_process() {
  auto* const made = opened_driver();
  if (made == nullptr || is_forked_child()) {
    return;
  }
  auto& machine = made->machine();
  const std::lock_guard hold(machine.without_effect_lock);
  std::uint64_t total = 0;
  std::string names;
  for (const auto& [kernel, count] : machine.without_effect) {
    total += count;
    names += (names.empty() ? "" : ", ") + kernel + " (" + std::to_string(count) + ")";
  }
  if (total > 0) {
    say(std::to_string(total) + " kernels completed without effect: " + names);
  }
  machine.trace.write(trace_line("end").field("kernels_without_effect", total));
}

}  // namespace

const std::string& overlay_root() {
  static const auto& root = *[] {
    const char* const value = secure_getenv(overlay_variable);
    return new std::string(value != nullptr ? value : "");
  }();
  return root;
}

const machine_spec* described_machine() {
  static const machine_spec* const spec = []() -> const machine_spec* {
    if (overlay_root().empty()) {
      return nullptr;
    }
    auto read = read_spec(read_whole_file(overlay_root() + "/" + std::string(spec_file_name)));
    if (!read || read->gpus.size() > most_gpus) {
      say("no machine in " + overlay_root());
      return nullptr;
    }
    return new machine_spec(std::move(*read));
  }();
  return spec;
}

driver* open_driver() {
  static std::once_flag once;
  std::call_once(once, [] { state().store(make_driver()); });
  return opened_driver();
}

driver* opened_driver() noexcept {
  const auto* const current = state().load();
  return current != nullptr ? current->made : nullptr;
}

descriptor_kind kind_of_descriptor(int descriptor) noexcept {
  const auto* const current = state().load();
  if (current == nullptr || descriptor < 0) {
    return descriptor_kind::foreign;
  }
  const auto found = identity_of(descriptor);
  if (same_file(found, current->kfd)) {
    return descriptor_kind::kfd;
  }
  return same_file(found, current->memory) ? descriptor_kind::render : descriptor_kind::foreign;
}

bool is_forked_child() noexcept {
  const auto* const current = state().load();
  return current != nullptr && current->owner != getpid();
}

}  // namespace berth::emulator
