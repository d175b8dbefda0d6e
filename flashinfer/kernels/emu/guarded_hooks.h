// SPDX-License-Identifier: Apache-2.0
// The hooks of an artifact's guarded form. -fsanitize=kernel-address puts red zones around variables on the stack and
// writes into shadow memory, a byte for each 8, which of them a function may touch; it calls these functions before
// each access that may leave its variable. The emulator maps the shadow memory of its threads' stacks (guarded.cc).
#pragma once
#include "flashinfer/kernels/emu/api.h"

namespace flashinfer::emu {
#define FI_EMU_PLAIN __attribute__((no_sanitize("thread", "address"))) inline
FI_EMU_PLAIN int8_t stack_shadow(uintptr_t at) { return *reinterpret_cast<const int8_t*>((at >> 3) + kStackShadow); }
/// Whether all of [at, at + bytes) is of living local variables. A byte of shadow memory is 0 when all 8 bytes are, k
/// when the first k are, negative when none is.
FI_EMU_PLAIN bool in_variables(uintptr_t at, size_t bytes) {
  for (uintptr_t a = at, end = at + bytes; a < end; a = (a | 7) + 1) {
    const uintptr_t last = (a | 7) < end ? a | 7 : end - 1;
    if (const int8_t s = stack_shadow(a); s != 0 && static_cast<int8_t>(last & 7) >= s) return false;
  }
  return true;
}
/// `frame`: of the caller's callee. What lies below belonged to functions that have returned.
FI_EMU_PLAIN void guarded_access(const void* p, size_t bytes, uint32_t flags, const void* frame, const void* pc) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p);
  if (at - api->stack_begin >= api->stack_bytes) return api->access(p, static_cast<uint32_t>(bytes), flags, pc);
  const bool returned = at < reinterpret_cast<uintptr_t>(frame);
  if (returned || !in_variables(at, bytes)) api->local_bounds(p, static_cast<uint32_t>(bytes), flags, returned, pc);
}
#undef FI_EMU_PLAIN
}  // namespace flashinfer::emu

#define FI_EMU_ACCESS(p, n, flags) flashinfer::emu::guarded_access(p, n, flags, __builtin_frame_address(0), FI_EMU_PC)
#define FI_EMU_SIZE(n)                                                                                \
  FI_EMU_HOOK void __asan_load##n##_noabort(void* p) { FI_EMU_ACCESS(p, n, flashinfer::emu::kRead); } \
  FI_EMU_HOOK void __asan_store##n##_noabort(void* p) { FI_EMU_ACCESS(p, n, flashinfer::emu::kWrite); }
FI_EMU_SIZE(1)
FI_EMU_SIZE(2)
FI_EMU_SIZE(4)
FI_EMU_SIZE(8)
FI_EMU_SIZE(16)
#undef FI_EMU_SIZE
FI_EMU_HOOK void __asan_loadN_noabort(void* p, size_t n) {
  FI_EMU_ACCESS(p, n, flashinfer::emu::kRead | flashinfer::emu::kUnaligned);
}
FI_EMU_HOOK void __asan_storeN_noabort(void* p, size_t n) {
  FI_EMU_ACCESS(p, n, flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
}
// Copies whose size the compiler does not expand; of these names with clang.
FI_EMU_HOOK void* __asan_memcpy(void* to, const void* from, size_t n) {
  FI_EMU_ACCESS(from, n, flashinfer::emu::kRead | flashinfer::emu::kUnaligned);
  FI_EMU_ACCESS(to, n, flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
  return __builtin_memcpy(to, from, n);
}
FI_EMU_HOOK void* __asan_memset(void* to, int value, size_t n) {
  FI_EMU_ACCESS(to, n, flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
  return __builtin_memset(to, value, n);
}

// Red zones that are not written by instructions of their own.
FI_EMU_HOOK void __asan_handle_no_return() {}
#define FI_EMU_SET_SHADOW(value)                                               \
  FI_EMU_HOOK void __asan_set_shadow_##value(uintptr_t shadow, size_t bytes) { \
    __builtin_memset(reinterpret_cast<void*>(shadow), 0x##value, bytes);       \
  }
FI_EMU_SET_SHADOW(00)
FI_EMU_SET_SHADOW(f1)
FI_EMU_SET_SHADOW(f2)
FI_EMU_SET_SHADOW(f3)
FI_EMU_SET_SHADOW(f5)
FI_EMU_SET_SHADOW(f8)
#undef FI_EMU_SET_SHADOW
// Of a variable whose block is left, or entered again.
FI_EMU_HOOK void __asan_poison_stack_memory(uintptr_t at, size_t bytes) {
  __builtin_memset(reinterpret_cast<void*>((at >> 3) + flashinfer::emu::kStackShadow), 0xf8, (bytes + 7) >> 3);
}
FI_EMU_HOOK void __asan_unpoison_stack_memory(uintptr_t at, size_t bytes) {
  int8_t* const shadow = reinterpret_cast<int8_t*>((at >> 3) + flashinfer::emu::kStackShadow);
  __builtin_memset(shadow, 0, bytes >> 3);
  if (bytes & 7) shadow[bytes >> 3] = static_cast<int8_t>(bytes & 7);
}
