// SPDX-License-Identifier: Apache-2.0
/// @file
/// `result<T>`: a value or an error, returned by the `try_` twins of calls that throw.
/// Its own small type rather than std::expected, so that users who compile with another language
/// level see the same type as the library.
#pragma once

#include <cassert>
#include <utility>
#include <variant>

#include "berth/error.hpp"

namespace berth {

/// A value of type T, or the error that says why there is none.
template <typename T>
class [[nodiscard]] result {
public:
  result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  result(berth::error why)
      : state_(std::in_place_index<1>, std::move(why)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. @throws the error's exception if there is none
  [[nodiscard]] T& value() & {
    require();
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& value() const& {
    require();
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T&& value() && {
    require();
    return std::move(*std::get_if<0>(&state_));
  }

  /// The value, unchecked: has_value() must hold.
  [[nodiscard]] T& operator*() noexcept {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& operator*() const noexcept {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T* operator->() noexcept { return &**this; }
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }

  /// The error, unchecked: has_value() must not hold.
  [[nodiscard]] const berth::error& error() const noexcept {
    assert(!has_value());
    return *std::get_if<1>(&state_);
  }

private:
  void require() const {
    if (!has_value()) {
      throw_error(error());
    }
  }

  std::variant<T, berth::error> state_;
};

/// Success, or the error that says why not.
template <>
class [[nodiscard]] result<void> {
public:
  // Not defaulted: `return {}` would first zero the whole object, which is most of what it costs.
  result() noexcept {}  // NOLINT(modernize-use-equals-default)
  result(berth::error why)
      : error_(std::in_place_index<1>, std::move(why)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool has_value() const noexcept { return error_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// Does nothing on success. @throws the error's exception otherwise
  void value() const {
    if (!has_value()) {
      throw_error(error());
    }
  }

  /// The error, unchecked: has_value() must not hold.
  [[nodiscard]] const berth::error& error() const noexcept {
    assert(!has_value());
    return *std::get_if<1>(&error_);
  }

private:
  std::variant<std::monostate, berth::error> error_;
};

}  // namespace berth
