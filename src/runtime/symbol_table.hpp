// SPDX-License-Identifier: Apache-2.0
// How a row of spec/gpu_api.def becomes a table of calls. Only for the files that make one: define
// BERTH_HIP, BERTH_HIPRTC or BERTH_CUDA as one of these before including the table.
#pragma once

// The member of the struct: a pointer to the call, null where the library lacks it.
#define BERTH_AS_MEMBER(name, need, since, operation, result, parameters, roles)                  \
  result(*name) parameters = nullptr; /* NOLINT(readability-identifier-naming): the symbol's name \
                                       */

// The row of the list of symbols.
#define BERTH_AS_SYMBOL(name, need, since, operation, result, parameters, roles) \
  symbol{#name, symbol_need::need, since, #operation, #parameters, #roles},

// The statement that keeps `pointer` as the member whose row is `index`; counts in `row`.
#define BERTH_AS_STORE(name, need, since, operation, result, parameters, roles) \
  if (row++ == index) {                                                         \
    name = reinterpret_cast<decltype(name)>(pointer);                           \
  }
