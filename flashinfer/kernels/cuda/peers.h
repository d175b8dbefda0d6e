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
__attribute__((always_inline)) inline uint32_t flag(uint32_t* p, uint32_t value, uint32_t how, const void* pc) {
  Change<uint32_t> c{value, 0, 0};
  atomic(p, how & emu::kLoadOnly ? get<uint32_t> : put<uint32_t>, c, how | emu::kOfSystem, pc);
  return c.old;
}
}  // namespace emulated
#endif

/// A flag, in any GPU's memory. Its stores must be ordered one after another, else one may be lost.
FI_CU uint32_t load_acquire_system(uint32_t* p) {
#if defined(__CUDACC__)
  uint32_t x;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
#else
  return emulated::flag(p, 0, emu::kLoadOnly | emu::kAcquire, FI_EMU_PC);
#endif
}
FI_CU uint32_t load_relaxed_system(uint32_t* p) {
#if defined(__CUDACC__)
  uint32_t x;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
#else
  return emulated::flag(p, 0, emu::kLoadOnly | emu::kRelaxed, FI_EMU_PC);
#endif
}
FI_CU void store_release_system(uint32_t* p, uint32_t value) {
#if defined(__CUDACC__)
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
#else
  emulated::flag(p, value, emu::kStoreOnly | emu::kRelease, FI_EMU_PC);
#endif
}
FI_CU void store_relaxed_system(uint32_t* p, uint32_t value) {
#if defined(__CUDACC__)
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
#else
  emulated::flag(p, value, emu::kStoreOnly | emu::kRelaxed, FI_EMU_PC);
#endif
}

/// Waits until the flag is at `epoch` or beyond, in the order of numbers that wrap around; what its setter released is
/// visible then. A kernel that waits for longer than `limit` nanoseconds ends with an error of its context. (On the
/// emulator a thread that waits for ever is an error anyway.)
FI_GLOBAL_FN void wait_for_epoch(uint32_t* flag, uint32_t epoch, uint64_t limit) {
#if defined(__CUDACC__)
  uint64_t begin = 0;
  for (uint32_t tries = 1; static_cast<int32_t>(load_acquire_system(flag) - epoch) < 0; ++tries) {
    if (tries % 4096 != 0) continue;
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (begin == 0) begin = now;
    if (now - begin > limit) asm volatile("trap;");
  }
#else
  (void)limit;
  while (static_cast<int32_t>(load_acquire_system(flag) - epoch) < 0) {
  }
#endif
}

}  // namespace flashinfer::cu
