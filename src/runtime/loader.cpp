// SPDX-License-Identifier: Apache-2.0
#include "runtime/loader.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth::runtime {
namespace {

std::string path_of_library(void* library) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr ||
      map->l_name == nullptr) {
    return {};
  }
  return map->l_name;
}

// A search in progress: what it has tried, and whether anything of the right name was there.
class search {
public:
  search(const library_request& request, std::span<const symbol> symbols, const linker& with)
      : request_(request), symbols_(symbols), with_(with) {}

  // The library under this name if it can be used.
  std::optional<library> try_loaded(const std::string& name) {
    void* handle = with_.find_loaded(name.c_str());
    return handle == nullptr ? std::nullopt : accepted(handle, name);
  }
  std::optional<library> try_open(const std::string& name) {
    void* handle = with_.open(name.c_str());
    if (handle != nullptr) {
      return accepted(handle, name);
    }
    const std::string why = with_.last_error();
    // The linker names the file that it lacks: another one than ours is a broken dependency.
    if (why.starts_with(name + ": cannot open shared object file: No such file or directory")) {
      absent_.push_back(name);
    } else {
      flush_absent();
      present_ = true;
      tried_.push_back(fmt::format("{}: {}", name, why));
    }
    return std::nullopt;
  }

  // Ends a run of names that are told as one.
  void end_run() { flush_absent(); }

  [[nodiscard]] error failure() {
    flush_absent();
    const auto code = present_ ? errc::gpu_runtime_unusable : errc::gpu_no_runtime;
    return error(
        code,
        present_ ? fmt::format("no usable {}; tried {}", request_.what, joined(tried_))
                 : fmt::format("no {} on this machine; tried {}", request_.what, joined(tried_)),
        "", fmt::format("{} may name the library", request_.override_variable));
  }

private:
  std::optional<library> accepted(void* handle, const std::string& name) {
    flush_absent();
    const std::string path = with_.path_of(handle);
    std::vector<std::string> lacking;
    std::vector<std::string> missing;
    for (const symbol& wanted : symbols_) {
      if (with_.find_symbol(handle, wanted.name) == nullptr) {
        (wanted.need == symbol_need::required ? lacking : missing).emplace_back(wanted.name);
      }
    }
    if (lacking.empty()) {
      return library{handle, path.empty() ? name : path, tried_, std::move(missing)};
    }
    present_ = true;
    constexpr std::size_t shown = 4;
    const std::size_t more = lacking.size() > shown ? lacking.size() - shown : 0;
    lacking.resize(std::min(lacking.size(), shown));
    tried_.push_back(fmt::format(
        "{}: not a {} that berth can use, it lacks {}{}", path.empty() ? name : path, request_.what,
        fmt::join(lacking, ", "), more > 0 ? fmt::format(" and {} more calls", more) : ""));
    return std::nullopt;
  }

  // A run of names that are not there is one line: there are many, and none tells more.
  void flush_absent() {
    if (absent_.empty()) {
      return;
    }
    tried_.push_back(absent_.size() == 1
                         ? fmt::format("{}: not found", absent_.front())
                         : fmt::format("{} to {}: not found", absent_.front(), absent_.back()));
    absent_.clear();
  }

  const library_request& request_;
  std::span<const symbol> symbols_;
  const linker& with_;
  std::vector<std::string> tried_;
  std::vector<std::string> absent_;
  bool present_ = false;
};

// Names from the most to the least wanted.
std::vector<std::string> numbered_names(const library_request& request) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(std::max(request.newest - request.oldest + 2, 1)));
  for (int number = request.newest; number >= request.oldest; --number) {
    names.push_back(fmt::format("{}.{}", request.stem, number));
  }
  return names;
}

std::optional<library> find(search& looking, const library_request& request, const linker& with) {
  if (const auto path = with.environment(request.override_variable); !path.empty()) {
    return looking.try_open(path);  // whoever names a library wants that one or none
  }
  const std::vector<std::string> numbered = numbered_names(request);
  const std::string plain(request.stem);
  std::vector<std::string> names = numbered;
  names.push_back(plain);
  for (const auto& name : names) {
    if (auto found = looking.try_loaded(name)) {
      return found;
    }
  }
  std::vector<std::string> places{""};
  places.reserve(request.directories.size() + 1);
  for (const auto& directory : request.directories) {
    places.push_back(directory + "/");
  }
  for (const auto& place : places) {
    for (const auto& name : numbered) {
      if (auto found = looking.try_open(place + name)) {
        return found;
      }
    }
    looking.end_run();
  }
  for (const auto& place : places) {
    if (auto found = looking.try_open(place + plain)) {
      return found;
    }
    looking.end_run();
  }
  return std::nullopt;
}

}  // namespace

const linker& system_linker() {
  static const linker system{
      .open = [](const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); },
      .find_loaded =
          [](const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); },
      .find_symbol = [](void* library, const char* name) { return dlsym(library, name); },
      .last_error =
          [] {
            const char* text = dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc
            return std::string(text != nullptr ? text : "unknown reason");
          },
      .path_of = path_of_library,
      .environment =
          [](const char* name) {
            const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
            return std::string(value != nullptr ? value : "");
          },
  };
  return system;
}

result<library> load_library(const library_request& request, std::span<const symbol> symbols,
                             const std::function<void(std::size_t, void*)>& store,
                             const linker& with) {
  search looking(request, symbols, with);
  auto found = find(looking, request, with);
  if (!found) {
    return looking.failure();
  }
  for (std::size_t index = 0; index < symbols.size(); ++index) {
    store(index, with.find_symbol(found->handle, symbols[index].name));
  }
  return std::move(*found);
}

std::string joined(std::span<const std::string> parts) {
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace berth::runtime
