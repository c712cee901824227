// SPDX-License-Identifier: Apache-2.0
// PCIe from a GPU to the host: which hop limits, and whether it does what both of its ends can.
//
// Words
//   segment  one physical link: a lower end (the GPU, or the upper port of a switch) and the port
//            above it (of a switch, or the root port). Devices of pci_path pair up from the GPU on
//   inner    the segment between a card's own switch and its GPU: always fast, and not the link to
//            the host
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

using machine::pci_device;
using machine::pci_port;
using machine::pcie_link;
using machine::setting_state;

constexpr std::uint32_t amd_graphics = 0x1002;
// Makers of the ports that emulators of machines show: what these say of themselves means nothing.
constexpr std::array<std::uint32_t, 3> virtual_makers{0x1b36, 0x15ad, 0x1414};

struct segment {
  std::string field;    // of its lower end
  std::string address;  // likewise; empty where unknown
  std::string above;    // address of the port; empty where unknown
  pcie_link trained;
  pcie_link lower;  // what the lower end can do
  pcie_link port;   // what the port can do; nothing where unknown or virtual
  // The lower end itself says that it could do more, of which the amount may not be known.
  setting_state slow = setting_state::unknown;
  setting_state narrow = setting_state::unknown;
};

struct judged {
  diagnose::verdict verdict;
  std::string text;
  std::vector<std::string> fix = {};
};

bool is_virtual(const pci_device& device) {
  return device.vendor_id &&
         std::ranges::find(virtual_makers, *device.vendor_id) != virtual_makers.end();
}

bool is_inner(const machine::gpu& gpu, const pci_device& above) {
  return gpu.made_by == machine::vendor::amd && above.vendor_id == amd_graphics &&
         (above.port == pci_port::downstream || above.port == pci_port::bridge ||
          above.port == pci_port::unknown);
}

std::optional<std::uint32_t> either(std::optional<std::uint32_t> a,
                                    std::optional<std::uint32_t> b) {
  return a ? a : b;
}

std::optional<std::uint32_t> lower_of(std::optional<std::uint32_t> a,
                                      std::optional<std::uint32_t> b) {
  return a && b ? std::min(*a, *b) : either(a, b);
}

// Both ends of a link report it; a virtual port reports anything.
segment segment_at(const machine::gpu& gpu, std::size_t position, std::size_t at) {
  const auto& device = gpu.pci_path[at];
  segment one{.field = gpu_field(position, fmt::format("pci_path[{}]", at)),
              .address = device.address,
              .above = {},
              .trained = device.trained,
              .lower = device.capable,
              .port = {},
              .slow = device.speed_downgraded,
              .narrow = device.width_downgraded};
  if (at + 1 < gpu.pci_path.size()) {
    const auto& port = gpu.pci_path[at + 1];
    one.above = port.address;
    if (!is_virtual(port)) {
      one.port = port.capable;
      one.trained.generation = either(one.trained.generation, port.trained.generation);
      one.trained.width = either(one.trained.width, port.trained.width);
    }
  }
  return one;
}

std::vector<segment> segments_of(const machine::gpu& gpu, std::size_t position) {
  std::vector<segment> all;
  for (std::size_t at = 0; at < gpu.pci_path.size(); at += 2) {
    const auto& device = gpu.pci_path[at];
    const bool alone_at_top =
        at > 0 && at + 1 == gpu.pci_path.size() && device.port != pci_port::upstream;
    const bool inner = at == 0 && gpu.pci_path.size() > 1 && is_inner(gpu, gpu.pci_path[1]);
    if (!alone_at_top && !inner) {
      all.push_back(segment_at(gpu, position, at));
    }
  }
  if (gpu.pci_path.empty()) {
    all.push_back({.field = fmt::format("gpus[{}]", position),
                   .address = gpu.pci_address,
                   .above = {},
                   .trained = gpu.trained_link,
                   .lower = gpu.host_link,
                   .port = {}});
  }
  return all;
}

pcie_link capable_of(const segment& one) {
  return {lower_of(one.lower.generation, one.port.generation),
          lower_of(one.lower.width, one.port.width)};
}

bool is_below(std::optional<std::uint32_t> is, std::optional<std::uint32_t> can) {
  return is && can && *is < *can;
}

bool is_downgraded(const segment& one) {
  return one.slow == setting_state::on || one.narrow == setting_state::on;
}

bool is_known(const segment& one) {
  return (one.trained.generation || one.trained.width) &&
         (one.lower.generation || one.lower.width || is_downgraded(one));
}

