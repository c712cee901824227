// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/cupti.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "interpose/capture/clock.hpp"
#include "interpose/capture/no_signals.hpp"
#include "interpose/capture/real_calls.hpp"

namespace berth::interpose {
namespace {

using namespace cupti_abi;

constexpr std::size_t buffer_bytes = std::size_t{256} << 10;

// The callbacks carry no argument of ours, so they find the source here.
std::atomic<cupti_source*> the_source{nullptr};

constexpr std::array activities{activity::copy, activity::peer_copy, activity::fill,
                                activity::kernel, activity::migration};

// --- Finding it ---------------------------------------------------------------------------------

using path_text = std::array<char, 1024>;

struct search {
  path_text mapped{};          // CUPTI itself
  path_text toolkit_folder{};  // of a CUDA runtime that the program has brought
};

void copy_path(path_text& to, std::string_view path) noexcept {
  if (path.size() < to.size()) {
    std::memcpy(to.data(), path.data(), path.size());
    to[path.size()] = '\0';
  }
}

int look_at_object(dl_phdr_info* object, std::size_t, void* state) {
  auto& found = *static_cast<search*>(state);
  const std::string_view path(object->dlpi_name == nullptr ? "" : object->dlpi_name);
  const auto slash = path.rfind('/');
  const auto name = path.substr(slash + 1);
  if (name.starts_with("libcupti.so")) {
    copy_path(found.mapped, path);
  } else if (name.starts_with("libcudart.so") && slash != std::string_view::npos) {
    copy_path(found.toolkit_folder, path.substr(0, slash));
  }
  return 0;
}

void* open_in(const char* folder, const char* below) noexcept {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    path_text path{};
    std::snprintf(path.data(), path.size(), "%s%s/%s", folder, below, name);
    if (::access(path.data(), R_OK) == 0) {
      if (void* const handle = ::dlopen(path.data(), RTLD_LAZY | RTLD_LOCAL)) {
        return handle;
      }
    }
  }
  return nullptr;
}

void* open_cupti() noexcept {
  if (const char* const named = std::getenv("BERTH_CUPTI")) {
    return ::dlopen(named, RTLD_LAZY | RTLD_LOCAL);
  }
  search found;
  ::dl_iterate_phdr(look_at_object, &found);
  if (found.mapped[0] != '\0') {
    return ::dlopen(found.mapped.data(), RTLD_LAZY | RTLD_NOLOAD);
  }
  // Beside the CUDA runtime that is there, as in the wheels of Python and in a toolkit.
  if (found.toolkit_folder[0] != '\0') {
    for (const char* below : {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64"}) {
      if (void* const handle = open_in(found.toolkit_folder.data(), below)) {
        return handle;
      }
    }
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (void* const handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      return handle;
    }
  }
  void* const handle = open_in("/usr/local/cuda/extras/CUPTI/lib64", "");
  return handle != nullptr ? handle : open_in("/usr/local/cuda/lib64", "");
}

template <class Function>
void find(Function*& to, void* handle, const char* name) noexcept {
  to = reinterpret_cast<Function*>(real_dlsym()(handle, name));
}

// --- What its numbers mean ----------------------------------------------------------------------

// By CUpti_ActivityMemcpyKind: 1 to the device, 2 to the host, 3 host to array, 4 array to host,
// 5 to 8 on a device, 9 on the host, 10 between devices.
constexpr std::array<way, 11> ways{way::by_address, way::to_device,      way::to_host,
                                   way::to_device,  way::to_host,        way::on_device,
                                   way::on_device,  way::on_device,      way::on_device,
                                   way::on_host,    way::between_devices};

// By CUpti_ActivityMemoryKind; the last two are static memory.
constexpr std::array<named_memory, 8> memories{
    named_memory::none,  named_memory::pageable, named_memory::pinned, named_memory::device,
    named_memory::array, named_memory::managed,  named_memory::device, named_memory::managed};

template <class Table>
constexpr std::uint8_t number_in(const Table& table, std::uint8_t index) noexcept {
  return static_cast<std::uint8_t>(index < table.size() ? table[index] : table[0]);
}

// CUpti_ActivityUnifiedMemoryCounterConfig
struct migration_config {
  int scope;    // 1: one device of the process
  int counter;  // 1 to the device, 2 to the host
  std::uint32_t device;
  std::uint32_t enable;
};

constexpr int counted_to_device = 1;
constexpr int counted_to_host = 2;

template <class Record>
const Record& as(const std::uint8_t* record) noexcept {
  return *reinterpret_cast<const Record*>(record);  // CUPTI aligns them to 8 bytes
}

}  // namespace

// --- Begin and end ------------------------------------------------------------------------------

bool cupti_source::load() noexcept {
  void* const handle = open_cupti();
  if (handle == nullptr) {
    state_.store("none: no libcupti was found (BERTH_CUPTI can name it)");
    return false;
  }
  find(calls_.register_callbacks, handle, "cuptiActivityRegisterCallbacks");
  find(calls_.timestamp, handle, "cuptiGetTimestamp");
  find(calls_.enable, handle, "cuptiActivityEnable");
  find(calls_.disable, handle, "cuptiActivityDisable");
  find(calls_.flush_all, handle, "cuptiActivityFlushAll");
  find(calls_.next_record, handle, "cuptiActivityGetNextRecord");
  find(calls_.count_dropped, handle, "cuptiActivityGetNumDroppedRecords");
  find(calls_.configure_migrations, handle, "cuptiActivityConfigureUnifiedMemoryCounter");
  if (calls_.register_callbacks == nullptr || calls_.timestamp == nullptr ||
      calls_.enable == nullptr || calls_.disable == nullptr || calls_.flush_all == nullptr ||
      calls_.next_record == nullptr) {
    state_.store("none: libcupti lacks calls of its activity interface");
    return false;
  }
  return true;
}

bool cupti_source::enable() const noexcept {
  if (calls_.register_callbacks(reinterpret_cast<void*>(&give_buffer),
                                reinterpret_cast<void*>(&take_buffer)) != 0) {
    return false;
  }
  if (calls_.configure_migrations != nullptr) {
    std::array<migration_config, 2> config{
        {{1, counted_to_device, 0, 1}, {1, counted_to_host, 0, 1}}};
    calls_.configure_migrations(config.data(), config.size());
  }
  // A machine without managed memory refuses migrations: then there are none.
  return std::all_of(activities.begin(), activities.end(), [&](activity one) {
    return calls_.enable(static_cast<int>(one)) == 0 || one == activity::migration;
  });
}

void cupti_source::begin() noexcept {
  if (active_.load() || !load()) {
    return;
  }
  the_source.store(this);
  if (!enable()) {
    disable();
    state_.store("none: CUPTI is in use, or may not be used here");
    return;
  }
  active_.store(true);
  state_.store("cupti");
}

void cupti_source::disable() const noexcept {
  for (const auto one : activities) {
    calls_.disable(static_cast<int>(one));
  }
}

void cupti_source::deliver() noexcept {
  if (active_.load()) {
    calls_.flush_all(0);
  }
}

void cupti_source::stand_aside() noexcept {
  if (active_.exchange(false)) {
    // Disabled first: what is still enabled takes a new buffer at once, and the program's callback
    // would be given ours.
    disable();
    calls_.flush_all(1);
    state_.store("cupti, until the program began to use CUPTI itself");
  } else if (std::string_view(state_.load()).starts_with("none: CUDA")) {
    state_.store("none: the program uses CUPTI itself");
  }
}

void cupti_source::end() noexcept {
  if (active_.exchange(false)) {
    calls_.flush_all(1);
    disable();
  }
}

// --- Records ------------------------------------------------------------------------------------

std::uint8_t* own_buffers::give() noexcept {
  void* const got =
      ::mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) {
    return nullptr;
  }
  for (auto& place : out_) {
    std::uint8_t* none = nullptr;
    if (place.compare_exchange_strong(none, static_cast<std::uint8_t*>(got))) {
      return static_cast<std::uint8_t*>(got);
    }
  }
  ::munmap(got, buffer_bytes);
  return nullptr;
}

