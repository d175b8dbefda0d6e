// SPDX-License-Identifier: Apache-2.0
// The guarded form of kernels: the same source, compiled with red zones around the variables on the stack, which the
// form that shows all accesses cannot have (compilers refuse both sanitizers at once). Before a launch a run of the
// guarded form looks for accesses that leave a local variable; what it writes to global memory is taken back (undo.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "flashinfer/kernels/emu/emu.h"

namespace flashinfer::emu {

/// The guarded form of an artifact's kernel, found by name: NAME.guarded.so beside NAME.so. Null: the kernel is in no
/// such file, or there is none beside it that loads, which is said once, on stderr.
using Kernel = void (*)(const void*);
Kernel guarded_form(Kernel kernel);

/// Maps the shadow memory of the stacks of all fibers, zero: no red zones. False where it cannot be mapped.
bool map_stack_shadow(uintptr_t begin, size_t bytes);
/// Fibers were left in the middle of a function: takes their red zones away.
void clear_stack_shadow();

/// The variable that a bad access is of, or is next to, as its function's red zones describe it: "4 bytes past the end
/// of 'sums' (32 bytes)"; empty when they do not say.
std::string describe_local(uintptr_t at, size_t bytes, uintptr_t stack_begin);

}  // namespace flashinfer::emu