std::string with_rate(const pcie_link& link) {
  const auto rate = machine::pcie_gb_per_s(link);
  return rate ? fmt::format("{} ({:.1f} GB/s)", link_text(link), *rate) : link_text(link);
}

const std::vector<std::string>& repairs() {
  static const std::vector<std::string> lines{
      "Reseat the card, and try it without a riser or cable and in another slot; look for "
      "\"PCIe Bus Error\" in dmesg.",
      "Check the slot's bifurcation and speed settings in the firmware's setup."};
  return lines;
}

// Both ends can do more lanes than are in use: nothing but a fault does that. Where the port's
// ability is unknown the slot may just have fewer lanes, but hardly as few as four.
judged judge_width(const segment& one, const pcie_link& can) {
  constexpr std::uint32_t few_lanes = 4;
  const auto text = fmt::format("runs at {}, though {} can do {}", with_rate(one.trained),
                                one.port.width ? "both ends" : "the card", with_rate(can));
  if (one.port.width || *one.trained.width <= few_lanes) {
    return {verdict::fault, text + ": lanes are lost", repairs()};
  }
  return {verdict::unknown,
          text + ": the slot may have no more lanes, or lanes are lost; the port above tells",
          {"Compare LnkCap of the port above: a wider one makes this a fault, an equal one a limit "
           "of the slot."}};
}

// A slow link at full width: power saving, or trouble. Only an awake GPU's tells.
judged judge_speed(const machine::gpu& gpu, const segment& one, const pcie_link& can) {
  const auto text = fmt::format("runs at {} of {}", with_rate(one.trained), with_rate(can));
  if (gpu.asleep == setting_state::on) {
    return {verdict::normal, text + ": the GPU is asleep, and its link with it"};
  }
  constexpr std::uint32_t slow_generation = 2;
  const bool is_slow = *one.trained.generation <= slow_generation;
  if (one.port.generation && gpu.asleep == setting_state::off && !is_slow) {
    return {verdict::fault, text + ", though both ends can do more", repairs()};
  }
  if (!one.port.generation && !is_slow) {
    return {verdict::limit,
            text + ": a slot of an older generation is the usual reason; the port above tells",
            {"Nothing to repair where LnkCap of the port above is this speed."}};
  }
  return {verdict::unknown,
          text + ": an idle GPU slows its link to save power, which is no fault",
          {"Look again while copies run: a link that stays slow then is a fault."}};
}

// By how much it could do more is not told, nor what the port can: an idle GPU is slow, and a slot
// may be narrow.
judged judge_downgrade(const segment& one) {
  const bool narrow = one.narrow == setting_state::on;
  return {verdict::unknown,
          fmt::format("runs at {}, and the device could do {}: {}", with_rate(one.trained),
                      narrow && one.slow == setting_state::on ? "more lanes and more speed"
                      : narrow                                ? "more lanes"
                                                              : "more speed",
                      narrow ? "a slot with no more, or lanes that are lost; this link limits all "
                               "copies of the GPU"
                             : "an idle GPU slows its link to save power, which is no fault"),
          {"Compare LnkCap of both ends of this link, while copies run."}};
}

std::optional<judged> judge_slot(const segment& one, const pcie_link& can) {
  const bool slow = is_below(one.port.generation, one.lower.generation);
  const bool narrow = is_below(one.port.width, one.lower.width);
  if (!slow && !narrow) {
    return std::nullopt;
  }
  return judged{verdict::limit,
                fmt::format("runs at {}, all that the {} gives; the card could do {}",
                            with_rate(one.trained.width ? one.trained : can),
                            slow ? "slot's generation" : "slot's width", with_rate(one.lower)),
                {"Nothing is broken: a slot that can do more, if the machine has one, is the only "
                 "way to more."}};
}

judged judge(const machine::gpu& gpu, const segment& one) {
  const auto can = capable_of(one);
  if (is_below(one.trained.width, can.width)) {
    return judge_width(one, can);
  }
  if (is_below(one.trained.generation, can.generation)) {
    return judge_speed(gpu, one, can);
  }
  if (!can.generation && !can.width && is_downgraded(one)) {
    return judge_downgrade(one);
  }
  if (auto slot = judge_slot(one, can)) {
    return *std::move(slot);
  }
  return {verdict::normal, fmt::format("runs at {}, all it can do", with_rate(one.trained))};
}

