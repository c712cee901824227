// SPDX-License-Identifier: Apache-2.0
// berth doctor's report as text for a terminal.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "berth/units.hpp"
#include "core/text.hpp"
#include "diagnose/checks/values.hpp"
#include "report/doctor.hpp"
#include "report/page.hpp"

namespace berth::report {
namespace {

using diagnose::check_result;
using diagnose::verdict;

struct verdict_look {
  std::string_view label;
  style how;
};
constexpr std::array<verdict_look, 4> verdict_looks{{{"NORMAL", style::green},
                                                     {"UNKNOWN", style::faint},
                                                     {"LIMIT", style::yellow},
                                                     {"FAULT", style::red}}};

const verdict_look& look_of(verdict value) {
  return verdict_looks[static_cast<std::size_t>(value)];
}

void put_headline(page& out, const doctor_report& shown) {
  out.block("VERDICT", shown.found.headline + ".", look_of(shown.found.worst).how);
}

void put_requirements(page& out, const doctor_report& shown) {
  using diagnose::fulfilment;
  if (!shown.required.empty()) {
    out.line();
  }
  for (const auto& [what, is, found] : shown.required) {
    out.block(is == fulfilment::met ? "MET" : "NOT MET",
              text::printable(fmt::format("{}={}{}: {}", what.name, what.wanted,
                                          is == fulfilment::unknown ? " (not known)" : "", found)),
              is == fulfilment::met ? style::green : style::red);
  }
}

void put_evidence(page& out, const check_result& one) {
  constexpr std::size_t enough = 4;
  for (std::size_t index = 0; index < std::min(enough, one.evidence.size()); ++index) {
    const auto& [field, value, source] = one.evidence[index];
    out.block(index == 0 ? "seen" : "",
              text::printable(source.empty() ? fmt::format("{}: {}", field, value)
                                             : fmt::format("{}: {} ({})", field, value, source)),
              style::faint, 9, 10);
  }
  if (one.evidence.size() > enough) {
    out.block("", fmt::format("and {} more: --format json lists all", one.evidence.size() - enough),
              style::faint, 9, 10);
  }
}

void put_result(page& out, const check_result& one) {
  const auto& look = look_of(one.verdict);
  out.line();
  out.block(look.label, text::printable(one.headline) + fmt::format(" [{}]", one.check), look.how);
  put_evidence(out, one);
  if (!one.confirm.empty()) {
    out.block("confirm", one.confirm, style::faint, 9, 10);
  }
  for (std::size_t index = 0; index < one.fix.size(); ++index) {
    out.block(index == 0 ? "fix" : "", text::printable(one.fix[index]), style::faint, 9, 10);
  }
}

// Nothing was seen that would be worth more than a line.
bool is_short(const check_result& one) {
  return one.verdict == verdict::normal ||
         (one.verdict == verdict::unknown && one.evidence.empty());
}

// A paste tells of little, and that is no news: one paragraph for all.
void put_untold(page& out, const doctor_report& shown) {
  std::string ids;
  for (const auto& one : shown.found.results) {
    if (one.verdict == verdict::unknown && is_short(one)) {
      ids += fmt::format("{}{}", ids.empty() ? "" : ", ", one.check);
    }
  }
  if (ids.empty()) {
    return;
  }
  out.line();
  out.block("UNKNOWN",
            fmt::format("What these need is not in the input: {}. --format json names the command "
                        "that tells each; berth doctor on the machine itself reads all.",
                        ids),
            look_of(verdict::unknown).how);
}

void put_results(page& out, const doctor_report& shown) {
  for (const auto& one : shown.found.results) {
    if (!is_short(one)) {
      put_result(out, one);
    }
  }
  const bool is_paste = shown.seen.kind == machine::survey_kind::pasted;
  for (const auto which : {verdict::normal, verdict::unknown}) {
    if (which == verdict::unknown && is_paste) {
      put_untold(out, shown);
      continue;
    }
    bool is_first = true;
    for (const auto& one : shown.found.results) {
      if (one.verdict != which || !is_short(one)) {
        continue;
      }
      if (std::exchange(is_first, false)) {
        out.line();
      }
      const auto look = one.confirm.empty() || which == verdict::normal
                            ? std::string()
                            : fmt::format(" (look: {})", one.confirm);
      out.block(look_of(which).label,
                text::printable(fmt::format("{}{} [{}]", one.headline, look, one.check)),
                look_of(which).how);
    }
  }
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

template <typename Number>
std::string number_or_dash(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

std::string bytes_or_dash(const std::optional<bytes_t>& value) {
  return value ? format_bytes(*value) : "-";
}

bool is_told(const machine::pcie_link& link) {
  return link.generation || link.width;
}

void put_gpus(page& out, const machine::description& machine) {
  if (machine.gpus.empty()) {
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& gpu : machine.gpus) {
    rows.push_back({text::printable(fmt::format("GPU {}  {}", gpu.index, diagnose::model_of(gpu))),
                    or_dash(text::printable(gpu.isa)), or_dash(text::printable(gpu.pci_address)),
                    number_or_dash(gpu.numa_node), bytes_or_dash(gpu.memory),
                    bytes_or_dash(gpu.bar),
                    is_told(gpu.trained_link) ? diagnose::link_text(gpu.trained_link) : "-",
                    is_told(gpu.host_link) ? diagnose::link_text(gpu.host_link) : "-"});
  }
  out.line();
  out.table({{"GPU", align::left},
             {"ISA", align::left},
             {"PCI", align::left},
             {"NUMA", align::right},
             {"Memory", align::right},
             {"BAR", align::right},
             {"Link", align::left},
             {"can do", align::left}},
            rows);
}

void put_nodes(page& out, const machine::description& machine) {
  if (machine.numa_nodes.empty()) {
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& node : machine.numa_nodes) {
    std::string distances;
    for (const auto& one : node.distances) {
      distances += fmt::format("{}{}:{}", distances.empty() ? "" : " ", one.to, one.value);
    }
    rows.push_back({fmt::format("NUMA node {}", node.id), or_dash(diagnose::number_list(node.cpus)),
                    bytes_or_dash(node.memory), or_dash(std::move(distances))});
  }
  out.line();
  out.table({{"Node", align::left},
             {"CPUs", align::left},
             {"Memory", align::right},
             {"Distances", align::left}},
            rows);
}

std::string place_text(machine::place_kind kind) {
  return kind == machine::place_kind::gpu ? "GPU" : "NUMA node";
}

// Links that look the same, as one line.
void put_links(page& out, const machine::description& machine) {
  using looks = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<looks, std::size_t> counted;
  for (const auto& link : machine.links) {
    ++counted[{place_text(link.from.kind) + " to " + place_text(link.to.kind),
               std::string(to_string(link.kind)), number_or_dash(link.weight),
               number_or_dash(link.hops),
               link.nominal_gb_per_s ? fmt::format("{:.0f} GB/s", *link.nominal_gb_per_s) : "-"}];
  }
  if (counted.empty()) {
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [shown, count] : counted) {
    const auto& [ends, kind, weight, hops, rate] = shown;
    rows.push_back({ends, kind, weight, hops, rate, fmt::format("{}", count)});
  }
  out.line();
  out.table({{"Links", align::left},
             {"kind", align::left},
             {"weight", align::right},
             {"hops", align::right},
             {"as told", align::right},
             {"count", align::right}},
            rows);
}

// Some variables hold pages of text. JSON has them whole.
std::string shortened(const std::string& value) {
  constexpr std::size_t enough = 60;
  return value.size() <= enough ? value : value.substr(0, enough) + "...";
}

void put_settings(page& out, const machine::settings& set) {
  std::string shown;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty() && value != "unknown") {
      shown += fmt::format("{}{} {}", shown.empty() ? "" : ", ", name, value);
    }
  };
  add("kernel", set.kernel_version);
  add("driver", set.driver_version);
  add("runtime", set.runtime_version);
  add("IOMMU", to_string(set.iommu));
  add("XNACK", to_string(set.xnack));
  add("HMM", to_string(set.hmm));
  add("NUMA balancing", to_string(set.numa_balancing));
  add("huge pages", set.transparent_huge_pages);
  add("governor", set.cpu_governor);
  add("container", to_string(set.container));
  add("virtual machine", to_string(set.virtual_machine));
  if (!shown.empty()) {
    out.line();
    out.block("Settings", text::printable(shown));
  }
  for (const auto& one : set.environment) {
    out.block("", text::printable(fmt::format("{}={}", one.name, shortened(one.value))));
  }
}

void put_problems(page& out, const machine::survey& seen) {
  constexpr std::size_t enough = 12;
  if (seen.problems.empty()) {
    return;
  }
  out.line();
  for (std::size_t index = 0; index < std::min(enough, seen.problems.size()); ++index) {
    const auto& [source, what] = seen.problems[index];
    out.block(index == 0 ? "NOT READ" : "",
              text::printable(source.empty() ? what : fmt::format("{}: {}", source, what)),
              style::yellow);
  }
  if (seen.problems.size() > enough) {
    out.block("",
              fmt::format("and {} more: --format json lists all", seen.problems.size() - enough));
  }
}

void put_sources(page& out, const doctor_report& shown) {
  const auto& seen = shown.seen;
  out.line();
  if (!seen.sources.empty()) {
    out.block("Read", text::printable(fmt::format("{}", fmt::join(seen.sources, ", "))));
  } else {
    out.block("Read", "nothing that describes a machine was recognised");
  }
  if (seen.lines == 0) {
    return;
  }
  const bool hint = !seen.unread.empty() && shown.unread == unread_lines::counted;
  out.block("Lines", fmt::format("{} of {} were not understood{}", seen.unread_lines, seen.lines,
                                 hint ? " (--list-unread lists them)" : ""));
  if (shown.unread == unread_lines::listed) {
    for (const auto& one : seen.unread) {
      out.line(text::printable(fmt::format("  {}: {}", one.source, one.text)));
    }
  }
}

}  // namespace

std::string to_text(const doctor_report& shown, colour colours) {
  page out(colours);
  put_headline(out, shown);
  put_requirements(out, shown);
  put_results(out, shown);
  put_gpus(out, shown.seen.machine);
  put_nodes(out, shown.seen.machine);
  put_links(out, shown.seen.machine);
  put_settings(out, shown.seen.machine.set);
  put_problems(out, shown.seen);
  put_sources(out, shown);
  return out.take();
}

std::string to_text(const diagnose::affinity& shown, colour colours) {
  page out(colours);
  if (shown.gpus.empty()) {
    out.line("No GPU was seen.");
  }
  for (const auto& one : shown.gpus) {
    out.line(text::printable(fmt::format("GPU {}{}{}", one.gpu, one.pci_address.empty() ? "" : "  ",
                                         one.pci_address)),
             style::bold);
    out.block("node", one.numa_node ? fmt::format("{}", *one.numa_node) : "not in the input",
              style::faint, 9, 2);
    out.block("CPUs", one.cpus.empty() ? "not in the input" : diagnose::number_list(one.cpus),
              style::faint, 9, 2);
    for (const auto& line : {one.numactl, one.taskset}) {
      if (!line.empty()) {
        out.block("run", line, style::faint, 9, 2);
      }
    }
  }
  if (!shown.slurm.empty()) {
    out.line("Slurm, one task a GPU, in the order of the GPUs", style::bold);
    out.block("run", shown.slurm, style::faint, 9, 2);
  }
  return out.take();
}

comparison compare(const doctor_report& first, const doctor_report& second) {
  comparison both;
  const auto value_in = [](const machine::survey& seen, std::string_view field) {
    const auto* const said = seen.claim_of(field);
    return said != nullptr ? said->value : std::string();
  };
  const auto add = [&](std::string field, std::string a, std::string b) {
    if (a != b) {
      both.differences.push_back({std::move(field), std::move(a), std::move(b)});
    }
  };
  for (const auto& check : diagnose::checks()) {
    const auto conclusion = [&](const doctor_report& of) {
      std::string text;
      for (const auto& one : of.found.results) {
        if (one.check == check.id) {
          text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", to_string(one.verdict),
                              one.headline);
        }
      }
      return text;
    };
    add(fmt::format("check {}", check.id), conclusion(first), conclusion(second));
  }
  for (const auto& claim : first.seen.claims) {
    add(claim.field, claim.value, value_in(second.seen, claim.field));
  }
  for (const auto& claim : second.seen.claims) {
    if (first.seen.claim_of(claim.field) == nullptr) {
      add(claim.field, {}, claim.value);
    }
  }
  return both;
}

std::string to_text(const comparison& shown, colour colours) {
  page out(colours);
  out.block("A", text::printable(shown.first), style::bold, 4);
  out.block("B", text::printable(shown.second), style::bold, 4);
  out.line();
  if (shown.differences.empty()) {
    out.line("No difference in what was read and concluded.", style::green);
  }
  for (const auto& one : shown.differences) {
    out.line(text::printable(one.field), style::bold);
    out.block("A", text::printable(or_dash(one.first)), style::faint, 4, 2);
    out.block("B", text::printable(or_dash(one.second)), style::faint, 4, 2);
  }
  return out.take();
}

}  // namespace berth::report
