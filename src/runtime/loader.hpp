// SPDX-License-Identifier: Apache-2.0
// Finds a GPU runtime library and fills a table of its calls. Nothing of it is linked: a machine
// without the library runs the same berth.
//
// A `linker` is how libraries are opened and symbols found; the preload, which hooks dlsym itself,
// passes its own. A library once opened is never closed: GPU runtimes leave threads and exit
// handlers behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/result.hpp"
#include "berth/runtime/values.hpp"

namespace berth::runtime {

// How a symbol is needed.
enum class symbol_need : std::uint8_t {
  required,  // without it the library cannot be used
  optional,  // without it a capability is off
};

// One call of a table: where its pointer goes is known to the table (see symbol_table).
struct symbol {
  const char* name;
  symbol_need need;
  int since;  // major * 100 + minor of the first version that has it; 0: all that berth supports
  std::string_view operation;
  std::string_view parameters;  // "(void* dst, ...)"
  std::string_view roles;       // "(dst, src, bytes, kind)"
};

// dlopen and friends. Each may be replaced. Thread-safe as the functions behind it.
struct linker {
  // Opens by name or path; null if that fails, and then last_error() says why.
  std::function<void*(const char* name)> open;
  // The library if it is already in the process, else null.
  std::function<void*(const char* name)> find_loaded;
  std::function<void*(void* library, const char* name)> find_symbol;
  // Why the last open of this thread failed.
  std::function<std::string()> last_error;
  // Where an open library was read from; empty if unknown.
  std::function<std::string(void* library)> path_of;
  // An environment variable; empty if unset.
  std::function<std::string(const char* name)> environment;
};

// The system's own.
const linker& system_linker();

// What to look for. Search order: `override_variable` (then nothing else), already in the process,
// numbered names from newest to oldest in each directory, the unversioned name in each directory.
struct library_request {
  std::string_view what;                 // "HIP runtime", for messages
  const char* override_variable;         // "BERTH_HIP_LIBRARY": a path that replaces the search
  std::string_view stem;                 // "libamdhip64.so"
  int newest = 0;                        // numbered names stem.newest .. stem.oldest;
  int oldest = 0;                        // newest < oldest: only the unversioned name
  std::vector<std::string> directories;  // besides the linker's own search; may be empty
};

// A library that was opened.
struct library {
  void* handle = nullptr;
  std::string path;
  std::vector<std::string> tried;    // every name that was tried before, and why it failed
  std::vector<std::string> missing;  // optional symbols that it lacks
};

// Finds the first library that has every required symbol. `store(index, pointer)` is called for
// each symbol of the library taken, with null for one that it lacks. Errors: gpu_no_runtime (no
// such library), gpu_runtime_unusable (libraries of that name that lack symbols or do not load);
// the message lists all that was tried, each with its reason.
result<library> load_library(const library_request& request, std::span<const symbol> symbols,
                             const std::function<void(std::size_t, void*)>& store,
                             const linker& with);

// A library's calls: `Table` is a struct of function pointers with `static std::span<const symbol>
// symbols()` and `void store(std::size_t index, void* pointer)`, both made of spec/gpu_api.def.
template <typename Table>
result<library> load_table(const library_request& request, Table& table, const linker& with) {
  return load_library(
      request, Table::symbols(),
      [&table](std::size_t index, void* pointer) { table.store(index, pointer); }, with);
}

// "a, b; c" of what was tried, for a message.
std::string joined(std::span<const std::string> parts);

}  // namespace berth::runtime