bool own_buffers::take_back(const std::uint8_t* buffer) noexcept {
  for (auto& place : out_) {
    if (place.load() == buffer) {
      place.store(nullptr);
      return true;
    }
  }
  return false;
}

void cupti_source::give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  auto* const source = the_source.load();
  *records = 0;  // as many as fit
  *buffer = source == nullptr ? nullptr : source->buffers_.give();
  *bytes = *buffer == nullptr ? 0 : buffer_bytes;
}

void cupti_source::take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                               std::size_t, std::size_t used) {
  auto* const source = the_source.load();
  if (source != nullptr && source->buffers_.take_back(buffer)) {
    source->take(buffer, used);
    ::munmap(buffer, buffer_bytes);
    std::size_t lost = 0;
    if (source->calls_.count_dropped != nullptr &&
        source->calls_.count_dropped(context, stream, &lost) == 0) {
      source->to_.devices().note_dropped(lost);
    }
  }
}

// --- The program's own use ----------------------------------------------------------------------

void cupti_source::adopt(buffer_callbacks& callbacks) noexcept {
  if (the_source.load() == this && callbacks.completed != nullptr) {
    program_requested_.store(callbacks.requested);
    program_completed_.store(callbacks.completed);
    callbacks.completed = &pass_buffer;
  }
}

