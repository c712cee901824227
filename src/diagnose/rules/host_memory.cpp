// SPDX-License-Identifier: Apache-2.0
// Memory that stays on the host while kernels work: pinned memory that they may read in place over
// the link, and managed memory that does not migrate (the second symptom).
//
// Neither is seen directly: a trace does not say what a kernel reads. Pinned memory that was never
// the end of a copy while many kernels ran is suspected, and called so. Managed memory without
// XNACK stays on the host by what AMD documents.
#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

constexpr bytes_t smallest_buffer = mib;
constexpr std::size_t many_kernels = 100;
// hipHostMallocMapped and CU_MEMHOSTALLOC_DEVICEMAP are the same bit.
constexpr std::uint64_t mapped = 0x2;
constexpr std::uint64_t hip_coherent = 0x4000'0000;
constexpr std::uint64_t hip_uncached = 0x1000'0000;

// Communication libraries have pinned buffers of which kernels are meant to read.
constexpr std::array<std::string_view, 3> communicators{"nccl", "rccl", "mscclpp"};

// When kernels of the program began, on whatever device; without times of kernels, their launches.
std::vector<std::int64_t> kernel_begins(const trace::trace& events) {
  std::vector<std::int64_t> kernels;
  std::vector<std::int64_t> launches;
  for (trace::row index = 0; index < events.size(); ++index) {
    if (events.kind(index) == trace::event_kind::kernel) {
      kernels.push_back(events.begin(index));
    } else if (events.kind(index) == trace::event_kind::launch_call) {
      launches.push_back(events.begin(index));
    }
  }
  auto& begins = kernels.empty() ? launches : kernels;
  std::sort(begins.begin(), begins.end());
  return begins;
}

std::size_t kernels_within(const std::vector<std::int64_t>& begins, interval window) {
  return static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end(), window.end) -
                                  std::lower_bound(begins.begin(), begins.end(), window.begin));
}

// A piece of memory with what happened to it while it lived.
struct watched {
  std::size_t given;  // index of the call
  std::uint64_t begin;
  bytes_t bytes;
  interval lives;
  bool is_copied = false;
  bool is_asked = false;  // for its device address
  bool is_moved = false;  // prefetched, or advised of
};

// Pieces of some kinds, found by any address inside them at some time.
class watched_memory {
public:
  template <typename Predicate>
  watched_memory(std::span<const memory_call> calls, interval recorded, Predicate wanted) {
    for (const auto& life : lives_of(calls)) {
      const auto& given = calls[life.given];
      if (wanted(given) && given.bytes.value_or(0) > 0) {
        const auto end = life.taken != never ? calls[life.taken].time.begin : recorded.end;
        pieces_.push_back({life.given, *given.address, *given.bytes, {given.time.end, end}});
      }
    }
    std::sort(pieces_.begin(), pieces_.end(), [](const watched& a, const watched& b) {
      return std::pair(a.begin, a.lives.begin) < std::pair(b.begin, b.lives.begin);
    });
  }

  // Null if no piece that lives then holds the address. Looks below the address, begin by begin, at
  // the piece that lived there at that time.
  watched* at(std::uint64_t address, std::int64_t time) {
    std::pair key(address, time);
    constexpr int most_tries = 64;  // pieces that overlap live at different times, and are few
    for (int tries = 0; tries < most_tries; ++tries) {
      const auto next = std::upper_bound(pieces_.begin(), pieces_.end(), key,
                                         [](const auto& wanted, const watched& one) {
                                           return wanted < std::pair(one.begin, one.lives.begin);
                                         });
      if (next == pieces_.begin()) {
        break;
      }
      auto& found = *std::prev(next);
      if (found.begin < key.first || key.second != time) {
        key = {found.begin, time};  // of its lives the one at that time
        continue;
      }
      if (address - found.begin < found.bytes && time <= found.lives.end) {
        return &found;
      }
      if (found.begin == 0) {
        break;
      }
      key = {found.begin - 1, std::numeric_limits<std::int64_t>::max()};
    }
    return nullptr;
  }

  std::vector<watched>& pieces() { return pieces_; }

private:
  std::vector<watched> pieces_;
};

// False if a copy lacks an address, so that nothing can be said of what was never copied.
bool mark_copies(const workload& work, watched_memory& memory) {
  for (const auto& which : work.copies()) {
    const auto& details = *which.details;
    const auto host = details.direction == direction::device_to_host ? details.destination_address
                                                                     : details.source_address;
    if (is_host_copy(which) && !host) {
      return false;
    }
    // The call may have come long before the copy ran, and freed memory is not copied.
    const auto time = which.call != trace::no_row ? work.events().begin(which.call) : which.begin;
    for (const auto& address : {details.source_address, details.destination_address}) {
      if (auto* const piece = address ? memory.at(*address, time) : nullptr) {
        piece->is_copied = true;
      }
    }
  }
  return true;
}

