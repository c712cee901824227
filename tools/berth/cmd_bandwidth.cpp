// SPDX-License-Identifier: Apache-2.0
#include "cmd_bandwidth.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "bandwidth/compare.hpp"
#include "bandwidth/profile_file.hpp"
#include "bandwidth/run.hpp"
#include "berth/units.hpp"
#include "machine/bandwidth_reader.hpp"
#include "report/bandwidth.hpp"
#include "runtime/open.hpp"

namespace berth::cli {
namespace {

// A signal's handler can reach nothing else.
std::atomic<bool> stop_wanted{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void want_stop(int /*signal*/) {
  stop_wanted.store(true);
}

// The first Ctrl-C ends the run in order, the second as ever.
class interruptible {
public:
  interruptible() {
    stop_wanted.store(false);
    struct sigaction how {};
    how.sa_handler = want_stop;
    how.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &how, &former_);
  }
  ~interruptible() { ::sigaction(SIGINT, &former_, nullptr); }
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;
  interruptible(interruptible&&) = delete;
  interruptible& operator=(interruptible&&) = delete;

private:
  struct sigaction former_ {};
};

result<runtime::opened> open_runtime(const std::string& word) {
  const auto request = word.empty() ? runtime::open_request::from_environment()
                                    : runtime::open_request::parse(word, "--runtime");
  if (!request) {
    return request.error();
  }
  return runtime::open(*request);
}

result<bandwidth::wish> wish_of(const bandwidth_options& options) {
  bandwidth::wish made{
      .how = options.how, .kinds = options.kinds, .sizes = {}, .device = options.device};
  for (const auto& text : options.sizes) {
    const auto bytes = try_parse_bytes(text);
    if (!bytes) {
      return error(errc::usage, fmt::format("\"{}\" is no size", text), "--sizes",
                   "write 4KiB, 64MiB, 1GiB");
    }
    made.sizes.push_back(*bytes);
  }
  if (options.samples == 0U) {
    return error(errc::usage, "no samples give no figure", "--samples", "give 1 or more");
  }
  return made;
}

bandwidth::method method_of(const bandwidth_options& options) {
  bandwidth::method made;
  if (options.how == bandwidth::thoroughness::quick) {
    made = {.samples = 3, .warm_up = 1};
  }
  made.samples = options.samples.value_or(made.samples);
  return made;
}

std::string rendered(const bandwidth_options& options, const machine::bandwidth_results& found,
                     const streams& io) {
  switch (options.format) {
    case bandwidth_format::json:
      return report::to_json(found);
    case bandwidth_format::csv:
      return report::to_csv(found);
    default:
      return report::to_text(found, options.output.empty() ? io.colours : report::colour::off);
  }
}

bool has_low(const machine::bandwidth_results& found) {
  return std::any_of(found.figures.begin(), found.figures.end(), [](const auto& one) {
    return one.verdict == machine::bandwidth_verdict::low;
  });
}

// Nothing where none is asked for. Before anything is measured: a run must not be lost for a file.
result<std::optional<machine::bandwidth_results>> earlier_run(const std::string& file) {
  if (file.empty()) {
    return std::optional<machine::bandwidth_results>();
  }
  std::ifstream opened(file, std::ios::binary);
  if (!opened.is_open()) {
    return error(errc::file_unreadable, "it cannot be opened", file,
                 "berth bandwidth --format json -o FILE makes one");
  }
  const std::string text{std::istreambuf_iterator<char>(opened), {}};
  auto read = machine::try_parse_bandwidth(text, file);
  if (!read) {
    return read.error();
  }
  return std::optional(std::move(*read));
}

std::string today() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// Of one GPU: a machine file of kind "gpu" describes one.
result<void> save_profile(const bandwidth_options& options, const machine::bandwidth_results& found,
                          const streams& io) {
  if (options.profile.empty()) {
    return {};
  }
  const auto text = bandwidth::to_machine_file(found, options.device.value_or(0), today());
  if (!text) {
    return text.error();
  }
  return write_output(io, options.profile, *text);
}

bool has_slower(const machine::bandwidth_results& found) {
  return found.comparison &&
         std::any_of(found.comparison->changes.begin(), found.comparison->changes.end(),
                     [](const auto& one) { return one.is_slower(); });
}

exit_status status_of(const bandwidth_options& options, const bandwidth::outcome& ended) {
  if (ended.failure) {
    return ended.failure->code() == errc::transfer_wrong_data ? exit_status::wrong_data
                                                              : exit_status::unusable;
  }
  const bool is_wrong = has_low(ended.found) || has_slower(ended.found);
  return options.check == bandwidth_check::on && is_wrong ? exit_status::fault_found
                                                          : exit_status::done;
}

}  // namespace

exit_status run_bandwidth(const bandwidth_options& options, const streams& io) {
  const auto wanted = wish_of(options);
  if (!wanted) {
    return refuse(io, wanted.error());
  }
  const auto earlier = earlier_run(options.earlier);
  if (!earlier) {
    return refuse(io, earlier.error());
  }
  const auto opened = open_runtime(options.runtime);
  if (!opened) {
    return refuse(io, opened.error());
  }
  auto& gpu = *opened->gpu;
  const auto plan = bandwidth::make_plan(*wanted, static_cast<int>(gpu.devices().size()));
  if (!plan) {
    return refuse(io, plan.error());
  }
  bandwidth::outcome ended;
  {
    const interruptible held;
    progress_line progress(io, "Measuring");
    ended = bandwidth::run(
        gpu, *plan,
        {.how = method_of(options),
         .on_progress = [&](std::size_t done, std::size_t all,
                            const bandwidth::planned&) { progress.update(done, all); },
         .stop = &stop_wanted});
  }
  ended.found.notes.push_back(fmt::format("Chosen: {}", opened->reason));
  if (*earlier) {
    auto compared = bandwidth::compare(ended.found, **earlier, options.earlier);
    if (compared) {
      ended.found.comparison = std::move(*compared);
    } else {
      ended.found.notes.push_back(compared.error().to_string());
    }
  }
  if (auto written = write_output(io, options.output, rendered(options, ended.found, io));
      !written) {
    return refuse(io, written.error());
  }
  if (ended.failure) {
    show_error(io.err, *ended.failure);
  } else if (auto saved = save_profile(options, ended.found, io); !saved) {
    return refuse(io, saved.error());
  }
  return status_of(options, ended);
}

}  // namespace berth::cli
