// SPDX-License-Identifier: Apache-2.0
// Atomics on global memory, at GPU scope, with acquire-release order: a thread's writes before one are visible to a
// thread that later accesses the same address atomically.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

#if !defined(__CUDACC__)
namespace emulated {
template <class T>
struct Change {
  T value, compare, old;
};
template <class T>
__attribute__((noinline, no_sanitize("thread"))) inline void add(void* p, void* x) {
  Change<T>* c = static_cast<Change<T>*>(x);
  c->old = *static_cast<T*>(p);
  *static_cast<T*>(p) = c->old + c->value;
}
template <class T>
__attribute__((noinline, no_sanitize("thread"))) inline void exchange_if(void* p, void* x) {
  Change<T>* c = static_cast<Change<T>*>(x);
  c->old = *static_cast<T*>(p);
  if (c->old == c->compare) *static_cast<T*>(p) = c->value;
}
}  // namespace emulated
#endif

/// Adds; returns the old value. T: uint32_t, int32_t, float, unsigned long long.
template <class T>
FI_CU T atomic_add(T* p, T value) {
#if defined(__CUDACC__)
  __threadfence();
  const T old = atomicAdd(p, value);
  __threadfence();
  return old;
#else
  emulated::Change<T> c{value, T(), T()};
  emu::api->atomic(p, sizeof(T), emulated::add<T>, &c, FI_EMU_PC);
  return c.old;
#endif
}
/// Adds to a counter in shared memory, without memory order (a barrier must precede any read).
FI_CU void atomic_count(uint32_t* p, uint32_t value) {
#if defined(__CUDACC__)
  atomicAdd(p, value);
#else
  emulated::Change<uint32_t> c{value, 0, 0};
  emu::api->atomic(p, sizeof(uint32_t), emulated::add<uint32_t>, &c, FI_EMU_PC);
#endif
}
/// Stores `value` if the current value is `compare`; returns the old value.
template <class T>
FI_CU T atomic_cas(T* p, T compare, T value) {
#if defined(__CUDACC__)
  __threadfence();
  const T old = atomicCAS(p, compare, value);
  __threadfence();
  return old;
#else
  emulated::Change<T> c{value, compare, T()};
  emu::api->atomic(p, sizeof(T), emulated::exchange_if<T>, &c, FI_EMU_PC);
  return c.old;
#endif
}

/// Barrier of all threads of a cooperative grid. `counter`: a word of global memory, 0 before the first launch that
/// uses it.
FI_CU void sync_grid(uint32_t* counter) {
#if defined(__CUDACC__)
  __syncthreads();
  if (threadIdx.x == 0) {
    // The first block adds what is missing to 2^31 after the others' increments, so the top bit flips when all have
    // arrived.
    const uint32_t blocks = gridDim.x * gridDim.y * gridDim.z;
    const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
    __threadfence();
    const uint32_t old = atomicAdd(counter, first ? 0x80000000u - (blocks - 1) : 1u);
    while (((old ^ *static_cast<volatile uint32_t*>(counter)) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
#else
  emu::api->grid_barrier(FI_EMU_PC);
#endif
}

}  // namespace flashinfer::cu
