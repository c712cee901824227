// SPDX-License-Identifier: Apache-2.0
#include "transfer/copy_profile.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth::transfer {
namespace {

using json = nlohmann::json;

constexpr int schema = 2;
constexpr std::string_view schema_name = "berth copy profile";
constexpr unsigned most_threads = 1024;

// Measured on H200 machines with 16 CPUs (docs/performance.md). Small copies want few threads,
// which are quick to wake, and small blocks, so that link and threads overlap at all.
constexpr std::array nominal_to_device{
    staging_rule{1 * mib, 4, 128 * kib, 512 * kib, 64 * kib, slot_store::streaming},
    staging_rule{3 * mib, 8, 256 * kib, 1 * mib, 64 * kib, slot_store::streaming},
    staging_rule{12 * mib, 15, 256 * kib, 2 * mib, 64 * kib, slot_store::demoted},
    staging_rule{48 * mib, 15, 512 * kib, 4 * mib, 128 * kib, slot_store::demoted},
};
constexpr std::array nominal_to_host{
    staging_rule{1 * mib, 4, 128 * kib, 512 * kib, 64 * kib},
    staging_rule{3 * mib, 8, 128 * kib, 512 * kib, 64 * kib},
    staging_rule{8 * mib, 12, 256 * kib, 1 * mib, 64 * kib},
    staging_rule{12 * mib, 12, 256 * kib, 4 * mib, 128 * kib},
};

// With one or two threads only the large copies win, and large blocks cost them least.
constexpr unsigned few_threads = 3;
constexpr std::array few_to_device{
    staging_rule{8 * mib, 2, 512 * kib, 2 * mib, 256 * kib, slot_store::streaming}};
// To the host two threads are no faster than the runtime's one, but for middle sizes.
constexpr std::array few_to_host{staging_rule{8 * mib, 2, 512 * kib, 2 * mib, 256 * kib},
                                 staging_rule{24 * mib, 0, 0, 0, 0}};

template <std::size_t Count>
std::vector<staging_rule> limited(const std::array<staging_rule, Count>& rules, unsigned threads) {
  std::vector<staging_rule> made(rules.begin(), rules.end());
  for (auto& one : made) {
    one.threads = std::min(one.threads, std::max(threads, 1U));
  }
  return made;
}

json to_json(const std::vector<staging_rule>& rules) {
  json list = json::array();
  for (const auto& one : rules) {
    list.push_back({{"from_bytes", one.from},
                    {"threads", one.threads},
                    {"first_block_bytes", one.first_block},
                    {"largest_block_bytes", one.largest_block},
                    {"piece_bytes", one.piece},
                    {"stores", to_string(one.store)},
                    {"losses", one.losses}});
  }
  return list;
}

error malformed(std::string_view where, std::string why) {
  return error(errc::input_malformed, std::move(why), std::string(where),
               "delete the file: it is measured anew");
}

bool is_sound(const staging_rule& one) {
  const bool sizes = one.piece >= 4 * kib && one.first_block >= one.piece &&
                     one.largest_block >= one.first_block && one.largest_block <= 64 * mib;
  return one.threads == 0 || (one.threads <= most_threads && sizes);
}

result<std::vector<staging_rule>> rules_from(const json& list, std::string_view where) {
  std::vector<staging_rule> rules;
  if (!list.is_array()) {
    return malformed(where, "the rules are no list");
  }
  for (const auto& one : list) {
    std::array<std::uint64_t, 6> numbers{};
    constexpr std::array names{"from_bytes",          "threads",     "first_block_bytes",
                               "largest_block_bytes", "piece_bytes", "losses"};
    for (std::size_t index = 0; index < names.size(); ++index) {
      if (!one.is_object() || !one.contains(names[index]) ||
          !one[names[index]].is_number_unsigned()) {
        return malformed(where, fmt::format("a rule without a number \"{}\"", names[index]));
      }
      numbers[index] = one[names[index]].get<std::uint64_t>();
    }
    const auto store = one.contains("stores") && one["stores"].is_string()
                           ? parse_slot_store(one["stores"].get<std::string>())
                           : std::nullopt;
    if (!store) {
      return malformed(where, "a rule without known \"stores\"");
    }
    const auto limited = [](std::uint64_t number) {
      return static_cast<unsigned>(std::min<std::uint64_t>(number, most_threads + 1));
    };
    const staging_rule rule{.from = numbers[0],
                            .threads = limited(numbers[1]),
                            .first_block = numbers[2],
                            .largest_block = numbers[3],
                            .piece = numbers[4],
                            .store = *store,
                            .losses = limited(numbers[5])};
    if (!is_sound(rule) || (!rules.empty() && rules.back().from >= rule.from)) {
      return error(errc::input_out_of_range, "a rule whose numbers cannot be true",
                   std::string(where), "delete the file: it is measured anew");
    }
    rules.push_back(rule);
  }
  return rules;
}

const staging_rule* find(const std::vector<staging_rule>& rules, bytes_t bytes) noexcept {
  const auto after =
      std::upper_bound(rules.begin(), rules.end(), bytes,
                       [](bytes_t size, const auto& one) { return size < one.from; });
  return after == rules.begin() || std::prev(after)->threads == 0 ? nullptr : &*std::prev(after);
}

}  // namespace