void cupti_source::pass_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                               std::size_t bytes, std::size_t used) {
  auto* const source = the_source.load();
  if (source->buffers_.take_back(buffer)) {
    source->hand_over(context, stream, buffer, used);
    ::munmap(buffer, buffer_bytes);
  } else if (const auto completed = source->program_completed_.load()) {
    completed(context, stream, buffer, bytes, used);
  }
}

// In as many of the program's buffers as it takes; a record is never cut.
void cupti_source::hand_over(void* context, std::uint32_t stream, std::uint8_t* records,
                             std::size_t used) noexcept {
  const auto requested = program_requested_.load();
  const auto completed = program_completed_.load();
  std::uint8_t* record = nullptr;
  // A record ends where the next one begins, the last where the used part ends.
  const auto next_end = [&] {
    return calls_.next_record(records, used, &record) == 0
               ? static_cast<std::size_t>(record - records)
               : used;
  };
  std::size_t begin = next_end();  // of the first record
  std::size_t boundary = next_end();
  while (begin < used && requested != nullptr) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0;
    std::size_t most = 0;
    requested(&buffer, &bytes, &most);
    if (buffer == nullptr) {
      return;
    }
    std::size_t end = begin;
    for (std::size_t count = 0;
         end < used && boundary - begin <= bytes && (most == 0 || count < most); ++count) {
      end = boundary;
      boundary = end < used ? next_end() : used;
    }
    std::memcpy(buffer, records + begin, end - begin);
    completed(context, stream, buffer, bytes, end - begin);
    if (end == begin) {
      return;  // its buffers are smaller than a record
    }
    begin = end;
  }
}

std::optional<clock_shift> cupti_source::find_clock_shift() const noexcept {
  std::uint64_t theirs = 0;
  const auto before = monotonic_ns();
  if (calls_.timestamp(&theirs) != 0) {
    return std::nullopt;
  }
  return clock_shift{before + (monotonic_ns() - before) / 2 - theirs};
}

void cupti_source::take(std::uint8_t* buffer, std::size_t bytes) noexcept {
  std::uint8_t* record = nullptr;
  const no_signals calm;  // a handler that ends the process comes back here, to a lock that is held
  const auto found = find_clock_shift();
  if (!found) {
    while (calls_.next_record(buffer, bytes, &record) == 0) {
      to_.devices().note_dropped(1);  // its times would be of another clock
    }
    return;
  }
  const auto shift = *found;
  while (calls_.next_record(buffer, bytes, &record) == 0) {
    int kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    switch (static_cast<activity>(kind)) {
      case activity::copy:
      case activity::peer_copy:
        take(as<copy_record>(record), shift);
        break;
      case activity::fill:
        take(as<fill_record>(record), shift);
        break;
      case activity::kernel:
        take(as<kernel_record>(record), shift);
        break;
      case activity::migration:
        take(as<migration_record>(record), shift);
        break;
    }
  }
}

void cupti_source::take(const copy_record& from, clock_shift shift) noexcept {
  to_.devices().add({.what = record_id::device_copy,
                     .begin = shift(from.begin),
                     .end = shift(from.end),
                     .device = from.device,
                     .stream = from.stream,
                     .bytes = from.bytes,
                     .way = number_in(ways, from.copy_kind),
                     .dst_memory = number_in(memories, from.dst_kind),
                     .src_memory = number_in(memories, from.src_kind),
                     .correlation = from.correlation});
}

void cupti_source::take(const fill_record& from, clock_shift shift) noexcept {
  to_.devices().add({.what = record_id::device_fill,
                     .begin = shift(from.begin),
                     .end = shift(from.end),
                     .device = from.device,
                     .stream = from.stream,
                     .bytes = from.bytes,
                     .correlation = from.correlation});
}

void cupti_source::take(const kernel_record& from, clock_shift shift) noexcept {
  to_.devices().add({.what = record_id::device_kernel,
                     .begin = shift(from.begin),
                     .end = shift(from.end),
                     .device = from.device,
                     .stream = from.stream,
                     .name = from.name == nullptr ? 0 : to_.devices().intern(from.name),
                     .correlation = from.correlation});
}

void cupti_source::take(const migration_record& from, clock_shift shift) noexcept {
  if (from.counter != counted_to_device && from.counter != counted_to_host) {
    return;
  }
  const bool up = from.counter == counted_to_device;
  to_.devices().add({.what = record_id::device_migration,
                     .begin = shift(from.begin),
                     .end = shift(from.end),
                     .device = up ? from.dst_device : from.src_device,
                     .stream = from.stream,
                     .bytes = from.value,
                     .way = static_cast<std::uint8_t>(up ? way::to_device : way::to_host),
                     .memory = from.address});
}

}  // namespace berth::interpose
