// SPDX-License-Identifier: Apache-2.0
// XNACK: whether GPUs retry faulted accesses, so that managed pages move to where they are used.
// One mode holds for all GPUs of a process, so one that cannot stops all.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "diagnose/checks/values.hpp"
#include "machine/catalogue.hpp"
#include "machine/hardware_facts.hpp"

namespace berth::diagnose {
namespace {

using machine::setting_state;
using machine::xnack_ability;

constexpr std::string_view without_migration =
    "managed memory stays in host memory and is read over the link; hipMalloc and pinned memory "
    "are not concerned";

struct amd_gpus {
  std::vector<std::size_t> all;  // positions
  std::vector<std::size_t> able;
  std::vector<std::size_t> at_boot;
  std::vector<std::size_t> unable;
};

amd_gpus sorted_by_ability(const machine::survey& seen) {
  amd_gpus sorted;
  const auto& gpus = seen.machine.gpus;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    if (gpus[position].made_by != machine::vendor::amd) {
      continue;
    }
    sorted.all.push_back(position);
    const auto ability = xnack_ability_of(gpus[position]);
    if (ability == xnack_ability::per_process) {
      sorted.able.push_back(position);
    } else if (ability == xnack_ability::boot_parameter) {
      sorted.at_boot.push_back(position);
    } else if (ability == xnack_ability::none) {
      sorted.unable.push_back(position);
    }
  }
  return sorted;
}

std::string described(const machine::survey& seen, const std::vector<std::size_t>& positions) {
  const auto& first = seen.machine.gpus[positions.front()];
  const auto names = gpu_names(indices_of(seen, positions));
  return first.isa.empty() ? fmt::format("{} ({})", names, model_of(first))
                           : fmt::format("{} ({})", names, first.isa);
}

void cite(const machine::survey& seen, check_result& result,
          const std::vector<std::size_t>& positions) {
  for (const auto position : positions) {
    const auto& gpu = seen.machine.gpus[position];
    if (!gpu.isa.empty()) {
      result.evidence.push_back(evidence_of(seen, gpu_field(position, "isa"), gpu.isa));
    }
    if (gpu.xnack != setting_state::unknown) {
      result.evidence.push_back(
          evidence_of(seen, gpu_field(position, "xnack"), std::string(to_string(gpu.xnack))));
    }
  }
  if (seen.machine.set.xnack != setting_state::unknown) {
    result.evidence.push_back(
        evidence_of(seen, "settings.xnack", std::string(to_string(seen.machine.set.xnack))));
  }
}

check_result about(const machine::survey& seen, const std::vector<std::size_t>& positions,
                   verdict verdict, std::string headline) {
  check_result result{.verdict = verdict, .headline = std::move(headline)};
  result.gpus = indices_of(seen, positions);
  cite(seen, result, positions);
  result.confirm = "HSA_XNACK=1 rocminfo | grep -i xnack";
  return result;
}

// The system's line speaks for the process, and may owe its YES to an integrated GPU: with one
// beside discrete GPUs, only what a discrete GPU itself says counts.
setting_state state_of(const machine::survey& seen, const std::vector<std::size_t>& positions) {
  std::optional<setting_state> own;
  for (const auto position : positions) {
    const auto state = seen.machine.gpus[position].xnack;
    if (state == setting_state::off || (state == setting_state::on && !own)) {
      own = state;
    }
  }
  if (own) {
    return *own;
  }
  const bool others = std::ranges::any_of(seen.machine.gpus, [](const machine::gpu& gpu) {
    return gpu.integrated == setting_state::on;
  });
  const bool all_integrated = std::ranges::all_of(positions, [&](std::size_t position) {
    return seen.machine.gpus[position].integrated == setting_state::on;
  });
  return others && !all_integrated ? setting_state::unknown : seen.machine.set.xnack;
}

// Why HSA_XNACK=1 has no effect, where something known explains it.
std::optional<std::string> obstacle(const machine::survey& seen,
                                    const std::vector<std::size_t>& positions) {
  if (seen.machine.set.hmm == setting_state::off) {
    return "the kernel or its driver cannot migrate pages (HMM)";
  }
  if (seen.machine.set.noretry == setting_state::on) {
    return "amdgpu.noretry=1 forbids retries";
  }
  const bool is_virtual = std::ranges::any_of(positions, [&](std::size_t position) {
    return seen.machine.gpus[position].virtual_function == setting_state::on;
  });
  if (is_virtual) {
    return "the GPU is a virtual function, whose host decides";
  }
  return std::nullopt;
}

std::vector<std::string> ways_past(const machine::survey& seen) {
  if (seen.machine.set.hmm == setting_state::off) {
    return {
        "Use a kernel with CONFIG_HMM_MIRROR=y and CONFIG_DEVICE_PRIVATE=y, and an amdgpu "
        "driver built for it."};
  }
  if (seen.machine.set.noretry == setting_state::on) {
    return {"Remove amdgpu.noretry=1 from the kernel's command line and from /etc/modprobe.d."};
  }
  return {"Use hipMemPrefetchAsync or explicit copies, which do not need XNACK."};
}

check_result switched_off(const machine::survey& seen, const std::vector<std::size_t>& able) {
  const auto* const variable = find_variable(seen, "HSA_XNACK");
  const auto why = obstacle(seen, able);
  const auto names = described(seen, able);
  if (variable != nullptr && variable->value == "1") {
    auto result =
        about(seen, able, why ? verdict::limit : verdict::fault,
              fmt::format("HSA_XNACK=1 is set, and yet XNACK is off on {}{}: {}", names,
                          why ? ": " + *why : std::string(", which can"), without_migration));
    result.evidence.push_back(evidence_of(seen, "settings.environment", "HSA_XNACK=1"));
    result.fix = ways_past(seen);
    return result;
  }
  if (why) {
    auto result = about(
        seen, able, verdict::limit,
        fmt::format("XNACK is off on {} and HSA_XNACK=1 would not turn it on: {}", names, *why));
    result.fix = ways_past(seen);
    return result;
  }
  auto result =
      about(seen, able, verdict::normal,
            fmt::format("XNACK is off on {}, as is the default: {}", names, without_migration));
  result.fix = {
      "Set HSA_XNACK=1 for programs whose managed memory should migrate; code built for "
      "xnack- alone does not run then."};
  return result;
}

bool say_on_themselves(const machine::survey& seen, const std::vector<std::size_t>& positions) {
  return std::ranges::any_of(positions, [&](std::size_t position) {
    return seen.machine.gpus[position].xnack == setting_state::on;
  });
}

// Nobody asked for XNACK where the environment was looked at: the driver's default holds.
check_result by_default(const machine::survey& seen, const std::vector<std::size_t>& able) {
  const bool on = seen.machine.set.noretry == setting_state::off;
  auto result = about(seen, able, verdict::normal,
                      fmt::format("{} can use XNACK; HSA_XNACK is not set, so the driver's default "
                                  "holds, which is {}",
                                  described(seen, able),
                                  on ? std::string("on with amdgpu.noretry=0")
                                     : fmt::format("off: {}", without_migration)));
  result.fix = {"Set HSA_XNACK=1 for programs whose managed memory should migrate."};
  return result;
}

check_result all_able(const machine::survey& seen, const std::vector<std::size_t>& able) {
  const auto names = described(seen, able);
  const auto state = state_of(seen, able);
  const auto why = obstacle(seen, able);
  if (state == setting_state::on && (say_on_themselves(seen, able) || !why)) {
    return about(seen, able, verdict::normal,
                 fmt::format("XNACK is on for {}: managed pages migrate when touched", names));
  }
  if (state == setting_state::off || state == setting_state::on) {
    return switched_off(seen, able);
  }
  if (!why && seen.kind != machine::survey_kind::pasted) {
    return by_default(seen, able);
  }
  auto result = about(
      seen, able, why ? verdict::limit : verdict::unknown,
      why ? fmt::format("{} could use XNACK, but {}", names, *why)
          : fmt::format("{} can use XNACK with HSA_XNACK=1; whether it is on is not in the input",
                        names));
  if (why) {
    result.fix = ways_past(seen);
  }
  return result;
}

// Names those that block, and how to leave them out.
check_result blocked(const machine::survey& seen, const amd_gpus& gpus,
                     const std::vector<std::size_t>& blockers) {
  auto concerned = blockers;
  concerned.insert(concerned.end(), gpus.able.begin(), gpus.able.end());
  auto result =
      about(seen, concerned, verdict::limit,
            fmt::format("{} cannot use XNACK and {} can: a process has one mode for all its GPUs, "
                        "so with all visible it stays off",
                        described(seen, blockers), described(seen, gpus.able)));
  result.fix = {fmt::format("Hide the others: ROCR_VISIBLE_DEVICES={} HSA_XNACK=1",
                            fmt::join(indices_of(seen, gpus.able), ","))};
  return result;
}

check_result never(const machine::survey& seen, const std::vector<std::size_t>& unable) {
  std::string text = fmt::format("{} cannot retry faulted accesses: {}", described(seen, unable),
                                 without_migration);
  if (seen.machine.set.xnack == setting_state::on) {
    text += "; \"XNACK enabled: YES\" does not speak of these GPUs";
  }
  auto result = about(seen, unable, verdict::limit, std::move(text));
  result.fix = {"Copy explicitly, or use hipMemPrefetchAsync: no setting changes this."};
  return result;
}

check_result at_boot(const machine::survey& seen, const std::vector<std::size_t>& positions) {
  const auto names = described(seen, positions);
  if (state_of(seen, positions) == setting_state::on) {
    return about(seen, positions, verdict::normal, fmt::format("XNACK is on for {}", names));
  }
  auto result = about(seen, positions, verdict::limit,
                      fmt::format("{} can retry faulted accesses only if the driver was loaded "
                                  "with amdgpu.noretry=0; HSA_XNACK=1 alone does nothing: {}",
                                  names, without_migration));
  result.confirm = "cat /sys/module/amdgpu/parameters/noretry";
  result.fix = {
      "Boot with amdgpu.noretry=0 where managed memory must migrate; it costs speed "
      "elsewhere."};
  return result;
}

// An integrated GPU's YES, next to discrete ones that said nothing themselves.
void warn_of_integrated(const machine::survey& seen, const amd_gpus& gpus,
                        std::vector<check_result>& results) {
  std::vector<std::size_t> integrated;
  std::vector<std::size_t> discrete;
  for (const auto position : gpus.all) {
    const bool is = seen.machine.gpus[position].integrated == setting_state::on;
    (is ? integrated : discrete).push_back(position);
  }
  if (seen.machine.set.xnack != setting_state::on || integrated.empty()) {
    return;
  }
  auto result = about(seen, integrated, verdict::normal,
                      fmt::format("\"XNACK enabled: YES\" comes with an integrated GPU, {}: it "
                                  "says nothing about {}",
                                  described(seen, integrated),
                                  discrete.empty() ? std::string("a discrete GPU")
                                                   : gpu_names(indices_of(seen, discrete))));
  result.confirm = "rocminfo | grep -E 'gfx|xnack'";
  results.push_back(std::move(result));
}

std::vector<std::size_t> joined(std::vector<std::size_t> a, const std::vector<std::size_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::ranges::sort(a);
  return a;
}

// Integrated GPUs of processors other than MI300A share memory with the host: nothing migrates.
bool is_plain_apu(const machine::survey& seen, std::size_t position) {
  const auto& gpu = seen.machine.gpus[position];
  return gpu.integrated == setting_state::on && xnack_ability_of(gpu) != xnack_ability::per_process;
}

void drop_plain_apus(const machine::survey& seen, amd_gpus& gpus) {
  const auto is = [&](std::size_t position) { return is_plain_apu(seen, position); };
  std::erase_if(gpus.at_boot, is);
  if (!std::ranges::all_of(gpus.all, is)) {
    std::erase_if(gpus.unable, is);
  }
}

// A log of a program tells its mode, and not of which GPUs.
void check_mode_alone(const machine::survey& seen, std::vector<check_result>& results) {
  const auto state = seen.machine.set.xnack;
  if (state == setting_state::unknown || seen.kind != machine::survey_kind::pasted) {
    return;
  }
  results.push_back(
      {.verdict = verdict::normal,
       .headline =
           state == setting_state::on
               ? std::string("XNACK is on in the program that was seen: managed pages "
                             "migrate where its GPUs can")
               : fmt::format("XNACK is off in the program that was seen, as is the default: "
                             "{}. Whether its GPUs could use it is not in the input",
                             without_migration),
       .evidence = {evidence_of(seen, "settings.xnack", std::string(to_string(state)))},
       .confirm = "HSA_XNACK=1 rocminfo | grep -i xnack"});
}

}  // namespace

