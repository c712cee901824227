// SPDX-License-Identifier: Apache-2.0
// Memory that is freed by a call of another kind, or twice; and all other calls that failed.
//
// What the memory really is comes from the recorder, else from the call that gave it. AMD's runtime
// lets hipFree take pinned memory; the contract of HIP and of CUDA does not. A free counts as done
// twice only if it failed: where it succeeds, an allocation in between was not recorded.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "diagnose/rule.hpp"
#include "diagnose/rules/memory_calls.hpp"
#include "diagnose/rules/selection.hpp"

namespace berth::diagnose {
namespace {

struct status_name {
  std::int32_t status;
  std::string_view text;
};

// Numbers on which HIP and CUDA agree.
constexpr std::array status_names{
    status_name{1, "invalid value"},     status_name{2, "out of memory"},
    status_name{17, "invalid pointer"},  status_name{101, "invalid device"},
    status_name{201, "invalid context"}, status_name{209, "no code for this GPU"},
    status_name{700, "illegal address"}, status_name{712, "already registered"},
    status_name{713, "not registered"},  status_name{719, "launch failed"},
    status_name{801, "not supported"},   status_name{900, "not while capturing"},
};

// Not errors of the program: the runtime has shut down; the work is not ready yet.
constexpr std::array harmless{4, 600};
// With these a runtime says that the address is not what the call takes. Others (an earlier kernel
// has crashed) say nothing of the free.
constexpr std::array wrong_address{1, 17, 713};

template <std::size_t Size>
bool is_one_of(const std::array<int, Size>& all, std::int32_t status) {
  return std::find(all.begin(), all.end(), status) != all.end();
}

std::string words_of(std::int32_t status) {
  const auto* const found =
      std::find_if(status_names.begin(), status_names.end(),
                   [&](const status_name& one) { return one.status == status; });
  return found != status_names.end() ? fmt::format("{}, {}", status, found->text)
                                     : fmt::format("{}", status);
}

enum class mistake : std::uint8_t {
  tolerated,  // the wrong call, which succeeded
  refused,    // the wrong call, which failed: the memory is still there
  again,      // what was freed before
  unknown,    // an address that the runtime does not know
};

bool takes_kind(const memory_call& call, memory_kind found) {
  if (call.verb == memory_verb::release && call.kind == memory_kind::unknown) {
    return found == memory_kind::device || found == memory_kind::managed;
  }
  return found == call.kind;
}

struct wrong_free {
  mistake what;
  trace::name_id name;
  memory_kind found;

