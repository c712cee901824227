// SPDX-License-Identifier: Apache-2.0
// Whether the process may open the GPUs, and whether its numbers are those of the machine.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "core/text.hpp"
#include "diagnose/checks/values.hpp"

namespace berth::diagnose {
namespace {

using machine::setting_state;

bool is_in_container(const machine::survey& seen) {
  return seen.machine.set.container == setting_state::on;
}

std::vector<std::string> ways_to_gain_access(const machine::gpu& gpu, const machine::survey& seen) {
  const bool is_amd = gpu.made_by == machine::vendor::amd;
  if (is_in_container(seen)) {
    return {is_amd ? "Start the container with --device /dev/kfd --device /dev/dri "
                     "--group-add video --group-add render."
                   : "Start the container with --gpus all (NVIDIA Container Toolkit)."};
  }
  return {is_amd ? "Add the user to the groups that own /dev/kfd and /dev/dri/renderD*: "
                   "sudo usermod -a -G video,render $USER, and log in again."
                 : "Check the owner and mode of /dev/nvidia* and that the driver is loaded."};
}

struct visibility_variable {
  std::string_view name;
  machine::vendor of;
};
constexpr std::array visibility_variables{
    visibility_variable{"ROCR_VISIBLE_DEVICES", machine::vendor::amd},
    visibility_variable{"HIP_VISIBLE_DEVICES", machine::vendor::amd},
    visibility_variable{"GPU_DEVICE_ORDINAL", machine::vendor::amd},
    visibility_variable{"CUDA_VISIBLE_DEVICES", machine::vendor::nvidia},
};

// The numbers of "2,3"; nothing where names or ids stand there.
std::optional<std::vector<std::uint32_t>> listed_numbers(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const auto value = text::whole_number<std::uint32_t>(text.substr(0, end));
    if (!value) {
      return std::nullopt;
    }
    numbers.push_back(*value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return numbers;
}

bool hides_all(std::string_view value) {
  return value.empty() || value.starts_with('-') || value == "NoDevFiles";
}

check_result of_variable(const machine::survey& seen, const machine::environment_variable& one,
                         std::size_t gpus) {
  check_result result{.confirm = fmt::format("env -u {} berth doctor", one.name)};
  result.evidence.push_back(
      evidence_of(seen, "settings.environment", fmt::format("{}={}", one.name, one.value)));
  const auto numbers = listed_numbers(one.value);
  if (hides_all(one.value)) {
    result.verdict = verdict::fault;
    result.headline = fmt::format("{}={} hides every GPU from programs", one.name, one.value);
    result.fix = {fmt::format("unset {}", one.name)};
  } else if (numbers && std::ranges::any_of(*numbers, [&](auto n) { return n >= gpus; })) {
    result.verdict = verdict::limit;
    result.headline = fmt::format(
        "{}={} names a GPU that is not there: {} of this kind seen, "
        "numbered from 0; the rest of the list is ignored",
        one.name, one.value, gpus);
    result.fix = {
        fmt::format("Set {} to numbers below {}, or unset it: in a container or a job "
                    "the GPUs that are left are numbered from 0 again.",
                    one.name, gpus)};
  } else {
    result.headline = fmt::format(
        "{}={} selects and renumbers GPUs: device 0 of a program is "
        "the first of this list, not GPU 0 of the machine",
        one.name, one.value);
  }
  return result;
}

void check_double_filter(const machine::survey& seen, std::vector<check_result>& results) {
  const auto* const outer = find_variable(seen, "ROCR_VISIBLE_DEVICES");
  const auto* const inner = find_variable(seen, "HIP_VISIBLE_DEVICES");
  if (outer == nullptr || inner == nullptr || outer->value == "0" || outer->value.empty()) {
    return;
  }
  results.push_back(
      {.verdict = verdict::limit,
       .headline = fmt::format("both ROCR_VISIBLE_DEVICES={} and HIP_VISIBLE_DEVICES={} are set: "
                               "the second counts from 0 among those the first leaves",
                               outer->value, inner->value),
       .evidence = {evidence_of(seen, "settings.environment", "both set")},
       .confirm = "env | grep VISIBLE_DEVICES",
       .fix = {"Set one of them only."}});
}

}  // namespace

void check_device_access(const machine::survey& seen, std::vector<check_result>& results) {
  const auto& gpus = seen.machine.gpus;
  check_result denied{.verdict = verdict::fault};
  std::size_t open = 0;
  for (std::size_t position = 0; position < gpus.size(); ++position) {
    open += gpus[position].accessible == setting_state::on ? 1U : 0U;
    if (gpus[position].accessible == setting_state::off) {
      denied.gpus.push_back(gpus[position].index);
      denied.evidence.push_back(evidence_of(seen, gpu_field(position, "accessible"), "off"));
      denied.fix = ways_to_gain_access(gpus[position], seen);
    }
  }
  if (!denied.gpus.empty()) {
    denied.headline =
        fmt::format("this process may not open the device files of {}{}", gpu_names(denied.gpus),
                    is_in_container(seen) ? ", which the container was not given" : "");
    denied.confirm = "ls -l /dev/kfd /dev/dri /dev/nvidia*; id";
    results.push_back(std::move(denied));
  } else if (open > 0) {
    results.push_back({.headline = fmt::format(
                           "the device files of {} may be opened",
                           open == gpus.size() ? std::string("all GPUs")
                                               : fmt::format("{} of {} GPUs", open, gpus.size()))});
  } else if (!gpus.empty()) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = "whether a process may open the GPUs is not in the input",
                       .confirm = "ls -l /dev/kfd /dev/dri /dev/nvidia*; id"});
  } else if (seen.kind == machine::survey_kind::live && is_in_container(seen)) {
    results.push_back({.verdict = verdict::unknown,
                       .headline = "a container without a GPU: whether the host has one cannot be "
                                   "seen from here",
                       .confirm = "berth doctor, outside the container",
                       .fix = {"AMD: docker run --device /dev/kfd --device /dev/dri; NVIDIA: "
                               "docker run --gpus all."}});
  }
}

void check_visible_devices(const machine::survey& seen, std::vector<check_result>& results) {
  for (const auto& [name, of] : visibility_variables) {
    const auto* const one = find_variable(seen, name);
    const auto gpus = count_gpus(seen, of);
    if (one != nullptr && gpus > 0) {
      results.push_back(of_variable(seen, *one, gpus));
    }
  }
  if (count_gpus(seen, machine::vendor::amd) > 0) {
    check_double_filter(seen, results);
  }
}

}  // namespace berth::diagnose