xnack_ability xnack_ability_of(const machine::gpu& gpu) {
  if (gpu.xnack_can != xnack_ability::unknown) {
    return gpu.xnack_can;
  }
  if (gpu.isa.empty() && !gpu.model.empty()) {
    const auto* const model = machine::find_by_name(gpu.model);
    const bool is_gpu = model != nullptr && model->hardware.gpus.size() == 1;
    return is_gpu ? model->hardware.gpus.front().xnack_can : xnack_ability::unknown;
  }
  const auto known = machine::xnack_ability_of(gpu.isa.substr(0, gpu.isa.find(':')));
  const bool is_older = gpu.isa.starts_with("gfx8") || gpu.isa.starts_with("gfx10");
  return known == xnack_ability::unknown && is_older ? xnack_ability::none : known;
}

check_result tried_xnack(const machine::survey& tried) {
  const auto gpus = sorted_by_ability(tried);
  std::vector<std::size_t> on;
  std::vector<std::size_t> off;
  for (const auto position : gpus.all) {
    const auto& gpu = tried.machine.gpus[position];
    const bool is_on =
        gpu.xnack == setting_state::on ||
        (gpu.xnack == setting_state::unknown && xnack_ability_of(gpu) != xnack_ability::none &&
         tried.machine.set.xnack == setting_state::on);
    (is_on ? on : off).push_back(position);
  }
  if (gpus.all.empty()) {
    return {.verdict = verdict::unknown,
            .headline = "tried with HSA_XNACK=1: rocminfo shows no GPU",
            .confirm = "HSA_XNACK=1 rocminfo"};
  }
  if (off.empty()) {
    return about(tried, on, verdict::normal,
                 fmt::format("tried with HSA_XNACK=1: XNACK is on for {}", described(tried, on)));
  }
  auto result =
      about(tried, off, verdict::limit,
            fmt::format("tried with HSA_XNACK=1: XNACK stays off for {}", described(tried, off)));
  result.fix = {"Use hipMemPrefetchAsync or explicit copies, which do not need XNACK."};
  return result;
}

