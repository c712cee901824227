// SPDX-License-Identifier: Apache-2.0
// Reads what tools print of a machine, as people paste it: of several tools in one text, with
// prompts, quotes and colours between, cut, and with typing errors.
#pragma once

#include <span>
#include <string>

#include "machine/survey.hpp"

namespace berth::topology {

struct pasted_text {
  std::string name;  // for messages: a file's, or "standard input"
  std::string text;
};

// Never fails: what is not understood is counted and listed in the survey, what cannot be is a
// problem of it. GPUs of several pieces are the same where their PCI addresses are, or, where one
// of the pieces has none, their positions. Safe from several threads.
[[nodiscard]] machine::survey read_pasted(std::span<const pasted_text> pieces);

}  // namespace berth::topology
