// SPDX-License-Identifier: Apache-2.0
// Clusters (blocks that run together and see each other's shared memory) and the dependence on the kernel in front.
// Both are sm_90's; before it a cluster is one block and the dependence is the stream's order, so that kernels need no
// second source.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define FI_SM90 1
#else
#define FI_SM90 0
#endif

/// Of the block in its cluster.
FI_CU uint32_t cluster_rank() {
#if !defined(__CUDACC__)
  return emu::api->now->cluster_rank;
#elif FI_SM90
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
#else
  return 0;
#endif
}
/// Blocks of the cluster.
FI_CU uint32_t cluster_blocks() {
#if !defined(__CUDACC__)
  return emu::api->now->cluster_dim[0] * emu::api->now->cluster_dim[1] * emu::api->now->cluster_dim[2];
#elif FI_SM90
  uint32_t r;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  return r;
#else
  return 1;
#endif
}
/// All threads of the cluster: what they wrote before arriving is seen after waiting. Between the two nobody may touch
/// what others write. A block must not return while others may still read its shared memory.
FI_CU void cluster_arrive() {
#if !defined(__CUDACC__)
  emu::api->cluster_barrier(1, 0, FI_EMU_PC);
#elif FI_SM90
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
FI_CU void cluster_wait() {
#if !defined(__CUDACC__)
  emu::api->cluster_barrier(0, 1, FI_EMU_PC);
#elif FI_SM90
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}
/// The address in block `rank` of the cluster that `p` has in this block's shared memory.
template <class T>
FI_CU T* map_shared(T* p, uint32_t rank) {
#if !defined(__CUDACC__)
  return static_cast<T*>(emu::api->map_shared(p, rank, FI_EMU_PC));
#elif FI_SM90
  T* q;
  asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(rank));
  return q;
#else
  return p;
#endif
}

/// Programmatic dependent launch: a kernel may start before the one in front of it in the stream has ended. What that
/// one wrote is there after depend_wait(); a kernel calls it before its first access. depend_launch() lets the next one
/// start.
FI_CU void depend_wait() {
#if !defined(__CUDACC__)
  emu::api->depend_wait();
#elif FI_SM90
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
FI_CU void depend_launch() {
#if FI_SM90
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace flashinfer::cu
