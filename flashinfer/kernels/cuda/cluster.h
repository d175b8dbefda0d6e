// SPDX-License-Identifier: Apache-2.0
// Clusters (blocks scheduled together that can access each other's shared memory) and programmatic dependent launch.
// Both need sm_90; on older targets a cluster is one block and stream order gives the dependence, so that kernels need
// only one source.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define FI_SM90 1
#else
#define FI_SM90 0
#endif

/// Rank of the block in its cluster.
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
/// Number of blocks in the cluster.
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
/// Barrier of all threads of the cluster: writes before arrive are visible after wait. Between the two no thread may
/// access data that others write. A block must not return while others may still read its shared memory.
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
/// The address in block `rank` of the cluster that corresponds to `p` in this block's shared memory.
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

/// Both: a barrier of the cluster's threads, which orders their accesses to shared and global memory.
FI_GLOBAL_FN void sync_cluster() {
  cluster_arrive();
  cluster_wait();
}
/// A word of 4 or 8 bytes in block `rank` of the cluster, at the place that corresponds to `p` in this block's shared
/// memory. One instruction each, which is not a generic access.
template <class T>
FI_CU void store_peer(T* p, uint32_t rank, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if !defined(__CUDACC__)
  T* const q = static_cast<T*>(emu::api->map_shared(p, rank, FI_EMU_PC));
  emu::api->access(q, sizeof(T), emu::kWrite, FI_EMU_PC);
  *q = value;
#elif FI_SM90
  uint32_t q;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(q)
      : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(p))), "r"(rank));
  if constexpr (sizeof(T) == 4)
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(q), "r"(__builtin_bit_cast(uint32_t, value)) : "memory");
  else
    asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(q), "l"(__builtin_bit_cast(uint64_t, value)) : "memory");
#else
  *p = value;
#endif
}
template <class T>
FI_CU T load_peer(const T* p, uint32_t rank) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if !defined(__CUDACC__)
  const T* const q = static_cast<const T*>(emu::api->map_shared(p, rank, FI_EMU_PC));
  emu::api->access(q, sizeof(T), emu::kRead, FI_EMU_PC);
  return *q;
#elif FI_SM90
  uint32_t q;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(q)
      : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(p))), "r"(rank));
  if constexpr (sizeof(T) == 4) {
    uint32_t x;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(q) : "memory");
    return __builtin_bit_cast(T, x);
  } else {
    uint64_t x;
    asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(x) : "r"(q) : "memory");
    return __builtin_bit_cast(T, x);
  }
#else
  return *p;
#endif
}

/// Programmatic dependent launch: a kernel may start before the previous one in the stream has ended. The previous
/// kernel's writes are visible after depend_wait(), which a kernel calls before its first access. depend_launch()
/// allows the next kernel to start.
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
