// SPDX-License-Identifier: Apache-2.0
// dlsym, as the program sees it. A lookup of a recorded call gets the function that records. All
// others go on to the loader's own by a jump, not by a call: what RTLD_NEXT and RTLD_DEFAULT mean
// depends on the address that the lookup returns to. dlvsym is left alone: it is the way to the
// loader's own dlsym.
#include <dlfcn.h>

#include <cstdint>

#include "interpose/capture/process.hpp"
#include "interpose/capture/real_calls.hpp"
#include "interpose/preload/shims.hpp"

namespace berth::interpose {
namespace {

// "Go on to the loader."
void* const go_on = reinterpret_cast<void*>(std::uintptr_t{1});  // NOLINT: a mark, no address

bool may_be_recorded(const char* name) noexcept {
  return name != nullptr && ((name[0] == 'h' && name[1] == 'i' && name[2] == 'p') ||
                             (name[0] == 'c' && name[1] == 'u'));
}

// Without a library: the recorder's own function is found first. It is an answer only where there
// is something behind it; where not, dlerror() tells of a lookup that failed.
void* answer_global(call_id call, const char* name) noexcept {
  return real_call(call) == nullptr ? real_dlsym()(RTLD_NEXT, name) : shim_of(call);
}

void* answer_found(call_id call, const char* name, void* found) noexcept {
  if (found == nullptr) {
    return nullptr;
  }
  if (found == shim_of(call)) {
    return answer_global(call, name);
  }
  auto* const to = process_recorder();
  switch (remember(call, found)) {
    case remembered::as_before:
      if (to != nullptr) {
        to->note_reached(row_of(call).api, reached_by::symbol_lookup);
        to->begin();
      }
      return shim_of(call);
    case remembered::another_copy:
      if (to != nullptr) {
        to->note_missed(row_of(call).name.data());
      }
      return found;
    case remembered::foreign:
      return found;
  }
  return found;
}

}  // namespace
}  // namespace berth::interpose

extern "C" {

using namespace berth::interpose;  // NOLINT: functions of the C interface

__attribute__((visibility("hidden"))) void* berth_answer_dlsym(void* handle,
                                                               const char* name) noexcept {
  if (!may_be_recorded(name) || handle == RTLD_NEXT) {
    return go_on;
  }
  if (void* const entry = cupti_entry(name); entry != nullptr && handle != RTLD_DEFAULT) {
    return real_dlsym()(handle, name) == nullptr ? nullptr : entry;
  }
  const auto call = find_call(name);
  if (call == call_id::none) {
    return go_on;
  }
  return handle == RTLD_DEFAULT ? answer_global(call, name)
                                : answer_found(call, name, real_dlsym()(handle, name));
}

__attribute__((visibility("hidden"))) void* berth_real_dlsym() noexcept {
  return reinterpret_cast<void*>(real_dlsym());
}
}

// Asks for an answer with the arguments kept aside; 1 means that there is none, and the loader's
// own function gets the arguments and the return address of this one.
#if defined(__x86_64__)
asm(".text\n"
    ".globl dlsym\n"
    ".type dlsym, @function\n"
    "dlsym:\n"
    ".cfi_startproc\n"
    "endbr64\n"
    "subq $24, %rsp\n"
    ".cfi_adjust_cfa_offset 24\n"
    "movq %rdi, 8(%rsp)\n"
    "movq %rsi, 16(%rsp)\n"
    "call berth_answer_dlsym\n"
    "cmpq $1, %rax\n"
    "jne 1f\n"
    "call berth_real_dlsym\n"
    "movq 8(%rsp), %rdi\n"
    "movq 16(%rsp), %rsi\n"
    "addq $24, %rsp\n"
    ".cfi_adjust_cfa_offset -24\n"
    "jmp *%rax\n"
    "1:\n"
    ".cfi_adjust_cfa_offset 24\n"
    "addq $24, %rsp\n"
    ".cfi_adjust_cfa_offset -24\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
asm(".text\n"
    ".globl dlsym\n"
    ".type dlsym, %function\n"
    "dlsym:\n"
    ".cfi_startproc\n"
    "stp x29, x30, [sp, #-32]!\n"
    "mov x29, sp\n"
    "stp x0, x1, [sp, #16]\n"
    "bl berth_answer_dlsym\n"
    "cmp x0, #1\n"
    "b.ne 1f\n"
    "bl berth_real_dlsym\n"
    "mov x16, x0\n"
    "ldp x0, x1, [sp, #16]\n"
    "ldp x29, x30, [sp], #32\n"
    "br x16\n"
    "1:\n"
    "ldp x29, x30, [sp], #32\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
#else
#error "berth records on x86-64 and aarch64 only"
#endif
