// SPDX-License-Identifier: Apache-2.0
// What holds for every trace, whatever it lacks. Seed and size: RC_PARAMS="seed=1
// max_success=1000".
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include <rapidcheck.h>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "diagnose/rule.hpp"
#include "report/render.hpp"
#include "support/findings.hpp"

namespace berth::test {
namespace {

// One random event; most fields may be missing, sizes and times are sometimes absurd.
struct some_event {
  int what;
  std::int64_t at;
  std::int64_t duration;
  bytes_or_unknown bytes;
  memory_kind host;
  direction way;
  int device;
  int stream;
  std::uint64_t address;
  bool has_call;
  int recorded;  // what only a recording has
};

std::int64_t any_time(std::int64_t usual, std::int64_t absurd) {
  return *rc::gen::weightedOneOf<std::int64_t>({{30, rc::gen::inRange<std::int64_t>(0, usual)},
                                                {5, rc::gen::just<std::int64_t>(0)},
                                                {1, rc::gen::inRange<std::int64_t>(0, absurd)}});
}

some_event any_event() {
  constexpr std::int64_t day_ns = 86'400'000'000'000;
  some_event made{};
  made.what = *rc::gen::inRange(0, 13);
  made.at = any_time(200'000'000, day_ns);
  made.duration = any_time(20'000'000, day_ns);
  made.bytes = *rc::gen::weightedOneOf<bytes_or_unknown>(
      {{4, rc::gen::just<bytes_or_unknown>(std::nullopt)},
       {8, rc::gen::map(rc::gen::inRange<bytes_t>(0, 128 * kib),
                        [](bytes_t bytes) { return bytes_or_unknown(bytes); })},
       {8, rc::gen::map(rc::gen::inRange<bytes_t>(0, 256 * mib),
                        [](bytes_t bytes) { return bytes_or_unknown(bytes); })},
       {6, rc::gen::just(bytes_or_unknown(32 * mib))},
       {1, rc::gen::just(bytes_or_unknown(std::numeric_limits<std::int64_t>::max()))}});
  made.host = static_cast<memory_kind>(*rc::gen::inRange(0, 6));
  made.way = static_cast<direction>(*rc::gen::inRange(0, 6));
  made.device = *rc::gen::inRange(-1, 3);
  made.stream = *rc::gen::inRange(-1, 3);
  made.address = *rc::gen::inRange<std::uint64_t>(0, 4);
  made.has_call = *rc::gen::inRange(0, 3) != 0;
  made.recorded = *rc::gen::inRange(0, 64);
  return made;
}

// Some of what a recorder knows of the last copy; each of these may be missing.
void add_recorded(trace_builder& made, int which) {
  constexpr std::array timings{trace::timing::device, trace::timing::call, trace::timing::unknown};
  constexpr std::array pages{trace::host_pages::unknown, trace::host_pages::resident,
                             trace::host_pages::fresh, trace::host_pages::of_file};
  const auto bits = static_cast<std::size_t>(which);
  made.timed_by(timings[bits % timings.size()]).pages(pages[bits / 4 % pages.size()]);
  if (which % 2 == 0) {
    made.content(bits / 8 % 3).device_address(0x10'0000 + bits / 16 * 0x1000);
  }
  if (which % 5 == 0) {
    made.host_node(which % 3 - 1);
  }
  if (which % 7 == 0) {
    made.by(engine::kernel);
  }
}

// Calls about memory at few addresses, so that they meet; sometimes wrong, sometimes failing.
void add_memory_call(trace_builder& made, const some_event& event) {
  constexpr std::array gives{"hipMalloc", "hipHostMalloc", "hipMallocManaged", "cuMemAlloc_v2"};
  constexpr std::array takes{"hipFree", "hipHostFree", "cuMemFreeHost", "hipHostUnregister"};
  constexpr std::array others{"hipHostRegister", "hipHostGetDevicePointer", "hipMemPrefetchAsync",
                              "hipMemAdvise"};
  const nanoseconds at(event.at);
  const nanoseconds duration(event.duration);
  const auto which = static_cast<std::size_t>(event.recorded) % gives.size();
  const auto address = event.address * 0x1000;
  switch (event.recorded % 3) {
    case 0:
      made.allocated(at, duration, gives[which], address, event.bytes, event.recorded);
      break;
    case 1:
      made.freed(at, duration, takes[which], address, event.host);
      break;
    default:
      made.called_about(at, duration, others[which], address, event.bytes);
  }
  if (event.recorded % 11 == 0) {
    made.failed(event.recorded % 22 == 0 ? 1 : 2);
  }
}

void add(trace_builder& made, const some_event& event) {
  const nanoseconds at(event.at);
  const nanoseconds duration(event.duration);
  made.on(event.device < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(event.device)),
          event.stream < 0 ? std::nullopt : std::optional<std::int64_t>(event.stream));
  switch (event.what) {
    case 0:
    case 1:
    case 2:
      made.kernel(at, duration);
      break;
    case 3:
      made.fill(at, duration);
      break;
    case 4:
      made.range_of_operator(at, duration, event.has_call ? "aten::to" : "aten::stack");
      break;
    case 5:
      made.synchronised(at, duration);
      break;
    case 10:
    case 11:
      add_memory_call(made, event);
      break;
    case 12:
      made.launch(at, duration);
      break;
    case 6:
      made.copy(at, duration, event.bytes, event.way, event.host, event.host);
      break;
    default:
      if (event.what % 2 == 0) {
        made.h2d(at, duration, event.bytes, event.host);
      } else {
        made.d2h(at, duration, event.bytes, event.host);
      }
      if (event.address != 0) {
        made.host_address(event.address);
      }
      if (event.recorded < 32) {
        add_recorded(made, event.recorded);
      }
      if (event.has_call) {
        made.called(at - duration / 2, duration);
      }
  }
}

// Runs of alike copies, without which hardly a rule would fire.
void add_run(trace_builder& made, std::int64_t begin) {
  enum way_of_run { up, down, in_turns };
  const auto ways = *rc::gen::element(up, up, down, in_turns);
  const auto count = *rc::gen::inRange(1, 40);
  const auto kind = static_cast<memory_kind>(*rc::gen::inRange(0, 6));
  const auto bytes = *rc::gen::element<bytes_or_unknown>(std::nullopt, 4 * kib, 64 * kib, mib,
                                                         50 * mb, 50 * mb, 256 * mib);
  const auto copy_time = any_time(20'000'000, 20'000'000);
  const auto kernel_time = any_time(20'000'000, 20'000'000);
  const auto copies_for_a_kernel = *rc::gen::element(1, 1, 1, 20);
  const auto devices = *rc::gen::element(1, 1, 3);
  const auto address = *rc::gen::inRange<std::uint64_t>(0, 2);
  const bool queued = *rc::gen::inRange(0, 3) == 0;  // stamped when submitted
  const bool has_call = *rc::gen::inRange(0, 2) == 0;
  const auto recorded = *rc::gen::element(-1, *rc::gen::inRange(0, 64));
  // The host works between copies: it fills a buffer.
  const auto pause = *rc::gen::element<std::int64_t>(0, 0, 5'000'000);
  const bool allocates = *rc::gen::inRange(0, 4) == 0;
  auto now = begin;
  for (int index = 0; index < count; ++index) {
    made.on(static_cast<std::uint32_t>(index % devices), 1);
    const bool is_upload = ways == up || (ways == in_turns && index % 2 == 0);
    const auto start = queued ? std::max(begin, now - kernel_time) : now;
    const nanoseconds at(start);
    const nanoseconds time(copy_time + now - start);
    is_upload ? made.h2d(at, time, bytes, kind) : made.d2h(at, time, bytes, kind);
    if (address != 0) {
      made.host_address(address);
    }
    if (recorded >= 0) {
      add_recorded(made, recorded);
    }
    if (allocates) {
      made.allocated(at, time / 4, "hipHostMalloc", 0x5000, bytes);
      made.freed(at + time / 2, time / 4, "hipHostFree", 0x5000);
    }
    if (has_call) {
      made.called(at, time / 2).synchronised(at + time / 2, time / 2);
    }
    now += copy_time + pause;
    if (index % copies_for_a_kernel == 0) {
      made.kernel(nanoseconds(now), nanoseconds(kernel_time));
      now += kernel_time;
    }
  }
}

trace::trace any_trace() {
  trace_builder made;
  made.api(static_cast<trace::gpu_api>(*rc::gen::inRange(0, 3)));
  if (*rc::gen::inRange(0, 2) == 0) {
    made.pytorch();
  }
  if (*rc::gen::inRange(0, 2) == 0) {
    made.gpu("NVIDIA H200");
  }
  if (*rc::gen::inRange(0, 2) == 0) {
    made.fact("device.0.numa_node", "0").fact("environment.HSA_XNACK", "0");
  }
  const auto count = *rc::gen::element(0, 0, *rc::gen::inRange(0, 60));
  for (int index = 0; index < count; ++index) {
    add(made, any_event());
  }
  const auto runs = *rc::gen::inRange(0, 3);
  for (int index = 0; index < runs; ++index) {
    add_run(made, index * 1'000'000'000LL);
  }
  return made.build();
}

// Host time that findings may name: the sum of calls, waits and operators.
std::int64_t host_time(const trace::trace& events) {
  std::int64_t sum = 0;
  for (trace::row index = 0; index < events.size(); ++index) {
    sum += trace::is_device_activity(events.kind(index)) ? 0 : events.duration(index);
  }
  return sum;
}

report::document document_of(const diagnose::diagnosis& result) {
  report::trace_report shown;
  shown.file = "random.json";
  shown.about.format = "random";
  shown.diagnosis = result;
  report::document document;
  document.traces.push_back(std::move(shown));
  return document;
}

void hold_savings(const trace::trace& events, const diagnose::diagnosis& result) {
  // Of what no copy or call took: the time in which a link idled, the GPU waited for the host's
  // part, or kernels for pages.
  const bool has_idle =
      std::any_of(result.findings.begin(), result.findings.end(), [](const diagnose::finding& one) {
        return one.rule == "fill-bound-staging" || one.rule == "ping-pong" ||
               one.rule == "managed-page-faults";
      });
  const auto most =
      result.totals.copy_busy_ns + host_time(events) + (has_idle ? result.totals.span_ns : 0);
  RC_ASSERT(result.saving_ns >= 0);
  RC_ASSERT(result.saving_ns <= most);
  for (const auto& one : result.findings) {
    RC_ASSERT(one.lost_ns >= 0);
    if (!one.saving) {
      RC_ASSERT(one.gains.empty());
      continue;
    }
    const auto saved = one.saving->time_ns;
    RC_ASSERT(saved >= 0);
    RC_ASSERT(saved <= result.saving_ns);
    const bool is_host_time = one.rule == "tiny-copies" || one.rule == "allocation-in-a-loop";
    RC_ASSERT(saved <= (is_host_time ? host_time(events) : 0) + result.totals.span_ns);
    std::int64_t gained = 0;
    std::set<std::uint32_t> seen;
    for (const auto& [copy, time] : one.gains) {
      RC_ASSERT(time >= 0);
      RC_ASSERT(seen.insert(copy).second);
      gained += time;
    }
    RC_ASSERT(gained <= saved);
  }
}

void hold_findings(const diagnose::diagnosis& result) {
  RC_ASSERT(!result.verdict.empty());
  for (const auto& one : result.findings) {
    RC_ASSERT(diagnose::find_rule(one.rule) != nullptr);
    RC_ASSERT(one.severity <= result.worst);
    RC_ASSERT(!one.headline.empty());
    RC_ASSERT(!one.fix.empty());
    for (const auto& figure : one.evidence) {
      RC_ASSERT(std::isfinite(figure.value));
      RC_ASSERT(figure.value >= 0);
    }
    for (std::size_t index = 1; index < one.places.size(); ++index) {
      RC_ASSERT(one.places[index - 1].time_ns >= one.places[index].time_ns);
    }
  }
}

void hold_renderings(const diagnose::diagnosis& result) {
  const auto document = document_of(result);
  std::istringstream lines(report::to_text(document, report::colour::off));
  for (std::string line; std::getline(lines, line);) {
    RC_ASSERT(text::display_width(line) <= 100U);
    RC_ASSERT(line.find("nan") == std::string::npos);
  }
  const auto json = nlohmann::json::parse(report::to_json(document));
  RC_ASSERT(json["traces"][0]["findings"].size() == result.findings.size());
  std::uint64_t copies = 0;
  for (const auto& [label, group] : json["traces"][0]["totals"]["copies"].items()) {
    copies += group["count"].get<std::uint64_t>();
  }
  std::uint64_t counted = 0;
  for (const auto& group : result.totals.copies) {
    counted += group.count;
  }
  RC_ASSERT(copies == counted);
}

void hold_all() {
  const auto events = any_trace();
  const auto machine = round_machine();
  const auto* const profile = *rc::gen::inRange(0, 2) == 0 ? &machine : nullptr;
  const auto result = diagnose::diagnose(events, profile);
  for (const auto& one : result.findings) {
    RC_TAG(std::string(one.rule));
  }
  hold_savings(events, result);
  hold_findings(result);
  hold_renderings(result);
  const auto again = diagnose::diagnose(events, profile);
  RC_ASSERT(report::to_json(document_of(result)) == report::to_json(document_of(again)));
}

TEST(properties, hold_for_every_trace) {
  EXPECT_TRUE(rc::check("what holds for every diagnosis", hold_all));
}

}  // namespace
}  // namespace berth::test
