// SPDX-License-Identifier: Apache-2.0
// Any bytes as a bundle of berth doctor. The archive may be plain, so that what is changed is the
// tree and not its compression. Beside the sanitizers' checks these must hold: nothing throws, no
// file is written outside the bundle's own folder, what is contradicted is not claimed, and the
// checks of a machine take whatever was read.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/temporary_folder.hpp"
#include "diagnose/checks/affinity.hpp"
#include "diagnose/checks/check.hpp"
#include "topology/bundle.hpp"
#include "topology/live.hpp"

namespace {

namespace fs = std::filesystem;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

void check(const berth::machine::survey& seen) {
  for (std::size_t at = 0; at < seen.machine.gpus.size(); ++at) {
    require(seen.machine.gpus[at].index == at, "GPUs stand at their index");
  }
  for (const auto& one : seen.contradictions) {
    require(one.claims.size() >= 2, "a contradiction has two sides");
    require(seen.claim_of(one.field) == nullptr, "what is contradicted is not claimed");
  }
  for (const auto& one : seen.claims) {
    require(!one.source.empty(), "a claim has a source");
  }
  static_cast<void>(berth::diagnose::check_machine(seen));
  static_cast<void>(berth::diagnose::affinity_of(seen));
}

// The folder of the file holds that file alone: whatever leaves a bundle by one step is seen.
void check_nothing_left(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    static_cast<void>(entry);
    ++count;
  }
  require(count == 1, "nothing is written beside the bundle");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto folder = berth::temporary_folder::create("fuzz");
  require(folder.has_value(), "a folder can be made");
  const auto file = folder->path() / "bundle";
  {
    std::ofstream out(file, std::ios::binary);
    for (std::size_t at = 0; at < size; ++at) {
      out.put(static_cast<char>(data[at]));
    }
  }
  if (const auto opened = berth::topology::open_bundle(file)) {
    berth::topology::live_options from;
    from.root = opened->root();
    check(berth::topology::read_machine(from));
  }
  check_nothing_left(folder->path());
  return 0;
}
