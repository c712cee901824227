// SPDX-License-Identifier: Apache-2.0
// The part of a machine file that says what the machine consists of. Private to the library.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "machine/json_document.hpp"
#include "machine/machine.hpp"
#include "machine/model.hpp"

namespace berth::machine {

// The models that a file may build on.
struct model_resolver {
  // By short name; null where there is none.
  std::function<const model*(std::string_view)> find;
  // Names close to one that is not there.
  std::function<std::vector<std::string>(std::string_view)> suggest;
};

// try_parse_model, with the models that "extends" may name.
[[nodiscard]] result<model> try_parse_model(std::string_view text, std::string_view file,
                                            const model_resolver& resolve);

// A word of an enumeration. @throws for one that `parse` does not know
template <typename Enum>
Enum read_word(const json_cursor& value, std::optional<Enum> (*parse)(std::string_view) noexcept) {
  const auto word = value.text();
  const auto parsed = parse(word);
  if (!parsed) {
    value.fail(fmt::format("'{}' is no word that berth knows here", word));
  }
  return *parsed;
}

// The same, where "unknown" is no answer.
template <typename Enum>
Enum read_known_word(const json_cursor& value,
                     std::optional<Enum> (*parse)(std::string_view) noexcept) {
  const auto parsed = read_word(value, parse);
  if (parsed == Enum::unknown) {
    value.fail("must be known");
  }
  return parsed;
}

// NUMA nodes, GPUs, links and settings from "gpu" and "machine". `base` is the model that the file
// builds on, or null.
[[nodiscard]] description read_hardware(const json_cursor& root, model_kind kind,
                                        const model* base);

}  // namespace berth::machine