// Brings managed memory to the device, or lets it be there.
bool moves(const trace::trace& events, const memory_call& call) {
  constexpr std::uint64_t read_mostly = 1;
  constexpr std::uint64_t preferred_location = 3;
  if (call.verb == memory_verb::prefetch) {
    const auto* const details = events.details(call.event);
    return details == nullptr || details->direction != direction::device_to_host;
  }
  return call.verb == memory_verb::advise &&
         (!call.flags || *call.flags == read_mostly || *call.flags == preferred_location);
}

void mark_calls(const trace::trace& events, std::span<const memory_call> calls,
                watched_memory& memory) {
  for (const auto& call : calls) {
    if (!call.address || call.status != 0) {
      continue;
    }
    if (auto* const piece = memory.at(*call.address, call.time.begin)) {
      piece->is_asked = piece->is_asked || call.verb == memory_verb::ask;
      piece->is_moved = piece->is_moved || moves(events, call);
    }
  }
}

bool has_dropped_events(const workload& work) {
  return fact(work, "coverage.dropped").value_or("0") != "0" ||
         fact(work, "end.dropped").value_or("0") != "0";
}

bool is_of_communicator(const workload& work, trace::row call) {
  const auto* const site = work.events().site(call);
  return site != nullptr && std::any_of(site->frames.begin(), site->frames.end(), [&](auto id) {
           const auto frame = work.events().text(id);
           return std::any_of(
               communicators.begin(), communicators.end(),
               [&](std::string_view name) { return frame.find(name) != std::string_view::npos; });
         });
}

bool says_so_itself(const workload& work, const memory_call& given) {
  const auto hip_bits =
      work.events().about.api == trace::gpu_api::hip ? hip_coherent | hip_uncached : 0;
  return (given.flags.value_or(0) & (mapped | hip_bits)) != 0;
}

// Buffers of one suspicion.
struct suspects {
  std::uint64_t count = 0;
  bytes_t bytes = 0;
  std::size_t kernels = 0;  // most that ran while one of them lived
  std::vector<place> places;
};

void add_to(suspects& all, const workload& work, const memory_call& given, std::size_t kernels) {
  ++all.count;
  all.bytes += std::min(*given.bytes, ~bytes_t{0} - all.bytes);
  all.kernels = std::max(all.kernels, kernels);
  auto where = describe_call(work, given.event);
  auto known = std::find_if(all.places.begin(), all.places.end(),
                            [&](const place& one) { return one.where == where; });
  if (known == all.places.end()) {
    all.places.push_back({std::move(where), 0, bytes_t{0}, 0, counted::calls});
    known = std::prev(all.places.end());
  }
  ++known->count;
  known->bytes = *known->bytes + std::min(*given.bytes, ~bytes_t{0} - *known->bytes);
  known->time_ns += given.time.length();
}

void keep_largest(std::vector<place>& places) {
  std::stable_sort(places.begin(), places.end(),
                   [](const place& a, const place& b) { return a.time_ns > b.time_ns; });
  places.resize(std::min<std::size_t>(places.size(), 3));
}

// How long a kernel takes to read all of it once: over the link, and where it should be.
void add_passes(const workload& work, machine::operation over_the_link, bytes_t bytes,
                std::vector<measure>& evidence) {
  const auto* const profile = work.expected().profile();
  if (profile == nullptr) {
    return;
  }
  if (const auto time = profile->expected_time(over_the_link, bytes)) {
    evidence.push_back({"read once over the link", static_cast<double>(time->time.count()),
                        unit::nanoseconds, provenance::modelled});
  }
  if (const auto rate = profile->find(machine::quantity::memory_gb_per_s);
      rate && rate->value > 0) {
    evidence.push_back({"read once from the GPU's memory", static_cast<double>(bytes) / rate->value,
                        unit::nanoseconds, provenance::modelled});
  }
}

constexpr wording bring_it{
    .pytorch =
        "Copy the data to the GPU once and use that tensor; keep zero-copy for data that is read "
        "once.",
    .hip =
        "Copy the data to hipMalloc memory once and let kernels read that. Host memory from "
        "hipHostMalloc is fine-grained by default, which GPUs do not cache; "
        "hipHostMallocNonCoherent is better where kernels must read it in place.",
    .cuda =
        "Copy the data to cudaMalloc memory once and let kernels read that; keep zero-copy for "
        "data that is read once."};

constexpr wording confirm{
    .pytorch = "To confirm: copy it to the GPU before the loop and compare the kernels' times.",
    .hip =
        "To confirm: copy it to the GPU before the loop and compare the kernels' times; "
        "rocprof-compute shows reads of remote memory (L2-fabric, remote read).",
    .cuda =
        "To confirm: copy it to the GPU before the loop and compare the kernels' times; Nsight "
        "Compute shows reads of system memory (lts__t_sectors_aperture_sysmem)."};

