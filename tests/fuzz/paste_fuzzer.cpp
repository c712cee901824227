// SPDX-License-Identifier: Apache-2.0
// Any bytes as pasted text, whole and as two pieces. Beside the sanitizers' checks these must hold:
// nothing throws, links join places that are there, what is contradicted is not claimed, and no
// line is counted twice.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "topology/paste.hpp"

namespace {

namespace machine = berth::machine;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
  }
}

bool is_there(const machine::description& of, const machine::place& end) {
  if (end.kind == machine::place_kind::gpu) {
    return end.id < of.gpus.size();
  }
  return end.id < 1024;
}

void check_machine(const machine::description& of) {
  for (std::size_t at = 0; at < of.gpus.size(); ++at) {
    require(of.gpus[at].index == at, "GPUs stand at their index");
    require(!of.gpus[at].numa_node || *of.gpus[at].numa_node < 1024, "NUMA nodes are possible");
  }
  for (const auto& link : of.links) {
    require(is_there(of, link.from) && is_there(of, link.to), "links join what is there");
    require(!(link.from == link.to), "no link joins a place with itself");
  }
}

void check(const machine::survey& seen) {
  check_machine(seen.machine);
  for (const auto& one : seen.contradictions) {
    require(one.claims.size() >= 2, "a contradiction has two sides");
    require(seen.claim_of(one.field) == nullptr, "what is contradicted is not claimed");
  }
  require(seen.unread_lines <= seen.lines, "no more lines are unread than there are");
  require(seen.unread.size() <= seen.unread_lines, "what is listed was counted");
  require(!seen.claims.empty() || seen.machine.gpus.empty() || !seen.contradictions.empty(),
          "a machine comes from claims");
  for (const auto& one : seen.claims) {
    require(!one.source.empty(), "a claim has a source");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(size, '\0');
  std::transform(data, data + size, text.begin(),
                 [](std::uint8_t c) { return static_cast<char>(c); });
  using berth::topology::pasted_text;
  const std::vector<pasted_text> whole{{.name = "whole", .text = text}};
  check(berth::topology::read_pasted(whole));
  const std::vector<pasted_text> halves{{.name = "first", .text = text.substr(0, size / 2)},
                                        {.name = "second", .text = text.substr(size / 2)}};
  check(berth::topology::read_pasted(halves));
  return 0;
}