  friend bool operator<(const wrong_free& a, const wrong_free& b) noexcept {
    return std::tie(a.what, a.name, a.found) < std::tie(b.what, b.name, b.found);
  }
};

struct wrong_frees {
  std::uint64_t count = 0;
  std::optional<bytes_t> bytes = 0;  // unknown if that of any is
  std::int64_t time_ns = 0;
  trace::row example = trace::no_row;
  std::int32_t status = 0;
};

// What is known of an address while calls go by.
struct address_state {
  memory_kind kind = memory_kind::unknown;
  std::optional<bytes_t> bytes;
  bool is_free = false;
};

using address_states = std::unordered_map<std::uint64_t, address_state>;

std::optional<mistake> judge(const memory_call& call, const address_state* known) {
  const bool failed = call.status != 0;
  if (failed && !is_one_of(wrong_address, call.status)) {
    return std::nullopt;
  }
  const bool is_free = known != nullptr && known->is_free;
  auto found = call.found;
  if (found == memory_kind::unknown && known != nullptr && !is_free) {
    found = known->kind;
  }
  if (found != memory_kind::unknown && !takes_kind(call, found)) {
    return failed ? mistake::refused : mistake::tolerated;
  }
  if (!failed) {
    return std::nullopt;
  }
  return is_free ? mistake::again : mistake::unknown;
}

void follow(address_states& states, const memory_call& call) {
  if (!call.address || call.status != 0) {
    return;
  }
  if (call.gives()) {
    states[*call.address] = {call.kind, call.bytes, false};
  } else if (call.takes()) {
    states[*call.address].is_free = true;
  }
}

std::map<wrong_free, wrong_frees> wrong_frees_of(const workload& work) {
  std::map<wrong_free, wrong_frees> all;
  address_states states;
  for (const auto& call : memory_calls_of(work.events())) {
    if (call.takes() && call.address) {
      const auto place = states.find(*call.address);
      const auto* const known = place != states.end() ? &place->second : nullptr;
      if (const auto what = judge(call, known)) {
        const auto kind =
            call.found != memory_kind::unknown || known == nullptr ? call.found : known->kind;
        auto& sum = all[{*what, work.events().name(call.event), kind}];
        ++sum.count;
        sum.time_ns += call.time.length();
        const auto bytes = known != nullptr ? known->bytes : std::nullopt;
        sum.bytes = sum.bytes && bytes ? std::optional(*sum.bytes + *bytes) : std::nullopt;
        if (sum.example == trace::no_row) {
          sum.example = call.event;
          sum.status = call.status;
        }
      }
    }
    follow(states, call);
  }
  return all;
}

std::string right_call(const workload& work, memory_kind kind) {
  const bool is_hip = work.events().about.api == trace::gpu_api::hip;
  switch (kind) {
    case memory_kind::pinned:
      return is_hip ? "hipHostFree" : "cudaFreeHost";
    case memory_kind::registered:
      return is_hip ? "hipHostUnregister, and then as it was allocated"
                    : "cudaHostUnregister, and then as it was allocated";
    case memory_kind::device:
    case memory_kind::managed:
      return is_hip ? "hipFree" : "cudaFree";
    default:
      return "free or delete, as it was allocated";
  }
}

std::string times_of(std::uint64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", count);
}

std::string headline_of(const workload& work, const wrong_free& which, const wrong_frees& sum) {
  const auto name = work.events().text(which.name);
  const auto kind = to_string(which.found);
  switch (which.what) {
    case mistake::tolerated:
      return fmt::format(
          "{} is given {} memory {}: this runtime lets it pass, the interface does "
          "not promise it.",
          name, kind, times_of(sum.count));
    case mistake::refused:
      return fmt::format("{} is given {} memory {} and fails ({}): the memory stays allocated.",
                         name, kind, times_of(sum.count), words_of(sum.status));
    case mistake::again:
      return fmt::format("{} is given memory {} that was freed before, and fails ({}).", name,
                         times_of(sum.count), words_of(sum.status));
    case mistake::unknown:
      break;
  }
  return fmt::format("{} is given an address {} that the runtime does not know, and fails ({}).",
                     name, times_of(sum.count), words_of(sum.status));
}

std::vector<std::string> how_to_free(const workload& work, const wrong_free& which) {
  switch (which.what) {
    case mistake::tolerated:
    case mistake::refused:
      return {
          fmt::format("Free {} memory with {}. A type that owns its memory (berth's resources, "
                      "a unique_ptr with a deleter) cannot mix them up.",
                      to_string(which.found), right_call(work, which.found))};
    case mistake::again:
      return {
          "Let one owner free it. After a second free the address may be somebody else's: "
          "then it does not fail, but takes their memory."};
    case mistake::unknown:
      break;
  }
  return {
      "Free the address that the allocation returned, not one inside the memory, and not "
      "memory of malloc or new."};
}

severity severity_of(const wrong_free& which) {
  // Taking away pages that are still registered is undefined, whatever the call returns.
  return which.what == mistake::tolerated && which.found != memory_kind::registered
             ? severity::advice
             : severity::fault;
}

}  // namespace

void find_wrong_free(const workload& work, std::vector<finding>& findings) {
  for (const auto& [which, sum] : wrong_frees_of(work)) {
    std::vector<measure> evidence{{"calls", static_cast<double>(sum.count), unit::count}};
    if (sum.bytes) {
      evidence.push_back({"bytes", static_cast<double>(*sum.bytes), unit::bytes});
    }
    findings.push_back(
        {.rule = "wrong-free",
         .severity = severity_of(which),
         .headline = headline_of(work, which, sum),
         .evidence = std::move(evidence),
         .places = {{describe_call(work, sum.example), sum.count, sum.bytes, sum.time_ns,
                     counted::calls}},
         .lost_ns = 0,
         .saving = saving{0, bound::about, provenance::measured, "it is wrong, not slow"},
         .fix = how_to_free(work, which),
         .gains = {}});
  }
}

namespace {

struct failure {
  trace::name_id name;
  std::int32_t status;

