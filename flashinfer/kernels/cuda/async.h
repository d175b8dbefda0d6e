// SPDX-License-Identifier: Apache-2.0
// cp.async: asynchronous copies from global to shared memory that bypass the registers. Copies since the last commit
// form a group; groups complete in order. Data that has arrived for one thread is visible to others after a barrier
// that follows its wait:
//
//   copy_async<16>(tile + i, x + i, n);  commit_async();   // stage 0
//   ...                                  commit_async();   // stage 1
//   wait_async<1>();  sync_threads();    read stage 0
//
// The emulator fills the target with NaN at once, copies at the wait, and reports reads and writes in between. For
// Hopper: TMA's bulk copies complete on an mbarrier instead of a group; they will be a header beside this one, using
// the same Machine states (in flight, initialised).
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

/// Copies kBytes (4, 8, 16) from global memory: the first `from` bytes are read, the rest becomes 0; from = 0 reads
/// nothing (the address may be invalid). Both addresses are multiples of kBytes. 16 bytes bypass L1.
template <int kBytes>
FI_CU void copy_async(void* shared_to, const void* global_from, uint32_t from = kBytes) {
#if defined(__CUDACC__)
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared_to));
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global_from), "r"(from)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global_from), "n"(kBytes), "r"(from)
                 : "memory");
#else
  emu::api->async_copy(shared_to, global_from, kBytes, from, FI_EMU_PC);
#endif
}
/// Closes this thread's group (it may be empty: every thread numbers the same groups).
FI_CU void commit_async() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emu::api->async_commit(FI_EMU_PC);
#endif
}
/// Waits until at most kPending of this thread's groups are in flight.
template <int kPending>
FI_CU void wait_async() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#else
  emu::api->async_wait(kPending, FI_EMU_PC);
#endif
}

}  // namespace flashinfer::cu