void add_suspects(const workload& work, suspects all, severity how,
                  std::vector<finding>& findings) {
  if (all.count == 0) {
    return;
  }
  std::vector<measure> evidence{
      {"buffers", static_cast<double>(all.count), unit::count},
      {"bytes", static_cast<double>(all.bytes), unit::bytes},
      {"kernels meanwhile", static_cast<double>(all.kernels), unit::count}};
  add_passes(work, machine::operation::zero_copy_read, all.bytes, evidence);
  keep_largest(all.places);
  findings.push_back(
      {.rule = "host-memory-in-kernels",
       .severity = how,
       .headline = fmt::format(
           "Kernels possibly read host memory over the link: {} of pinned memory in {} {} {} "
           "never copied while {} kernels ran{}.",
           format_bytes(all.bytes), all.count, all.count == 1 ? "buffer" : "buffers",
           all.count == 1 ? "was" : "were", all.kernels,
           how == severity::advice ? ", and the program asked for its device address"
                                   : ", and was allocated for use by the device"),
       .evidence = std::move(evidence),
       .places = std::move(all.places),
       .lost_ns = 0,
       .saving = std::nullopt,
       .fix = {in_terms_of(work, confirm), in_terms_of(work, bring_it)},
       .gains = {}});
}

}  // namespace

void find_host_memory_in_kernels(const workload& work, std::vector<finding>& findings) {
  const auto calls = memory_calls_of(work.events());
  const auto recorded = recorded_time(work.events());
  watched_memory memory(calls, recorded, [](const memory_call& given) {
    return is_page_locked(given.kind) && given.bytes.value_or(0) >= smallest_buffer;
  });
  if (memory.pieces().empty() || has_dropped_events(work) || !mark_copies(work, memory)) {
    return;
  }
  mark_calls(work.events(), calls, memory);
  const auto kernels = kernel_begins(work.events());
  suspects asked;
  suspects flagged;
  for (const auto& piece : memory.pieces()) {
    const auto& given = calls[piece.given];
    const auto meanwhile = kernels_within(kernels, piece.lives);
    if (piece.is_copied || meanwhile < many_kernels || is_of_communicator(work, given.event)) {
      continue;
    }
    if (piece.is_asked) {
      add_to(asked, work, given, meanwhile);
    } else if (says_so_itself(work, given)) {
      add_to(flagged, work, given, meanwhile);
    }
  }
  add_suspects(work, std::move(asked), severity::advice, findings);
  add_suspects(work, std::move(flagged), severity::note, findings);
}

