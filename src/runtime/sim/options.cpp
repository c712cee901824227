// SPDX-License-Identifier: Apache-2.0
#include "runtime/sim/options.hpp"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace berth::runtime::sim {
namespace {

template <typename Enum>
struct word {
  std::string_view text;
  Enum value;
};

constexpr std::array<word<clock_kind>, 2> clock_words{
    {{"virtual", clock_kind::virtual_time}, {"wall", clock_kind::wall}}};
constexpr std::array<word<schedule>, 4> schedule_words{{{"modelled", schedule::modelled},
                                                        {"early", schedule::early},
                                                        {"late", schedule::late},
                                                        {"random", schedule::random}}};
constexpr std::array<word<migration>, 2> migration_words{
    {{"on", migration::on}, {"off", migration::off}}};
constexpr std::array<word<page_state>, 2> page_words{
    {{"observed", page_state::observed}, {"resident", page_state::resident}}};
constexpr std::array<word<data_effects>, 2> data_words{
    {{"carried", data_effects::carried}, {"time_only", data_effects::time_only}}};

constexpr std::string_view known_options =
    "clock=virtual|wall, slowdown=N, devices=N, seed=N, schedule=modelled|early|late|random, "
    "xnack=on|off, pages=observed|resident, data=carried|time_only, cpus=N";

error unknown_option(std::string_view text) {
  return error(errc::usage, fmt::format("'{}' is no option of the simulator", text),
               "simulated runtime", std::string(known_options));
}

template <typename Enum, std::size_t Size>
bool read_word(const std::array<word<Enum>, Size>& words, std::string_view text, Enum& into) {
  for (const auto& one : words) {
    if (one.text == text) {
      into = one.value;
      return true;
    }
  }
  return false;
}

template <typename Number>
bool read_number(std::string_view text, Number least, Number most, Number& into) {
  Number read{};
  const auto* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, read);
  if (failed != std::errc{} || stop != end || !(read >= least && read <= most)) {
    return false;
  }
  into = read;
  return true;
}

bool read_option(std::string_view name, std::string_view value, options& into) {
  if (name == "clock") {
    return read_word(clock_words, value, into.clock);
  }
  if (name == "schedule") {
    return read_word(schedule_words, value, into.order);
  }
  if (name == "xnack") {
    return read_word(migration_words, value, into.pages_migrate);
  }
  if (name == "pages") {
    return read_word(page_words, value, into.pages);
  }
  if (name == "data") {
    return read_word(data_words, value, into.data);
  }
  if (name == "slowdown") {
    return read_number(value, 0.001, 1e6, into.wall_slowdown);
  }
  if (name == "devices") {
    return read_number(value, 1U, 64U, into.devices);
  }
  if (name == "cpus") {
    return read_number(value, 1U, 4096U, into.host_cpus);
  }
  if (name == "seed") {
    return read_number(value, std::uint64_t{0}, UINT64_MAX, into.seed);
  }
  return false;
}

}  // namespace

result<options> options::parse(std::string_view text) {
  options made;
  const auto first = text.find(',');
  made.model = std::string(text.substr(0, first));
  while (!text.empty()) {
    const auto comma = text.find(',');
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto part = text.substr(0, text.find(','));
    const auto equals = part.find('=');
    if (comma == std::string_view::npos) {
      break;
    }
    if (equals == std::string_view::npos ||
        !read_option(part.substr(0, equals), part.substr(equals + 1), made)) {
      return unknown_option(part);
    }
  }
  return made;
}

}  // namespace berth::runtime::sim
