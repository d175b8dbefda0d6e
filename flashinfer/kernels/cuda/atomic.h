// SPDX-License-Identifier: Apache-2.0
// Atomics and fences, of the GPU's scope but for fence_block(). atomic_add and atomic_cas have acquire-release order: a
// thread's writes before one are visible to a thread that later accesses the same address atomically. load_acquire
// sees what was written before the store_release (or such an atomic) whose value it reads. The relaxed ones order
// nothing by themselves: only fence() before the one that stores and fence() after the one that loads do.
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
__attribute__((noinline, no_sanitize("thread", "address"))) inline void add(void* p, void* x) {
  Change<T>* c = static_cast<Change<T>*>(x);
  c->old = *static_cast<T*>(p);
  *static_cast<T*>(p) = c->old + c->value;
}
template <class T>
__attribute__((noinline, no_sanitize("thread", "address"))) inline void exchange_if(void* p, void* x) {
  Change<T>* c = static_cast<Change<T>*>(x);
  c->old = *static_cast<T*>(p);
  if (c->old == c->compare) *static_cast<T*>(p) = c->value;
}
template <class T>
__attribute__((noinline, no_sanitize("thread", "address"))) inline void get(void* p, void* x) {
  static_cast<Change<T>*>(x)->old = *static_cast<T*>(p);
}
template <class T>
__attribute__((noinline, no_sanitize("thread", "address"))) inline void put(void* p, void* x) {
  *static_cast<T*>(p) = static_cast<Change<T>*>(x)->value;
}
inline constexpr uint32_t kFenced = emu::kAcquire | emu::kRelease;
template <class T>
__attribute__((always_inline)) inline void atomic(T* p, void (*apply)(void*, void*), Change<T>& c, uint32_t order,
                                                  const void* pc) {
  emu::api->atomic(p, sizeof(T), apply, &c, order, pc);
}
}  // namespace emulated
#endif

/// Orders the thread's accesses before it and after it, for all threads of the GPU (__threadfence) or of its block.
FI_CU void fence() {
#if defined(__CUDACC__)
  __threadfence();
#else
  emu::api->fence(0, FI_EMU_PC);
#endif
}
FI_CU void fence_block() {
#if defined(__CUDACC__)
  __threadfence_block();
#else
  emu::api->fence(1, FI_EMU_PC);
#endif
}

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
  emulated::atomic(p, emulated::add<T>, c, emulated::kFenced, FI_EMU_PC);
  return c.old;
#endif
}
/// Adds to a counter in shared or global memory, relaxed: without memory order (a barrier must precede any read).
/// Returns the old value.
FI_CU uint32_t atomic_count(uint32_t* p, uint32_t value) {
#if defined(__CUDACC__)
  return atomicAdd(p, value);
#else
  emulated::Change<uint32_t> c{value, 0, 0};
  emulated::atomic(p, emulated::add<uint32_t>, c, emu::kRelaxed, FI_EMU_PC);
  return c.old;
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
  emulated::atomic(p, emulated::exchange_if<T>, c, emulated::kFenced | emu::kMayFail, FI_EMU_PC);
  return c.old;
#endif
}

#if defined(__CUDACC__)
namespace detail {
template <class T>
inline constexpr bool kWord = sizeof(T) == 4 || sizeof(T) == 8;
}
#define FI_LOAD_AS(order, emulated_order)                                         \
  static_assert(detail::kWord<T>);                                                \
  if constexpr (sizeof(T) == 4) {                                                 \
    uint32_t x;                                                                   \
    asm volatile("ld." order ".gpu.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); \
    return __builtin_bit_cast(T, x);                                              \
  } else {                                                                        \
    uint64_t x;                                                                   \
    asm volatile("ld." order ".gpu.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory"); \
    return __builtin_bit_cast(T, x);                                              \
  }
#define FI_STORE_AS(order, emulated_order)                                                                        \
  static_assert(detail::kWord<T>);                                                                                \
  if constexpr (sizeof(T) == 4)                                                                                   \
    asm volatile("st." order ".gpu.u32 [%0], %1;" ::"l"(p), "r"(__builtin_bit_cast(uint32_t, value)) : "memory"); \
  else                                                                                                            \
    asm volatile("st." order ".gpu.u64 [%0], %1;" ::"l"(p), "l"(__builtin_bit_cast(uint64_t, value)) : "memory")
#else
#define FI_LOAD_AS(order, emulated_order)                                                    \
  emulated::Change<T> c{T(), T(), T()};                                                      \
  emulated::atomic(p, emulated::get<T>, c, emu::kLoadOnly | emu::emulated_order, FI_EMU_PC); \
  return c.old;
#define FI_STORE_AS(order, emulated_order) \
  emulated::Change<T> c{value, T(), T()};  \
  emulated::atomic(p, emulated::put<T>, c, emu::kStoreOnly | emu::emulated_order, FI_EMU_PC)
#endif
/// Atomic loads and stores of 4 or 8 bytes, in global or shared memory.
template <class T>
FI_CU T load_acquire(T* p) {
  FI_LOAD_AS("acquire", kAcquire)
}
template <class T>
FI_CU T load_relaxed(T* p) {
  FI_LOAD_AS("relaxed", kRelaxed)
}
template <class T>
FI_CU void store_release(T* p, T value) {
  FI_STORE_AS("release", kRelease);
}
template <class T>
FI_CU void store_relaxed(T* p, T value) {
  FI_STORE_AS("relaxed", kRelaxed);
}
#undef FI_LOAD_AS
#undef FI_STORE_AS

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
  emu::api->grid_barrier(counter, FI_EMU_PC);
#endif
}

}  // namespace flashinfer::cu
