// SPDX-License-Identifier: Apache-2.0
// What was seen of one machine, with where each field was read, and what was not to be believed.
// Every reader, of a live system or of pasted text, writes a machine through `surveyor`, so that
// where a value comes from, and that two sources contradict each other, is told in one way.
//
// Words
//   field    a value of the machine, by path: "gpus[0].xnack", "settings.iommu". GPUs stand by
//            their position in machine.gpus, NUMA nodes by their id
//   claim    what one source says of a field
//   source   what was read, and where in it: "rocminfo, line 42", "/sys/class/kfd/..."
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/machine.hpp"
#include "machine/observation.hpp"

namespace berth::machine {

struct claim {
  std::string field;
  std::string value;  // as berth prints it
  std::string source;
};

// Sources that do not agree on a field: none is believed, so the field is unknown.
struct contradiction {
  std::string field;
  std::vector<claim> claims;
};

// What a source should have told and did not: unreadable, cut, or impossible.
struct reading_problem {
  std::string source;
  std::string what;  // "width x0 is none that PCIe has; left out"
};

struct unread_line {
  std::string source;
  std::string text;
};

enum class survey_kind : std::uint8_t {
  live,      // this machine, now
  captured,  // the files of a machine, from a folder or a bundle
  pasted,    // what tools printed
};

struct survey {
  survey_kind kind = survey_kind::live;
  description machine;
  std::vector<claim> claims;  // those that were believed, in the order of reading
  std::vector<contradiction> contradictions;
  std::vector<reading_problem> problems;
  std::vector<measured_rate> rates;
  std::vector<logged_copies> copies;
  std::vector<std::string> sources;  // each piece that was recognised: "rocminfo (paste.txt)"
  std::uint64_t lines = 0;           // of pasted text
  std::uint64_t unread_lines = 0;    // of those, what no reader understood
  std::vector<unread_line> unread;   // the first of them

  // Who said so. Null where nobody did, or where sources disagree.
  [[nodiscard]] const machine::claim* claim_of(std::string_view field) const noexcept;
};

// Writes fields of a survey. Not to be used by several threads.
class surveyor {
public:
  explicit surveyor(survey& of) noexcept : survey_(&of) {}

  // Where the next claims come from.
  void reading(std::string source) { source_ = std::move(source); }

  // Sets a field that nobody has set, or confirms it. Where it has another value already, both are
  // kept as a contradiction and the field becomes unknown, for good.
  template <typename Value, typename Said>
  void says(const std::string& field, std::optional<Value>& slot, const Said& value,
            const std::string& printed) {
    const std::optional<Value> said(static_cast<Value>(value));
    if (may_set(field, printed, slot.has_value(), slot == said)) {
      slot = said;
    } else if (is_contradicted(field)) {
      slot.reset();
    }
  }
  // The same for enumerations with `unknown` (or, for text, empty) as nothing.
  template <typename Value>
  void says(const std::string& field, Value& slot, const Value& value, const std::string& printed) {
    if (value == Value{}) {
      return;  // who says nothing claims nothing
    }
    if (may_set(field, printed, slot != Value{}, slot == value)) {
      slot = value;
    } else if (is_contradicted(field)) {
      slot = Value{};
    }
  }

  // Notes what could not be read or believed at the present source.
  void problem(std::string what);

  // What was seen at the present source. Bounded: a log may hold any number.
  void measured(measured_rate one);
  void logged(logged_copies some);

private:
  bool may_set(const std::string& field, const std::string& printed, bool is_set, bool is_same);
  [[nodiscard]] bool is_contradicted(const std::string& field) {
    return known_of(field) != nullptr;
  }
  [[nodiscard]] contradiction* known_of(const std::string& field);

  survey* survey_;
  std::string source_;
  // Where the contradictions of the survey stand, as far as they were looked at.
  std::unordered_map<std::string, std::size_t> known_;
  std::size_t looked_at_ = 0;
};

}  // namespace berth::machine
