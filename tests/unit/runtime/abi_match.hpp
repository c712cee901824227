// SPDX-License-Identifier: Apache-2.0
// Whether our declaration of a call is the same to the machine as the vendor's: as many parameters,
// and each of the same size and class (integer or pointer, floating, structure).
#pragma once

#include <cstddef>
#include <type_traits>

namespace berth::runtime::testing {

template <typename Type>
constexpr int register_class = std::is_floating_point_v<Type>                     ? 1
                               : (std::is_class_v<Type> || std::is_union_v<Type>) ? 2
                                                                                  : 0;

template <typename Ours, typename Theirs>
constexpr bool same_to_the_machine =
    sizeof(Ours) == sizeof(Theirs) && register_class<Ours> == register_class<Theirs>;

template <typename Ours, typename Theirs>
struct call_match : std::false_type {};

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
struct call_match<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> {
  template <typename... Pairs>
  static constexpr bool all() {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
      return (same_to_the_machine<Ours, Theirs> && ...) &&
             same_to_the_machine<OurResult, TheirResult>;
    } else {
      return false;
    }
  }
  static constexpr bool value = all<>();
};

}  // namespace berth::runtime::testing