const staging_rule* copy_profile::rule_for(direction way, bytes_t bytes) const noexcept {
  switch (way) {
    case direction::host_to_device:
      return find(to_device, bytes);
    case direction::device_to_host:
      return find(to_host, bytes);
    default:
      return nullptr;
  }
}

bytes_t copy_profile::smallest_staged() const noexcept {
  bytes_t smallest = std::numeric_limits<bytes_t>::max();
  for (const auto* rules : {&to_device, &to_host}) {
    for (const auto& one : *rules) {
      smallest = one.threads > 0 ? std::min(smallest, one.from) : smallest;
    }
  }
  return smallest;
}

copy_profile nominal_profile(unsigned threads) {
  const bool few = threads < few_threads;
  return {.to_device = few ? limited(few_to_device, threads) : limited(nominal_to_device, threads),
          .to_host = few ? limited(few_to_host, threads) : limited(nominal_to_host, threads),
          .known = provenance::nominal,
          .source = "berth's own rules, measured on an H200"};
}

copy_profile empty_profile() {
  return {.to_device = {}, .to_host = {}, .known = provenance::unknown, .source = "none"};
}

std::string to_json(const copy_profile& profile) {
  const json all{{"format", schema_name},
                 {"schema", schema},
                 {"source", profile.source},
                 {"to_device", to_json(profile.to_device)},
                 {"to_host", to_json(profile.to_host)}};
  return all.dump(2) + "\n";
}

result<copy_profile> parse_copy_profile(std::string_view text, std::string_view where) {
  const json all = json::parse(text, nullptr, false);
  if (!all.is_object() || !all.contains("format") || all["format"] != schema_name) {
    return malformed(where, "this is no copy profile");
  }
  if (!all.contains("schema") || all["schema"] != schema) {
    return malformed(where, "a copy profile of another version of berth");
  }
  if (!all.contains("source") || !all["source"].is_string() || !all.contains("to_device") ||
      !all.contains("to_host")) {
    return malformed(where, "a copy profile that lacks a part");
  }
  auto to_device = rules_from(all["to_device"], where);
  if (!to_device) {
    return to_device.error();
  }
  auto to_host = rules_from(all["to_host"], where);
  if (!to_host) {
    return to_host.error();
  }
  return copy_profile{.to_device = std::move(*to_device),
                      .to_host = std::move(*to_host),
                      .known = provenance::measured,
                      .source = all["source"].get<std::string>()};
}

std::optional<std::string> profile_path(std::string_view key) {
  std::string safe;
  for (const char one : key) {
    const bool plain = (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') ||
                       (one >= 'A' && one <= 'Z') || one == '-' || one == '.';
    safe += plain ? one : '_';
  }
  const char* const cache = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe)
  if (cache != nullptr && *cache == '/') {
    return fmt::format("{}/berth/copy-{}.json", cache, safe);
  }
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home != nullptr && *home == '/') {
    return fmt::format("{}/.cache/berth/copy-{}.json", home, safe);
  }
  return std::nullopt;
}

std::optional<copy_profile> load_profile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // The stream sets its state where the iterators would throw: for a folder, for one.
  if (!file || !(text << file.rdbuf())) {
    return std::nullopt;
  }
  auto profile = parse_copy_profile(text.str(), path);
  return profile ? std::optional(std::move(*profile)) : std::nullopt;
}

bool save_profile(const std::string& path, const copy_profile& profile) noexcept {
  try {
    const auto text = to_json(profile);
    const std::filesystem::path target(path);
    std::filesystem::create_directories(target.parent_path());
    std::string draft = path + ".XXXXXX";
    const int file = mkstemp(draft.data());
    if (file < 0) {
      return false;
    }
    const auto wrote = write(file, text.data(), text.size());
    const bool whole = close(file) == 0 && wrote == static_cast<ssize_t>(text.size());
    if (whole && std::rename(draft.c_str(), path.c_str()) == 0) {
      return true;
    }
    unlink(draft.c_str());
    return false;
  } catch (...) {
    return false;
  }
}

}  // namespace berth::transfer
