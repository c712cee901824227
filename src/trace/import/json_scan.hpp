// SPDX-License-Identifier: Apache-2.0
// Finding where JSON values end without parsing them: brackets outside strings are counted, eight
// bytes at a time, because every byte of a large trace passes here.
//
// Neither scan knows whether the text is valid JSON; they agree with a parser on text that is.
#pragma once

namespace berth::trace {

// What may stand between tokens.
[[nodiscard]] constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Behind the closing quote of the string whose text starts at `at`, behind its opening quote; null
// if it does not end before `end`.
[[nodiscard]] const char* end_of_string(const char* at, const char* end) noexcept;

// Behind the bracket that closes the one at `at`, of either kind; null if it is not closed before
// `end`. That opening and closing brackets are of the same kind is not checked.
[[nodiscard]] const char* end_of_brackets(const char* at, const char* end) noexcept;

}  // namespace berth::trace