  friend bool operator<(const failure& a, const failure& b) noexcept {
    return std::tie(a.name, a.status) < std::tie(b.name, b.status);
  }
};

struct failures {
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;
  trace::row example = trace::no_row;
};

bool is_gpu_call(trace::event_kind kind) {
  return kind == trace::event_kind::copy_call || kind == trace::event_kind::launch_call ||
         kind == trace::event_kind::synchronisation || kind == trace::event_kind::copy ||
         kind == trace::event_kind::fill;
}

// Rows of calls that failed, each call once: a copy and the call that asked for it may both say so.
std::vector<trace::row> failed_rows(const workload& work) {
  const auto& events = work.events();
  std::unordered_set<std::uint64_t> seen;
  std::vector<trace::row> rows;
  const auto take = [&](trace::row index) {
    const auto correlation = events.correlation(index);
    if (!is_one_of(harmless, events.status(index)) &&
        (!correlation || seen.insert(*correlation).second)) {
      rows.push_back(index);
    }
  };
  std::vector<trace::row> on_devices;
  for (trace::row index = 0; index < events.size(); ++index) {
    if (events.status(index) == 0 || !is_gpu_call(events.kind(index))) {
      continue;
    }
    if (is_device_activity(events.kind(index))) {
      on_devices.push_back(index);
    } else {
      take(index);
    }
  }
  std::for_each(on_devices.begin(), on_devices.end(), take);
  for (const auto& call : memory_calls_of(events)) {
    if (call.status != 0 && !(call.takes() && is_one_of(wrong_address, call.status))) {
      take(call.event);
    }
  }
  return rows;
}

}  // namespace

void find_failed_calls(const workload& work, std::vector<finding>& findings) {
  const auto& events = work.events();
  std::map<failure, failures> all;
  std::uint64_t count = 0;
  for (const auto index : failed_rows(work)) {
    auto& sum = all[{events.name(index), events.status(index)}];
    ++sum.count;
    sum.time_ns += events.duration(index);
    sum.example = sum.example == trace::no_row ? index : sum.example;
    ++count;
  }
  if (all.empty()) {
    return;
  }
  std::vector<std::pair<failure, failures>> most(all.begin(), all.end());
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  std::vector<place> places;
  for (const auto& [which, sum] : most) {
    places.push_back(
        {fmt::format("{} (status {})", describe_call(work, sum.example), words_of(which.status)),
         sum.count, std::nullopt, sum.time_ns, counted::calls});
  }
  const auto& [first, sum] = most.front();
  auto headline = fmt::format("{} GPU {} failed", count, count == 1 ? "call" : "calls");
  headline += fmt::format("{} {} {} (status {}).", most.size() > 1 ? ", most often" : ":",
                          events.text(first.name), times_of(sum.count), words_of(first.status));
  std::stable_sort(places.begin(), places.end(),
                   [](const place& a, const place& b) { return a.time_ns > b.time_ns; });
  places.resize(std::min<std::size_t>(places.size(), 5));
  findings.push_back(
      {.rule = "failed-calls",
       .severity = severity::note,
       .headline = std::move(headline),
       .evidence = {{"failed calls", static_cast<double>(count), unit::count},
                    {"kinds of failures", static_cast<double>(most.size()), unit::count}},
       .places = std::move(places),
       .lost_ns = 0,
       .saving = saving{0, bound::about, provenance::measured, "this is for information"},
       .fix = {"Check what each GPU call returns. An allocation that fails and is tried again with "
               "less is no fault; a copy that fails leaves old data behind."},
       .gains = {}});
}

}  // namespace berth::diagnose
