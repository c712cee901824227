// SPDX-License-Identifier: Apache-2.0
// What libberth_preload.so asks of libberth_fix.so, as a C interface: the two share no library and
// no exceptions. Words: a copy is *fixed* when the copy engine made it in place of the runtime, and
// *passed* when the runtime's own call is to be made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::interpose::fix {

// Changes with the layout of what stands here; the two libraries must be of the same build.
inline constexpr std::uint32_t interface_version = 3;

// The runtimes, as interpose::api has them.
enum class runtime : std::uint8_t { hip, cuda };

// The direction that the call names.
enum class named_way : std::uint8_t { by_address, to_device, to_host };

// When the call that is replaced returns.
enum class call_form : std::uint8_t {
  blocking,  // when both ends are done
  queued,    // when a source on the host may change, and a destination there holds the data
};

enum class self_check : std::uint8_t { off, every_copy };

// Why a copy was passed; `none`: it was fixed. Names in pass_names.
enum class pass : std::uint8_t {
  none,
  small,            // staging would not win
  other_form,       // a direction or a handle that the call's own checks should see
  no_library,       // libberth_fix.so is not there or not of this build
  other_runtime,    // the call goes to something else than the runtime that is mapped
  opening,          // another thread is setting up
  no_engine,        // the runtime, its device, or the memory that is allowed cannot carry an engine
  foreign_context,  // CUDA: not the device's primary context
  capturing,        // the stream records a graph
  not_pageable,     // nothing to stage: page-locked, managed, between devices, unknown
  other_way,        // the addresses say another direction than the call
  not_ready,        // the engine is still setting up
  as_fast,  // the profile says that the runtime is as fast here, or reaches the memory itself
  starved,  // all rings were taken for too long
  failed,   // the engine has failed; the runtime's own call decides
  forked,   // the child of a fork
  ended,    // the process ends, a device was reset, or too much has failed
  count
};
inline constexpr auto pass_count = static_cast<std::size_t>(pass::count);

inline constexpr std::array<std::string_view, pass_count> pass_names{
    "none",      "small",           "other_form", "no_library",   "other_runtime", "opening",
    "no_engine", "foreign_context", "capturing",  "not_pageable", "other_way",     "not_ready",
    "as_fast",   "starved",         "failed",     "forked",       "ended"};

struct request {
  std::uint32_t version = interface_version;
  runtime of = runtime::hip;
  named_way way = named_way::by_address;
  call_form form = call_form::blocking;
  self_check check = self_check::off;
  void* dst = nullptr;
  const void* src = nullptr;
  std::uint64_t bytes = 0;      // of all rows
  std::uint64_t rows = 0;       // 0: one run of bytes
  std::uint64_t dst_pitch = 0;  // from row to row
  std::uint64_t src_pitch = 0;
  std::uint64_t stream = 0;       // 0: the legacy default stream, 2: the thread's own
  const char* library = nullptr;  // the file of the runtime that the call goes to
};

struct outcome {
  pass why = pass::failed;
  bool differed = false;  // the self-check found other bytes; the copy is to be made again
};

// Exported by libberth_fix.so as berth_fix_copy. Makes the copy as the call would, or changes
// nothing that the call will not change. Never throws; errno may change.
using copy_function = void (*)(const request* what, outcome* how);
inline constexpr const char* copy_function_name = "berth_fix_copy";

// Exported as berth_fix_end. Waits for copies under way, gives back what the engines hold, and has
// all later copies passed: for a device that is reset, which takes with it what they are made of.
using end_function = void (*)();
inline constexpr const char* end_function_name = "berth_fix_end";

// What becomes of the program's own page-locked memory.
enum class pinned_step : std::uint8_t {
  take,     // before an allocation: true, and `memory` is the block
  note,     // after one: `memory` is the runtime's
  keep,     // before a free of `memory`: true, and it is not to be made. Blocks as it would
  forget,   // before a free of `memory` that is to be made: false
  release,  // after an allocation has failed: true if the runtime has got blocks back
};

struct pinned_request {
  std::uint32_t version = interface_version;
  pinned_step step = pinned_step::take;
  runtime of = runtime::hip;
  std::uint32_t call = 0;  // by which it is allocated
  std::uint64_t flags = 0;
  std::uint64_t bytes = 0;
  std::uint64_t budget = 0;  // of what is kept, in bytes
  void* memory = nullptr;
  const char* library = nullptr;
};

// Exported as berth_fix_pinned. Never throws; errno may change.
using pinned_function = bool (*)(pinned_request* what);
inline constexpr const char* pinned_function_name = "berth_fix_pinned";

// Exported as berth_fix_give_back. Gives back the rings that no copy uses, which blocks for work of
// their devices: for after a call that has waited for that.
using give_back_function = void (*)();
inline constexpr const char* give_back_function_name = "berth_fix_give_back";

}  // namespace berth::interpose::fix
