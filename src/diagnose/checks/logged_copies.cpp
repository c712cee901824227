// SPDX-License-Identifier: Apache-2.0
// Who carried the copies of a runtime's log, which way, and which of them failed. The choice is the
// driver's; what a user sees of it is that rates differ by direction or by what ran before.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

using machine::logged_copies;

struct hsa_status {
  std::int64_t code;
  std::string_view meaning;
};
constexpr std::array hsa_statuses{
    hsa_status{0x1000, "a general error"},  hsa_status{0x1001, "an invalid argument"},
    hsa_status{0x1003, "an invalid agent"}, hsa_status{0x1006, "an invalid queue"},
    hsa_status{0x1008, "out of resources"},
};

std::string carrier_of(const logged_copies& some) {
  if (some.by == engine::kernel) {
    return "a kernel on the compute units";
  }
  if (some.by != engine::dma) {
    return "an engine that the log does not name";
  }
  return some.engine_name.empty() ? std::string("a copy engine")
                                  : fmt::format("copy engine {}", some.engine_name);
}

std::string_view way_of(direction way) {
  return way == direction::host_to_device   ? "from host to GPU"
         : way == direction::device_to_host ? "from GPU to host"
                                            : "of unknown direction";
}

std::string count_text(std::uint64_t count) {
  return count == 1 ? std::string("1 copy") : fmt::format("{} copies", count);
}

check_evidence evidence_of_group(const logged_copies& some) {
  return {fmt::format("copies {}", way_of(some.way)),
          fmt::format("{} by {}", some.count, carrier_of(some)), some.source};
}

check_result failed(const logged_copies& some) {
  const auto* const known = std::ranges::find(hsa_statuses, *some.failure, &hsa_status::code);
  check_result result{.verdict = verdict::fault};
  result.headline = fmt::format(
      "{} {} that {} was to carry failed with code {}{}; a runtime that counts on more copy "
      "engines "
      "than the GPU has asks for one that is not there",
      count_text(some.count), way_of(some.way), carrier_of(some), *some.failure,
      known == hsa_statuses.end() ? std::string() : fmt::format(" ({})", known->meaning));
  result.evidence.push_back(evidence_of_group(some));
  result.confirm = "HSA_ENABLE_SDMA=0 AMD_LOG_LEVEL=4 PROGRAM 2>&1 | grep -iE 'copy|code'";
  result.fix = {
      "HSA_ENABLE_SDMA=0 lets kernels carry copies, which works on any GPU and takes compute "
      "units.",
      "A newer ROCm asks for the engines that there are."};
  return result;
}

// Each direction alone may be as fast as it should be: the two share one engine.
bool share_an_engine(const std::vector<logged_copies>& copies) {
  std::map<std::string_view, std::set<direction>> ways;
  for (const auto& one : copies) {
    if (one.by == engine::dma && !one.engine_name.empty() && one.way != direction::unknown) {
      ways[one.engine_name].insert(one.way);
    }
  }
  return std::ranges::any_of(ways, [](const auto& one) { return one.second.size() > 1; });
}

std::string carriers_text(const std::vector<logged_copies>& copies) {
  constexpr std::size_t enough = 4;
  std::string text;
  for (std::size_t index = 0; index < std::min(enough, copies.size()); ++index) {
    const auto& one = copies[index];
    text += fmt::format("{}{} {} by {}", text.empty() ? "" : ", ", count_text(one.count),
                        way_of(one.way), carrier_of(one));
  }
  return copies.size() > enough ? fmt::format("{} and {} more groups", text, copies.size() - enough)
                                : text;
}

check_result carried(const std::vector<logged_copies>& copies) {
  const bool shared = share_an_engine(copies);
  check_result result{.verdict = shared ? verdict::limit : verdict::normal};
  result.headline = fmt::format(
      "the log shows who carries copies: {}{}. The driver chooses, also by what runs already: "
      "measure each direction alone and after one of the other direction",
      carriers_text(copies),
      shared ? "; one engine carries both directions, which then wait for each other" : "");
  for (const auto& one : copies) {
    result.evidence.push_back(evidence_of_group(one));
  }
  result.confirm = "AMD_LOG_LEVEL=4 PROGRAM 2>&1 | grep -E 'copy_engine|__amd_rocclr_copy'";
  if (shared) {
    result.fix = {
        "Compare rates of both directions at once with those of each alone before and "
        "after an update of ROCm: the choice of engines changes with versions."};
  }
  return result;
}

}  // namespace

void check_logged_copies(const machine::survey& seen, std::vector<check_result>& results) {
  std::vector<logged_copies> whole;
  for (const auto& one : seen.copies) {
    if (one.failure) {
      results.push_back(failed(one));
    } else {
      whole.push_back(one);
    }
  }
  if (!whole.empty()) {
    results.push_back(carried(whole));
  }
}

}  // namespace berth::diagnose
