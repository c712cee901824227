// SPDX-License-Identifier: Apache-2.0
#include "trace/import/recording/about.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/interval.hpp"
#include "core/text.hpp"

namespace berth::trace::recording {
namespace {

struct framework_file {
  std::string_view part;  // of a mapped file's name
  std::string_view framework;
};

// The first that is mapped decides: PyTorch programs use the others beside it more often than the
// other way round.
constexpr std::array framework_files{
    framework_file{"libtorch_cpu", "PyTorch"}, framework_file{"libtorch", "PyTorch"},
    framework_file{"xla_extension", "JAX"},    framework_file{"libjax", "JAX"},
    framework_file{"xla_cuda", "JAX"},         framework_file{"xla_rocm", "JAX"},
    framework_file{"jaxlib", "JAX"},           framework_file{"cupy", "CuPy"},
};

std::string_view fact(const pairs& of, std::string_view key) {
  const auto found = of.find(key);
  return found != of.end() ? std::string_view(found->second) : std::string_view();
}

void take_facts(const content& recorded, metadata& about) {
  constexpr std::string_view environment = "environment.";
  const auto take = [&](std::string_view prefix, const pairs& from) {
    for (const auto& [key, value] : from) {
      about.facts.insert_or_assign(
          key.starts_with(environment) ? key : fmt::format("{}.{}", prefix, key), value);
    }
  };
  take("process", recorded.process);
  take("coverage", recorded.coverage);
  if (recorded.end) {
    take("end", *recorded.end);
  }
}

std::string framework_of(const content& recorded) {
  for (const auto& candidate : framework_files) {
    const bool is_mapped = std::any_of(
        recorded.modules.begin(), recorded.modules.end(),
        [&](const auto& one) { return one.second.path.find(candidate.part) != std::string::npos; });
    if (is_mapped) {
      return std::string(candidate.framework);
    }
  }
  return {};
}

gpu_api api_of(const content& recorded) {
  std::uint64_t hip = 0;
  std::uint64_t cuda = 0;
  for (const auto& event : recorded.events) {
    const auto& api = recorded.call_of(event).api;
    hip += api == "hip" ? 1U : 0U;
    cuda += api == "cuda" ? 1U : 0U;
  }
  if (hip == 0 && cuda == 0) {
    return gpu_api::unknown;
  }
  return hip >= cuda ? gpu_api::hip : gpu_api::cuda;
}

// Calls `take(N, rest)` for each key "<prefix>N.<rest>".
template <typename Take>
void each_numbered(const pairs& from, std::string_view prefix, Take take) {
  for (auto place = from.lower_bound(prefix);
       place != from.end() && place->first.starts_with(prefix); ++place) {
    const auto rest = std::string_view(place->first).substr(prefix.size());
    const auto dot = rest.find('.');
    const auto number = text::whole_number<std::uint32_t>(rest.substr(0, dot));
    if (number && dot != std::string_view::npos) {
      take(*number, rest.substr(dot + 1), place->second);
    }
  }
}

std::vector<device> devices_of(const content& recorded) {
  std::map<std::uint32_t, device> found;
  each_numbered(recorded.coverage, "device.",
                [&](std::uint32_t index, std::string_view key, const std::string& value) {
                  auto& one = found[index];
                  one.index = index;
                  if (key == "name") {
                    one.name = value;
                  } else if (key == "memory") {
                    one.memory = text::whole_number<bytes_t>(value);
                  }
                });
  std::vector<device> devices;
  for (auto& [index, one] : found) {
    if (!one.name.empty()) {
      devices.push_back(std::move(one));
    }
  }
  return devices;
}

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// Runtimes that ran unseen: their copies are missing, and nobody would notice.
void note_runtimes(const content& recorded, std::vector<std::string>& notes) {
  std::map<std::uint32_t, std::pair<std::string, std::string>> runtimes;  // path, how
  each_numbered(recorded.coverage, "runtime.",
                [&](std::uint32_t index, std::string_view key, const std::string& value) {
                  if (key == "path") {
                    runtimes[index].first = value;
                  } else if (key == "how") {
                    runtimes[index].second = value;
                  }
                });
  for (const auto& [index, runtime] : runtimes) {
    if (runtime.second == "unseen") {
      notes.push_back(fmt::format(
          "{} was mapped, but none of its calls reached the recorder: what went through it is "
          "missing",
          runtime.first.empty() ? "A GPU runtime" : runtime.first));
    }
  }
}

std::uint64_t dropped_by_recorder(const content& recorded) {
  const auto in_blocks =
      std::accumulate(recorded.dropped.begin(), recorded.dropped.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const dropped_events& one) {
                        return sum > UINT64_MAX - one.events ? UINT64_MAX : sum + one.events;
                      });
  const auto stated = [](const pairs& of) {
    return text::whole_number<std::uint64_t>(fact(of, "dropped")).value_or(0);
  };
  return std::max({in_blocks, stated(recorded.coverage),
                   recorded.end ? stated(*recorded.end) : std::uint64_t{0}});
}

void note_losses(const content& recorded, const damage& losses, std::vector<std::string>& notes) {
  if (const auto dropped = dropped_by_recorder(recorded); dropped > 0) {
    notes.push_back(fmt::format("{} found no room in the recorder and {} missing",
                                counted(dropped, "event"), dropped == 1 ? "is" : "are"));
  }
  if (losses.places > 0) {
    notes.push_back(fmt::format("{} of the file {} damaged and skipped",
                                counted(losses.places, "place"),
                                losses.places == 1 ? "is" : "are"));
  }
  if (losses.missing_blocks > 0) {
    notes.push_back(fmt::format("{} of the file {} missing",
                                counted(losses.missing_blocks, "block"),
                                losses.missing_blocks == 1 ? "is" : "are"));
  }
  const auto note = [&](std::uint64_t count, std::string_view one, std::string_view what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} {}", counted(count, one), what));
    }
  };
  const auto& passed = recorded.passed;
  note(passed.unknown_blocks, "block", "of types that this berth does not know: passed over");
  note(passed.broken_blocks, "block",
       "whose content breaks the format: read as far as it was right");
  note(passed.unknown_calls, "run",
       "of events behind a call that the file does not name: left out");
  note(passed.absurd_times, "event", "at impossible times: left out");
}