namespace {

constexpr double most_of_the_memory = 0.5;

bool has_migrations(const workload& work) {
  const auto kinds = work.events().kinds();
  return std::find(kinds.begin(), kinds.end(), trace::event_kind::migration) != kinds.end();
}

// What the machine says of it; "may" where there is none, or it does not tell.
enum class migration : std::uint8_t { may, never, at_boot, barred };

migration migration_on(const workload& work) {
  const auto* const on = work.machine();
  if (on == nullptr || work.events().about.api != trace::gpu_api::hip) {
    return migration::may;
  }
  const auto& set = on->seen().machine.set;
  const auto& devices = work.events().about.devices;
  const auto can = on->xnack_of(devices.empty() ? 0 : devices.front().index);
  if (can == machine::xnack_ability::none) {
    return migration::never;
  }
  if (can == machine::xnack_ability::boot_parameter) {
    return set.noretry == machine::setting_state::off ? migration::may : migration::at_boot;
  }
  const bool barred =
      set.hmm == machine::setting_state::off || set.noretry == machine::setting_state::on;
  return barred ? migration::barred : migration::may;
}

struct migration_words {
  std::string_view reason;
  std::string_view fix;
};

// By `migration`; nothing to say of the first.
constexpr std::array<migration_words, 4> migration_texts{{
    {"", ""},
    {"this machine's GPU cannot retry faulted accesses, so kernels read it on the host, over the "
     "link",
     "HSA_XNACK=1 changes nothing on this machine: its GPU has no XNACK."},
    {"this machine's driver was not loaded with amdgpu.noretry=0, so kernels read it on the host, "
     "over the link",
     "HSA_XNACK=1 alone changes nothing on this machine: its GPU needs amdgpu.noretry=0 at boot."},
    {"this machine's kernel or driver cannot migrate pages, so kernels read it on the host, over "
     "the link",
     "HSA_XNACK=1 changes nothing on this machine until its kernel has HMM and amdgpu.noretry is "
     "not 1: berth doctor tells which is missing."},
}};

const migration_words& words_on(migration state) {
  return migration_texts[static_cast<std::size_t>(state)];
}

// Whether the rule can judge this trace, and that it has no migration to show.
bool stays_in_place(const workload& work) {
  if (has_migrations(work) || has_dropped_events(work)) {
    return false;
  }
  return work.events().about.api != trace::gpu_api::hip ||
         (has_facts(work) && (fact(work, "environment.HSA_XNACK").value_or("0") != "1" ||
                              migration_on(work) != migration::may));
}

// Managed bytes against all that a device can be meant to work on.
double share_of_memory(std::span<const memory_call> calls, bytes_t managed) {
  double all = 0;
  for (const auto& call : calls) {
    const bool is_for_device =
        call.kind == memory_kind::managed || call.kind == memory_kind::device;
    if (call.verb == memory_verb::allocate && call.status == 0 && is_for_device) {
      all += static_cast<double>(call.bytes.value_or(0));
    }
  }
  return all > 0 ? static_cast<double>(managed) / all : 0.0;
}

std::vector<std::string> how_to_migrate(const workload& work) {
  constexpr wording copy_instead{
      .pytorch = "Use plain CUDA tensors where data is used by the GPU alone.",
      .hip =
          "Where only the GPU uses the data, hipMalloc and one hipMemcpy are faster than any "
          "migration; hipMemPrefetchAsync moves managed memory also without XNACK.",
      .cuda =
          "Prefetch before the kernels (cudaMemPrefetchAsync to the device, and back before the "
          "host reads); where only the GPU uses the data, cudaMalloc and one cudaMemcpy."};
  std::vector<std::string> lines;
  const auto state = migration_on(work);
  if (state != migration::may) {
    lines.emplace_back(words_on(state).fix);
  } else if (work.events().about.api == trace::gpu_api::hip) {
    lines.emplace_back(
        "Where the GPU can (MI200, MI300 and later; rocminfo shows xnack), start the program with "
        "HSA_XNACK=1: then pages migrate to the GPU when a kernel touches them.");
  }
  lines.push_back(in_terms_of(work, copy_instead));
  return lines;
}

std::string managed_sentence(const workload& work, const suspects& all) {
  const auto xnack = fact(work, "environment.HSA_XNACK");
  const auto state = migration_on(work);
  const auto reason =
      state != migration::may ? std::string(words_on(state).reason)
      : work.events().about.api == trace::gpu_api::hip
          ? fmt::format("HSA_XNACK is {}, so kernels read it on the host, over the link",
                        xnack ? std::string(*xnack) : "not set")
          : std::string(
                "no prefetch brings it to the GPU, so pages come one fault after the other");
  return fmt::format("{} of managed memory in {} {} without migration while {} kernels ran: {}.",
                     format_bytes(all.bytes), all.count,
                     all.count == 1 ? "allocation stays" : "allocations stay", all.kernels, reason);
}

}  // namespace

void find_managed_without_migration(const workload& work, std::vector<finding>& findings) {
  const auto calls = memory_calls_of(work.events());
  watched_memory memory(calls, recorded_time(work.events()), [](const memory_call& given) {
    return given.kind == memory_kind::managed;
  });
  if (memory.pieces().empty() || !stays_in_place(work)) {
    return;
  }
  mark_calls(work.events(), calls, memory);
  const auto kernels = kernel_begins(work.events());
  suspects all;
  for (const auto& piece : memory.pieces()) {
    const auto meanwhile = kernels_within(kernels, piece.lives);
    if (!piece.is_moved && meanwhile > 0) {
      add_to(all, work, calls[piece.given], meanwhile);
    }
  }
  if (all.bytes < smallest_buffer) {
    return;
  }
  const bool is_hip = work.events().about.api == trace::gpu_api::hip;
  const auto share = share_of_memory(calls, all.bytes);
  std::vector<measure> evidence{
      {"allocations", static_cast<double>(all.count), unit::count},
      {"bytes", static_cast<double>(all.bytes), unit::bytes},
      {"share of the GPU's memory asked for", std::min(share, 1.0), unit::share},
      {"kernels meanwhile", static_cast<double>(all.kernels), unit::count}};
  add_passes(work,
             is_hip ? machine::operation::managed_remote_read
                    : machine::operation::managed_touch_by_device,
             all.bytes, evidence);
  keep_largest(all.places);
  findings.push_back(
      {.rule = "managed-without-migration",
       .severity = is_hip && share >= most_of_the_memory ? severity::fault : severity::advice,
       .headline = managed_sentence(work, all),
       .evidence = std::move(evidence),
       .places = std::move(all.places),
       .lost_ns = 0,
       .saving = std::nullopt,
       .fix = how_to_migrate(work),
       .gains = {}});
}

}  // namespace berth::diagnose
