// SPDX-License-Identifier: Apache-2.0
// JSON text whose values know the line they stand on, so that an error in a hand-written file can
// say where it is. A cursor points at one value; its accessors throw input_error with file, line,
// and what was expected. Not a general JSON interface: it reads machine files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "berth/error.hpp"
#include "berth/units.hpp"

namespace berth::machine {

class json_cursor;

class json_document {
public:
  // @throws input_error for text that is empty, no JSON, or has a field twice
  json_document(std::string_view text, std::string_view file);

  // Valid as long as the document.
  [[nodiscard]] json_cursor root() const;
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  // The line, from 1, of the value with that JSON pointer.
  [[nodiscard]] std::size_t line_of(const std::string& pointer) const;

private:
  std::string file_;
  nlohmann::json value_;
  std::map<std::string, std::size_t> lines_;
};

class json_cursor {
public:
  json_cursor(const json_document& document, const nlohmann::json& value, std::string pointer)
      : document_(&document), value_(&value), pointer_(std::move(pointer)) {}

  [[nodiscard]] bool is_string() const noexcept { return value_->is_string(); }
  [[nodiscard]] bool is_object() const noexcept { return value_->is_object(); }

  // A field of an object. @throws if this is no object
  [[nodiscard]] std::optional<json_cursor> find(std::string_view field) const;
  // @throws also if the field is missing
  [[nodiscard]] json_cursor at(std::string_view field) const;
  // @throws for a field that is not one of these: a misspelt name must not pass as absent
  void allow_only(std::initializer_list<std::string_view> fields) const;

  [[nodiscard]] std::vector<std::string> field_names() const;
  [[nodiscard]] std::vector<json_cursor> items() const;
  [[nodiscard]] std::string text() const;  // not empty, no control characters
  [[nodiscard]] bool truth() const;
  // A finite number in [lowest, highest].
  [[nodiscard]] double number(double lowest, double highest) const;
  [[nodiscard]] std::uint64_t integer(std::uint64_t lowest, std::uint64_t highest) const;
  // 4096 or "4KiB".
  [[nodiscard]] bytes_t bytes() const;

  // Throws what is wrong with this value.
  [[noreturn]] void fail(std::string what, errc code = errc::input_malformed,
                         std::string hint = {}) const;

private:
  const json_document* document_;
  const nlohmann::json* value_;
  std::string pointer_;
};

}  // namespace berth::machine