void note_conversion(const conversion& converted, std::vector<std::string>& notes) {
  const auto note = [&](std::uint64_t count, std::string_view one, std::string_view what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} {}", counted(count, one), what));
    }
  };
  note(converted.unknown_apis, "event", "of interfaces that this berth does not know: left out");
  note(converted.absurd_bytes, "size", "that cannot be true: taken as unknown");
  note(
      converted.shared_bytes, "batched call",
      ": each copy counted with an even share of the call's bytes, of which only the sum is known");
  note(converted.uncounted_batches, "batched call", "of impossibly many copies: counted as one");
  note(converted.unknown_hosts, "end",
       "of copies in memory whose allocation may be among the missing events: the kind is not "
       "guessed");
}

void note_coverage(const content& recorded, std::vector<std::string>& notes) {
  constexpr std::string_view none = "none";
  const auto times = fact(recorded.coverage, "device_times");
  const bool has_launches = std::any_of(
      recorded.events.begin(), recorded.events.end(),
      [&](const event& one) { return recorded.call_of(one).operation.starts_with("launch"); });
  if (times.starts_with(none) && has_launches) {
    const auto why = times.size() > none.size() + 2 ? times.substr(none.size() + 2) : "";
    notes.push_back(
        fmt::format("When kernels ran was not recorded{}{}: only their launches are known",
                    why.empty() ? "" : ": ", why));
  }
  if (times.find("until") != std::string_view::npos) {
    notes.emplace_back(
        "Device times end where the program began to profile itself: kernels and copies after that "
        "are not in the times");
  }
  std::string missed;
  for (auto one = recorded.coverage.lower_bound("missed.");
       one != recorded.coverage.end() && one->first.starts_with("missed."); ++one) {
    missed += (missed.empty() ? "" : ", ") + one->second;
  }
  if (!missed.empty()) {
    notes.push_back(fmt::format(
        "The program has got functions that are not recorded, of a second copy of its runtime: {}",
        missed));
  }
  const bool has_window =
      std::any_of(recorded.events.begin(), recorded.events.end(),
                  [&](const event& one) { return recorded.call_of(one).operation == "window"; });
  if (has_window) {
    notes.emplace_back("Recorded in windows: what happened outside of them is not here");
  }
}

