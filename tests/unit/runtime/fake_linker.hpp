// SPDX-License-Identifier: Apache-2.0
// A linker over libraries that exist only in a test: names, and the symbols that each has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/loader.hpp"

namespace berth::runtime::testing {

struct fake_library {
  std::map<std::string, void*> symbols;
  bool mapped = false;      // already in the process
  std::string cannot_load;  // why opening fails, if it does
};

struct fake_system {
  std::map<std::string, fake_library> libraries;  // by the name or path to open
  std::map<std::string, std::string> environment;
  std::vector<std::string> opened;  // every name that was asked for, in order
  std::string error;

  linker make() {
    return {
        .open = [this](const char* name) -> void* {
          opened.emplace_back(name);
          const auto found = libraries.find(name);
          if (found == libraries.end()) {
            error =
                std::string(name) + ": cannot open shared object file: No such file or directory";
            return nullptr;
          }
          error = found->second.cannot_load;
          return error.empty() ? &found->second : nullptr;
        },
        .find_loaded = [this](const char* name) -> void* {
          const auto found = libraries.find(name);
          return found != libraries.end() && found->second.mapped ? &found->second : nullptr;
        },
        .find_symbol = [](void* library, const char* name) -> void* {
          const auto& symbols = static_cast<fake_library*>(library)->symbols;
          const auto found = symbols.find(name);
          return found != symbols.end() ? found->second : nullptr;
        },
        .last_error = [this] { return error; },
        .path_of = [this](void* library) -> std::string {
          for (const auto& [name, each] : libraries) {
            if (&each == library) {
              return name.find('/') == std::string::npos ? "/usr/lib/" + name : name;
            }
          }
          return {};
        },
        .environment = [this](const char* name) -> std::string {
          const auto found = environment.find(name);
          return found != environment.end() ? found->second : "";
        },
    };
  }
};

}  // namespace berth::runtime::testing
