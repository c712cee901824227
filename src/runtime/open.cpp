// SPDX-License-Identifier: Apache-2.0
#include "runtime/open.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "runtime/cuda/driver.hpp"
#include "runtime/hip/driver.hpp"
#include "runtime/sim/sim_driver.hpp"

namespace berth::runtime {
namespace {

constexpr const char* variable = "BERTH_RUNTIME";

// In the order in which `auto` takes them.
constexpr std::array all_kinds{runtime_kind::hip, runtime_kind::cuda, runtime_kind::sim};

result<std::shared_ptr<driver>> open_kind(runtime_kind kind, const std::string& model,
                                          const linker& with, candidate& seen) {
  switch (kind) {
    case runtime_kind::hip:
      return hip::open_driver(with, seen);
    case runtime_kind::cuda:
      return cuda::open_driver(with, seen);
    case runtime_kind::sim:
      return make_sim_driver(model);
  }
  return error(errc::internal, "a runtime kind that is none");
}

// Opens one kind and writes down how that went; the driver is null if it failed.
std::shared_ptr<driver> try_kind(runtime_kind kind, const std::string& model, const linker& with,
                                 candidate& seen, std::optional<error>& why) {
  seen.kind = kind;
  auto made = open_kind(kind, model, with, seen);
  if (!made) {
    why = made.error();
    seen.verdict = made.error().to_string();
    return nullptr;
  }
  const auto count = (*made)->devices().size();
  seen.info = (*made)->info();
  seen.library = seen.info->library;
  seen.version = seen.info->version;
  seen.devices.assign((*made)->devices().begin(), (*made)->devices().end());
  seen.verdict = fmt::format("works: {} device{}", count, count == 1 ? "" : "s");
  return std::move(*made);
}

result<opened> open_asked(const open_request& request, const linker& with) {
  opened answer;
  std::optional<error> why;
  for (const auto kind : all_kinds) {
    candidate seen;
    seen.kind = kind;
    seen.verdict =
        fmt::format("not tried: {} asks for {}", request.origin, to_string(*request.kind));
    if (kind == *request.kind) {
      answer.gpu = try_kind(kind, request.model, with, seen, why);
      seen.taken = answer.gpu != nullptr;
    }
    answer.candidates.push_back(std::move(seen));
  }
  if (answer.gpu == nullptr) {
    return *why;
  }
  answer.reason = fmt::format("{} asks for {}", request.origin, to_string(*request.kind));
  return answer;
}

result<opened> open_first(const open_request& request, const linker& with) {
  opened answer;
  std::optional<error> why;
  std::string passed;  // those that did not work
  for (const auto kind : all_kinds) {
    candidate seen;
    seen.kind = kind;
    if (answer.gpu != nullptr) {
      seen.verdict = "not tried: an earlier one works";
    } else {
      answer.gpu = try_kind(kind, request.model, with, seen, why);
      seen.taken = answer.gpu != nullptr;
      if (seen.taken) {
        answer.reason = kind == runtime_kind::sim
                            ? fmt::format("no GPU can be used ({})", passed)
                            : fmt::format("{} is the first that works", to_string(kind));
      } else {
        passed += fmt::format("{}{}: {}", passed.empty() ? "" : "; ", to_string(kind),
                              error_id(why->code()));
      }
    }
    answer.candidates.push_back(std::move(seen));
  }
  return answer.gpu != nullptr ? result<opened>(std::move(answer)) : result<opened>(*why);
}

}  // namespace

result<open_request> open_request::parse(std::string_view text, std::string origin) {
  open_request request{.kind = std::nullopt, .model = {}, .origin = std::move(origin)};
  if (text == "auto") {
    return request;
  }
  constexpr std::string_view sim_prefix = "sim:";
  if (text.starts_with(sim_prefix) && text.size() > sim_prefix.size()) {
    request.kind = runtime_kind::sim;
    request.model = text.substr(sim_prefix.size());
    return request;
  }
  for (const auto kind : all_kinds) {
    if (text == to_string(kind)) {
      request.kind = kind;
      return request;
    }
  }
  return error(errc::usage, fmt::format("no runtime is called \"{}\"", text), request.origin,
               "auto, hip, cuda, sim or sim:MODEL, where MODEL is a GPU model or a machine file");
}

result<open_request> open_request::from_environment() {
  const std::string text = system_linker().environment(variable);
  return text.empty() ? parse("auto", "default") : parse(text, variable);
}

result<opened> open(const open_request& request, const linker& with) {
  return request.kind ? open_asked(request, with) : open_first(request, with);
}

std::vector<candidate> survey(const linker& with) {
  std::vector<candidate> found;
  for (const auto kind : all_kinds) {
    candidate seen;
    std::optional<error> why;
    static_cast<void>(try_kind(kind, "", with, seen, why));
    found.push_back(std::move(seen));
  }
  return found;
}

}  // namespace berth::runtime