// "3 not_pageable, 1 not_ready"
std::string passed_words(const content& recorded) {
  constexpr std::string_view prefix = "fix.passed.";
  std::string words;
  for (const auto& [key, value] : recorded.coverage) {
    if (key.starts_with(prefix)) {
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", value, key.substr(prefix.size()));
    }
  }
  return words;
}

// What `berth run --fix` has done. The rate is bytes over the time in which at least one of the
// calls was under way: what the program has waited for.
void note_fixed(const content& recorded, std::vector<std::string>& notes) {
  const auto copies = text::whole_number<std::uint64_t>(fact(recorded.coverage, "fix.copies"));
  if (!copies) {
    return;
  }
  bytes_t bytes = 0;
  std::vector<interval> calls;
  for (const auto& one : recorded.events) {
    if (recorded.get(one, role::fixed).value_or(0) == 1) {
      bytes += recorded.get(one, role::bytes).value_or(0);
      calls.push_back({one.begin, recorded.end_of(one)});
    }
  }
  const auto busy = interval_set(std::move(calls)).length();
  auto note =
      fmt::format("{} cop{} fixed by berth's copy engine", *copies, *copies == 1 ? "y" : "ies");
  if (busy > 0) {
    note += fmt::format(": {:.1f} GB/s while their calls ran (measured)",
                        static_cast<double>(bytes) / static_cast<double>(busy));
  }
  const auto passed = passed_words(recorded);
  note += passed.empty() ? "" : fmt::format("; left to the runtime: {}", passed);
  if (const auto differed =
          text::whole_number<std::uint64_t>(fact(recorded.coverage, "fix.differed"))) {
    note += fmt::format("; the self-check found {} that differed", *differed);
  }
  if (const auto reused =
          text::whole_number<std::uint64_t>(fact(recorded.coverage, "fix.reused"))) {
    note += fmt::format("; {} allocation{} of page-locked memory served by freed blocks", *reused,
                        *reused == 1 ? "" : "s");
  }
  notes.push_back(std::move(note));
}

}  // namespace

bool lost_events(const content& recorded, const damage& losses) {
  return losses.any() || dropped_by_recorder(recorded) > 0 || recorded.passed.broken_blocks > 0 ||
         recorded.passed.unknown_calls > 0;
}

metadata describe(const content& recorded, const damage& losses, const conversion& converted) {
  metadata about;
  about.format = "berth recording";
  about.framework = framework_of(recorded);
  about.api = api_of(recorded);
  about.devices = devices_of(recorded);
  about.rank = text::whole_number<std::int64_t>(fact(recorded.process, "rank"));
  each_numbered(recorded.coverage, "runtime.",
                [&](std::uint32_t /*index*/, std::string_view key, const std::string& value) {
                  if (key == "version" && about.api_version.empty()) {
                    about.api_version = value;
                  }
                });
  take_facts(recorded, about);
  note_runtimes(recorded, about.notes);
  note_losses(recorded, losses, about.notes);
  note_coverage(recorded, about.notes);
  note_fixed(recorded, about.notes);
  note_conversion(converted, about.notes);
  return about;
}

}  // namespace berth::trace::recording