// A card with a switch of its own of which only the GPU was shown: what its link says is not of the
// host. Accelerators from MI200 on have none.
bool hides_its_switch(const machine::survey& seen, const machine::gpu& gpu) {
  return seen.kind == machine::survey_kind::pasted && gpu.made_by == machine::vendor::amd &&
         gpu.pci_path.size() == 1 && !gpu.isa.starts_with("gfx90a") &&
         !gpu.isa.starts_with("gfx94") && !gpu.isa.starts_with("gfx95");
}

judged judge_seen(const machine::survey& seen, const machine::gpu& gpu, const segment& one) {
  auto what = judge(gpu, one);
  if (!hides_its_switch(seen, gpu) || what.verdict == verdict::fault) {
    return what;
  }
  return {verdict::unknown,
          fmt::format("is not in the input: what the GPU shows, {}, may be the link to a switch on "
                      "the card",
                      with_rate(one.trained)),
          {"Show the bridges above it too: sudo lspci -vv of the whole machine."}};
}

// The worst segment; of equally bad ones, the slowest.
struct worst_segment {
  judged what;
  segment where;
};

std::optional<worst_segment> worst_of(const machine::survey& seen, std::size_t position) {
  const auto& gpu = seen.machine.gpus[position];
  std::optional<worst_segment> worst;
  const auto rate_of = [](const segment& one) {
    return machine::pcie_gb_per_s(one.trained).value_or(1e9);
  };
  for (auto& one : segments_of(gpu, position)) {
    if (!is_known(one)) {
      continue;
    }
    auto what = judge_seen(seen, gpu, one);
    if (!worst || what.verdict > worst->what.verdict ||
        (what.verdict == worst->what.verdict && rate_of(one) < rate_of(worst->where))) {
      worst = worst_segment{std::move(what), std::move(one)};
    }
  }
  return worst;
}

bool is_behind_own_switch(const machine::gpu& gpu) {
  return gpu.pci_path.size() > 1 && is_inner(gpu, gpu.pci_path[1]);
}

std::string place_of(const machine::gpu& gpu, const segment& one) {
  if (is_behind_own_switch(gpu)) {
    return "link to the host, above the switch on the card,";
  }
  return one.field.ends_with("[0]") || gpu.pci_path.empty() ? "link to the host"
                                                            : "link of the switch to the host";
}

check_result result_of(const machine::survey& seen, const machine::gpu& gpu,
                       const worst_segment& worst) {
  const auto& [what, where] = worst;
  check_result result{.verdict = what.verdict, .fix = what.fix, .gpus = {gpu.index}};
  result.headline = fmt::format("{} {}", place_of(gpu, where), what.text);
  const bool is_path = !gpu.pci_path.empty();
  const auto cite = [&](const std::string& name, const pcie_link& link) {
    if (link.generation || link.width) {
      result.evidence.push_back(evidence_of(seen, where.field + "." + name, link_text(link)));
    }
  };
  cite(is_path ? "trained" : "trained_link", where.trained);
  cite(is_path ? "capable" : "host_link", where.lower);
  if (where.port.generation || where.port.width) {
    result.evidence.push_back(
        {fmt::format("the port above, {}", where.above), link_text(where.port), ""});
  }
  if (what.verdict != verdict::normal) {
    const auto& address = where.above.empty() ? where.address : where.above;
    result.confirm = fmt::format("sudo lspci -vv{}{} | grep -E 'LnkCap|LnkSta'",
                                 address.empty() ? "" : " -s ", address);
  }
  return result;
}

// GPUs of which the same is to be said, in one result.
void add_grouped(std::vector<check_result>& found, check_result one) {
  const auto same = std::ranges::find_if(found, [&](const check_result& other) {
    return other.verdict == one.verdict && other.headline == one.headline;
  });
  if (same == found.end()) {
    found.push_back(std::move(one));
    return;
  }
  same->gpus.insert(same->gpus.end(), one.gpus.begin(), one.gpus.end());
  std::ranges::move(one.evidence, std::back_inserter(same->evidence));
}

bool is_port(const pci_device& device) {
  return device.port == pci_port::root_port || device.port == pci_port::downstream;
}

