// SPDX-License-Identifier: Apache-2.0
// Inside an emulated artifact: the emulator's function table, and the functions that instrumented code calls before
// every load and store. They are hidden, so that they do not clash with a real sanitizer in the process. Included by
// cu.h, once in an artifact.
//
// An artifact has two forms (docs/emulator.md, "Local memory"): with -fsanitize=thread, whose calls show every access;
// and, with FI_EMU_GUARDED and -fsanitize=kernel-address, the guarded form, which has a red zone around each variable
// on the stack.
#pragma once
#include <string.h>

#include "flashinfer/kernels/emu/api.h"

namespace flashinfer::emu {
inline Api* api = nullptr;
#define FI_EMU_PC __builtin_extract_return_addr(__builtin_return_address(0))
}  // namespace flashinfer::emu

#define FI_EMU_HOOK \
  extern "C" __attribute__((visibility("hidden"), used, noinline, no_sanitize("thread", "address"))) inline

#if defined(FI_EMU_GUARDED)
#include "flashinfer/kernels/emu/guarded_hooks.h"
#else
#define FI_EMU_ACCESS(p, n, flags)                                                                             \
  if (reinterpret_cast<uintptr_t>(p) - flashinfer::emu::api->stack_begin >= flashinfer::emu::api->stack_bytes) \
  flashinfer::emu::api->access(p, n, flags, FI_EMU_PC)
#define FI_EMU_SIZE(n)                                                                                 \
  FI_EMU_HOOK void __tsan_read##n(void* p) { FI_EMU_ACCESS(p, n, flashinfer::emu::kRead); }            \
  FI_EMU_HOOK void __tsan_write##n(void* p) { FI_EMU_ACCESS(p, n, flashinfer::emu::kWrite); }          \
  FI_EMU_HOOK void __tsan_volatile_read##n(void* p) { FI_EMU_ACCESS(p, n, flashinfer::emu::kRead); }   \
  FI_EMU_HOOK void __tsan_volatile_write##n(void* p) { FI_EMU_ACCESS(p, n, flashinfer::emu::kWrite); } \
  FI_EMU_HOOK void __tsan_unaligned_read##n(void* p) {                                                 \
    FI_EMU_ACCESS(p, n, flashinfer::emu::kRead | flashinfer::emu::kUnaligned);                         \
  }                                                                                                    \
  FI_EMU_HOOK void __tsan_unaligned_write##n(void* p) {                                                \
    FI_EMU_ACCESS(p, n, flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);                        \
  }
FI_EMU_SIZE(1)
FI_EMU_SIZE(2)
FI_EMU_SIZE(4)
FI_EMU_SIZE(8)
FI_EMU_SIZE(16)
#undef FI_EMU_SIZE
FI_EMU_HOOK void __tsan_read_range(void* p, size_t n) {
  FI_EMU_ACCESS(p, static_cast<uint32_t>(n), flashinfer::emu::kRead | flashinfer::emu::kUnaligned);
}
FI_EMU_HOOK void __tsan_write_range(void* p, size_t n) {
  FI_EMU_ACCESS(p, static_cast<uint32_t>(n), flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
}
FI_EMU_HOOK void __tsan_init() {}
FI_EMU_HOOK void __tsan_func_entry(void*) {}
FI_EMU_HOOK void __tsan_func_exit() {}
// clang calls these for copies of structs.
FI_EMU_HOOK void* __tsan_memcpy(void* to, const void* from, size_t n) {
  FI_EMU_ACCESS(from, static_cast<uint32_t>(n), flashinfer::emu::kRead | flashinfer::emu::kUnaligned);
  FI_EMU_ACCESS(to, static_cast<uint32_t>(n), flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
  return __builtin_memcpy(to, from, n);
}
FI_EMU_HOOK void* __tsan_memset(void* to, int value, size_t n) {
  FI_EMU_ACCESS(to, static_cast<uint32_t>(n), flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
  return __builtin_memset(to, value, n);
}
#endif

// g++ expands these in kernels without a call that the hooks see. Wrappers use the builtins, which stay as they are.
FI_EMU_HOOK void* flashinfer_emu_memcpy(void* to, const void* from, size_t n) {
  FI_EMU_ACCESS(from, static_cast<uint32_t>(n), flashinfer::emu::kRead | flashinfer::emu::kUnaligned);
  FI_EMU_ACCESS(to, static_cast<uint32_t>(n), flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
  return __builtin_memmove(to, from, n);
}
FI_EMU_HOOK void* flashinfer_emu_memset(void* to, int value, size_t n) {
  FI_EMU_ACCESS(to, static_cast<uint32_t>(n), flashinfer::emu::kWrite | flashinfer::emu::kUnaligned);
  return __builtin_memset(to, value, n);
}
#undef FI_EMU_ACCESS
// Printed once, however often the emulator runs a launch.
FI_EMU_HOOK int flashinfer_emu_printf(const char* format, ...) {
  __builtin_va_list values;
  __builtin_va_start(values, format);
  const int n = flashinfer::emu::api->print(format, values);
  __builtin_va_end(values);
  return n;
}
#define printf(...) flashinfer_emu_printf(__VA_ARGS__)
#define memcpy(to, from, n) flashinfer_emu_memcpy(to, from, n)
#define memmove(to, from, n) flashinfer_emu_memcpy(to, from, n)
#define memset(to, value, n) flashinfer_emu_memset(to, value, n)

// -fsanitize=bounds calls this before an access to an array of known length with an index out of range: kernels keep
// arrays in registers or local memory, which the hooks above do not see.
namespace flashinfer::emu {
struct TypeName {
  uint16_t kind, info;  // kind 0: an integer, with info = log2 of its bits * 2 + 1 if it is signed
  char name[1];
};
struct OutOfBounds {
  const char* file;
  uint32_t line, column;
  const TypeName *array, *index;
};
}  // namespace flashinfer::emu
FI_EMU_HOOK void __ubsan_handle_out_of_bounds(flashinfer::emu::OutOfBounds* data, uintptr_t index) {
  const uint32_t unused = 64 - (1u << (data->index->info >> 1) < 64 ? 1u << (data->index->info >> 1) : 64);
  const int64_t value = data->index->info & 1 ? static_cast<int64_t>(index << unused) >> unused
                                              : static_cast<int64_t>(index << unused >> unused);
  flashinfer::emu::api->array_bounds(value, data->array->name, FI_EMU_PC);
}
// -fsanitize=object-size: the same through a pointer to a variable that the compiler knows.
namespace flashinfer::emu {
struct TypeMismatch {
  const char* file;
  uint32_t line, column;
  const TypeName* type;
};
}  // namespace flashinfer::emu
FI_EMU_HOOK void __ubsan_handle_type_mismatch_v1(flashinfer::emu::TypeMismatch* data, uintptr_t) {
  flashinfer::emu::api->object_bounds(data->type->name, FI_EMU_PC);
}
extern "C" __attribute__((visibility("default"), used, no_sanitize("thread", "address"))) inline void
flashinfer_emu_bind(void* hooks) {
  flashinfer::emu::api = static_cast<flashinfer::emu::Api*>(hooks);
}