void check_xnack(const machine::survey& seen, std::vector<check_result>& results) {
  auto gpus = sorted_by_ability(seen);
  if (gpus.all.empty()) {
    if (seen.machine.gpus.empty()) {
      check_mode_alone(seen, results);
    }
    return;
  }
  warn_of_integrated(seen, gpus, results);
  drop_plain_apus(seen, gpus);
  const auto blockers = joined(gpus.unable, gpus.at_boot);
  if (!gpus.able.empty() && !blockers.empty() && state_of(seen, blockers) != setting_state::on) {
    results.push_back(blocked(seen, gpus, blockers));
    return;
  }
  if (!gpus.able.empty()) {
    results.push_back(all_able(seen, gpus.able));
  }
  if (!gpus.at_boot.empty() && gpus.able.empty()) {
    results.push_back(at_boot(seen, gpus.at_boot));
  }
  if (!gpus.unable.empty()) {
    results.push_back(never(seen, gpus.unable));
  }
  const bool nothing_known =
      gpus.able.empty() && gpus.at_boot.empty() && gpus.unable.empty() &&
      std::ranges::none_of(gpus.all, [&](auto position) { return is_plain_apu(seen, position); });
  if (nothing_known) {
    results.push_back(about(seen, gpus.all, verdict::unknown,
                            fmt::format("whether {} can use XNACK is not in the input: the ISA is "
                                        "missing",
                                        gpu_names(indices_of(seen, gpus.all)))));
  }
}

}  // namespace berth::diagnose
