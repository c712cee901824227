// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/coverage.hpp"

#include <link.h>

#include <cstring>
#include <utility>

namespace berth::interpose {
namespace {

constexpr std::array<std::pair<std::string_view, api>, 2> runtime_files{
    {{"libamdhip64.so", api::hip}, {"libcuda.so", api::cuda}}};

int add_if_runtime(dl_phdr_info* object, std::size_t, void* state) {
  auto& into = *static_cast<mapped_runtimes*>(state);
  if (object->dlpi_name == nullptr || into.count == mapped_runtimes::most) {
    return 0;
  }
  const std::string_view path(object->dlpi_name);
  const auto known = runtime_of_path(path);
  auto& to = into.found[into.count];
  if (known.is_one && path.size() < to.path.size()) {
    to.api = known.api;
    std::memcpy(to.path.data(), path.data(), path.size());
    ++into.count;
  }
  return 0;
}

}  // namespace

known_runtime runtime_of_path(std::string_view path) noexcept {
  const auto name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  for (const auto& [file, api] : runtime_files) {
    if (name.starts_with(file) && (name.size() == file.size() || name[file.size()] == '.')) {
      return {.is_one = true, .api = api};
    }
  }
  return {};
}

mapped_runtimes find_mapped_runtimes() noexcept {
  mapped_runtimes found;
  ::dl_iterate_phdr(add_if_runtime, &found);
  return found;
}

}  // namespace berth::interpose
