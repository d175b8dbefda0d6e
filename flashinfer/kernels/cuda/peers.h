// SPDX-License-Identifier: Apache-2.0
// Memory that several GPUs access: flags with the scope of the system. What orders the threads of one GPU (atomic.h)
// orders nothing for another one.
#pragma once
#include "flashinfer/kernels/cuda/atomic.h"
#if !defined(__CUDACC__)
#include "flashinfer/kernels/emu/system.h"
#endif

namespace flashinfer::cu {

/// Orders the thread's accesses before it and after it, for all threads of all GPUs (__threadfence_system).
FI_CU void fence_system() {
#if defined(__CUDACC__)
  __threadfence_system();
#else
  emu::api->fence(emu::kSystemFence, FI_EMU_PC);
#endif
}

#if !defined(__CUDACC__)
namespace emulated {
/// A load or store of a flag; `how` says which, and its order. Returns what was there.
template <class T>
__attribute__((always_inline)) inline T flag(T* p, T value, uint32_t how, const void* pc) {
  Change<T> c{value, 0, 0};
  atomic(p, how & emu::kLoadOnly ? get<T> : put<T>, c, how | emu::kOfSystem, pc);
  return c.old;
}
}  // namespace emulated
#define FI_LOAD_FLAG(order, emulated_order) \
  return emulated::flag(p, T(), emu::kLoadOnly | emu::emulated_order, FI_EMU_PC)
#define FI_STORE_FLAG(order, emulated_order) emulated::flag(p, value, emu::kStoreOnly | emu::emulated_order, FI_EMU_PC)
#else
#define FI_LOAD_FLAG(order, emulated_order)                                              \
  T x;                                                                                   \
  if constexpr (sizeof(T) == 4)                                                          \
    asm volatile("ld." order ".sys.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); \
  else                                                                                   \
    asm volatile("ld." order ".sys.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory"); \
  return x
#define FI_STORE_FLAG(order, emulated_order)                                               \
  if constexpr (sizeof(T) == 4)                                                            \
    asm volatile("st." order ".sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory"); \
  else                                                                                     \
    asm volatile("st." order ".sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory")
#endif
/// A flag of 4 or 8 bytes (uint32_t, uint64_t), in any GPU's memory or the host's that is mapped. Its stores must be
/// ordered one after another, else one may be lost.
template <class T>
FI_CU T load_acquire_system(T* p) {
  FI_LOAD_FLAG("acquire", kAcquire);
}
template <class T>
FI_CU T load_relaxed_system(T* p) {
  FI_LOAD_FLAG("relaxed", kRelaxed);
}
template <class T>
FI_CU void store_release_system(T* p, T value) {
  FI_STORE_FLAG("release", kRelease);
}
template <class T>
FI_CU void store_relaxed_system(T* p, T value) {
  FI_STORE_FLAG("relaxed", kRelaxed);
}
#undef FI_LOAD_FLAG
#undef FI_STORE_FLAG

/// The time that a loop of loads takes. On the emulator a round takes a microsecond.
class WaitTime {
 public:
  /// Whether the loop, in its round `round`, has lasted for longer than `limit` nanoseconds.
  FI_CU bool is_over(uint64_t limit, uint32_t round) {
#if defined(__CUDACC__)
    (void)round;
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (begin_ == 0) begin_ = now;
    return now - begin_ > limit;
#else
    return uint64_t{round} * 1000 > limit;
#endif
  }

 private:
  [[maybe_unused]] uint64_t begin_ = 0;
};

}  // namespace flashinfer::cu