// A link of which only one end is known, and not what is behind it. Nothing to say: nothing.
std::optional<judged> judge_loose(const pci_device& device) {
  constexpr std::uint32_t slow_generation = 2;
  constexpr std::uint32_t one_lane = 1;
  const auto& [trained, can] = std::pair(device.trained, device.capable);
  const bool narrow = is_below(trained.width, can.width);
  const bool slow = is_below(trained.generation, can.generation);
  const auto text =
      fmt::format("runs at {}, though it can do {}", with_rate(trained), with_rate(can));
  if (narrow && slow) {
    return judged{verdict::fault, text + ": both lanes and speed are lost", repairs()};
  }
  if (narrow) {
    return judged{verdict::unknown,
                  text + ": lanes are lost, or the other end has no more",
                  {"Compare LnkCap of the other end of the link."}};
  }
  if (can.width == one_lane && device.port != pci_port::endpoint) {
    return judged{
        verdict::limit,
        fmt::format("has a single lane ({}): a GPU behind it, on a riser for one, is held "
                    "to that",
                    with_rate(can)),
        {"Use a slot with 16 lanes."}};
  }
  if (trained.generation && *trained.generation <= slow_generation && (slow || !can.generation)) {
    return judged{verdict::unknown,
                  fmt::format("runs at {}: an idle GPU slows its link to save power, which is no "
                              "fault",
                              with_rate(trained)),
                  {"Look again while copies run: a link that stays slow then is a fault."}};
  }
  if (slow) {
    return judged{verdict::limit,
                  text + ": the other end is of an older generation, which is no fault",
                  {"Nothing to repair where LnkCap of the other end is this speed."}};
  }
  return std::nullopt;
}

// Excerpts that show links and no GPU: about nothing else was the reader asked.
void check_loose_devices(const machine::survey& seen, std::vector<check_result>& results) {
  const auto& devices = seen.machine.pci_devices;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const auto& device = devices[index];
    if (!seen.machine.gpus.empty() && !device.address.empty()) {
      continue;
    }
    const auto what = judge_loose(device);
    if (!what) {
      continue;
    }
    const auto field = fmt::format("pci_devices[{}]", index);
    results.push_back(
        {.verdict = what->verdict,
         .headline =
             fmt::format("{} {} {}", is_port(device) ? "a PCIe port" : "a PCIe device",
                         device.address.empty() ? "without address" : device.address, what->text),
         .evidence = {evidence_of(seen, field + ".trained", link_text(device.trained)),
                      evidence_of(seen, field + ".capable", link_text(device.capable))},
         .confirm = "sudo lspci -vv | grep -E '^[0-9a-f]|LnkCap|LnkSta'",
         .fix = what->fix});
  }
}

// Slow links of idle GPUs say nothing of what copies get.
std::optional<pcie_link> speed_for_copies(const segment& one) {
  constexpr std::uint32_t slow_generation = 2;
  const auto can = capable_of(one);
  const auto trained = one.trained.generation;
  pcie_link link{.generation = trained && (*trained > slow_generation || trained == can.generation)
                                   ? trained
                                   : can.generation,
                 .width = either(one.trained.width, can.width)};
  return link.generation && link.width ? std::optional(link) : std::nullopt;
}

}  // namespace

std::optional<pcie_link> host_link_of(const machine::survey& seen, std::size_t position) {
  const auto& gpu = seen.machine.gpus[position];
  const bool has_none =
      gpu.integrated == setting_state::on || gpu.virtual_function == setting_state::on;
  if (has_none || hides_its_switch(seen, gpu)) {
    return std::nullopt;
  }
  std::optional<pcie_link> slowest;
  for (const auto& one : segments_of(gpu, position)) {
    const auto link = speed_for_copies(one);
    if (!link) {
      return std::nullopt;
    }
    if (!slowest || machine::pcie_gb_per_s(*link) < machine::pcie_gb_per_s(*slowest)) {
      slowest = link;
    }
  }
  return slowest;
}

void check_host_link(const machine::survey& seen, std::vector<check_result>& results) {
  std::vector<check_result> found;
  std::vector<std::uint32_t> untold;
  const auto& gpus = seen.machine.gpus;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    const auto& gpu = gpus[position];
    if (gpu.integrated == setting_state::on || gpu.virtual_function == setting_state::on) {
      continue;  // no link of its own
    }
    if (auto worst = worst_of(seen, position)) {
      add_grouped(found, result_of(seen, gpu, *std::move(worst)));
    } else {
      untold.push_back(gpu.index);
    }
  }
  for (auto& one : found) {
    one.headline = fmt::format("{}: {}", gpu_names(one.gpus), one.headline);
    results.push_back(std::move(one));
  }
  if (!untold.empty()) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = fmt::format("{}: what the link to the host runs at, or what it "
                                               "can do, is not in the input",
                                               gpu_names(untold)),
                       .confirm = "sudo lspci -vv",
                       .gpus = untold});
  }
  check_loose_devices(seen, results);
}

}  // namespace berth::diagnose
