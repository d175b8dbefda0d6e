// SPDX-License-Identifier: Apache-2.0
// Base of kernels/cuda: one source, two compilers. Under NVRTC the wrappers are GPU instructions; the host compiler
// (FI_EMU) gets an emulated version of each, which calls the emulator (kernels/emu, docs/cuda.md). A kernel
// includes no other GPU header, is written as `template <Config C> FI_GLOBAL_FN void f(const Params& p)`, and has only
// dynamic shared memory: cu::shared().
//
// Emulated versions are never inlined and not instrumented: the emulator sees the accesses of the GPU, with the
// caller's address, and not those inside a wrapper.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define FI_CU __device__ __forceinline__         // a wrapper
#define FI_GLOBAL_FN __device__ __forceinline__  // a kernel's body, or a function that must be inlined into it
#define FI_CALLED_FN __device__ __noinline__     // a function that is called, with registers of its own
#define FI_CUDA_ENTRY(Params, config, ...)                                                           \
  extern "C" __global__ void __launch_bounds__((config).threads, flashinfer::cu::min_blocks(config)) \
      flashinfer_kernel(const __grid_constant__ Params params) {                                     \
    __VA_ARGS__(params);                                                                             \
  }
#else
#include "flashinfer/kernels/emu/hooks.h"
#define FI_CU __attribute__((noinline, no_sanitize("thread", "address"))) inline
#define FI_GLOBAL_FN inline __attribute__((always_inline))
#define FI_CALLED_FN inline
/// For modules with several kernels (tests of the emulator).
#define FI_CUDA_ENTRY_NAMED(name, Params, ...)                                                           \
  extern "C" __attribute__((visibility("default"))) void name(const void* entry) {                       \
    __VA_ARGS__(*static_cast<const Params*>(static_cast<const flashinfer::emu::Entry*>(entry)->params)); \
  }
#define FI_CUDA_ENTRY(Params, config, ...) FI_CUDA_ENTRY_NAMED(flashinfer_emu_kernel, Params, __VA_ARGS__)
#endif

namespace flashinfer::cu {

/// Blocks that an SM can hold at once (a Config's min_blocks()), which bounds a thread's registers from above; 0: the
/// compiler chooses. It may choose so few for the sake of occupancy that some are spilled. FI_MIN_BLOCKS replaces all
/// of them (tools/gpu_check.py compares).
template <class Config>
constexpr int min_blocks([[maybe_unused]] const Config& c) {
#if defined(FI_MIN_BLOCKS)
  return FI_MIN_BLOCKS;
#else
  if constexpr (requires { c.min_blocks(); })
    return c.min_blocks();
  else
    return 0;
#endif
}

inline constexpr uint32_t kFullMask = 0xffffffffu;
inline constexpr float kInf = __builtin_bit_cast(float, 0x7f800000u);
template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

#if defined(__CUDACC__)
FI_CU uint32_t thread_x() { return threadIdx.x; }
FI_CU uint32_t block_x() { return blockIdx.x; }
FI_CU uint32_t block_y() { return blockIdx.y; }
FI_CU uint32_t block_z() { return blockIdx.z; }
FI_CU uint32_t threads_x() { return blockDim.x; }
FI_CU uint32_t blocks_x() { return gridDim.x; }
FI_CU uint32_t blocks_y() { return gridDim.y; }
/// Lane of the thread in its warp. Blocks are one-dimensional: warp w holds threads 32w .. 32w + 31.
FI_CU uint32_t lane() { return threadIdx.x & 31u; }
/// Index of the warp in its block. Not computed with a shuffle, which would tell the compiler that it is uniform: a
/// single thread may call this, without the other lanes.
FI_CU uint32_t warp() { return threadIdx.x >> 5; }

/// Dynamic shared memory of the block, 128-byte aligned.
FI_CU char* shared() {
  extern __shared__ __align__(128) char fi_shared_memory[];
  return fi_shared_memory;
}

/// Barrier of all threads of the block that have not returned; orders their accesses to shared and global memory.
FI_CU void sync_threads() { __syncthreads(); }
/// Barrier `id` (1..15; 0 is sync_threads) for `threads` threads, whole warps, counting those that wait and those that
/// only arrive.
FI_CU void barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
FI_CU void barrier_arrive(uint32_t id, uint32_t threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Synchronises the lanes of the mask and orders their memory accesses. Shuffles, votes and mma do not.
FI_CU void sync_warp(uint32_t mask = kFullMask) { __syncwarp(mask); }
/// Code of a user ran, whose branches and loops may have left the lanes of the warp apart: until sync_warp() no mma,
/// ldmatrix, stmatrix or sync_threads(), which are for warps that are together. Has an effect only in the emulator,
/// which finds them.
FI_CU void lanes_apart() {}
/// An assertion in a kernel; has an effect only in the emulator.
FI_CU void fail(const char*) {}
#else
FI_CU uint32_t thread_x() { return emu::api->now->thread[0]; }
FI_CU uint32_t block_x() { return emu::api->now->block[0]; }
FI_CU uint32_t block_y() { return emu::api->now->block[1]; }
FI_CU uint32_t block_z() { return emu::api->now->block[2]; }
FI_CU uint32_t threads_x() { return emu::api->now->block_dim[0]; }
FI_CU uint32_t blocks_x() { return emu::api->now->grid_dim[0]; }
FI_CU uint32_t blocks_y() { return emu::api->now->grid_dim[1]; }
FI_CU uint32_t lane() { return emu::api->now->linear & 31u; }
FI_CU uint32_t warp() { return emu::api->now->linear >> 5; }
FI_CU char* shared() { return emu::api->now->shared; }
FI_CU void sync_threads() { emu::api->barrier(0, 0, 1, FI_EMU_PC); }
FI_CU void barrier_sync(uint32_t id, uint32_t threads) { emu::api->barrier(id, threads, 1, FI_EMU_PC); }
FI_CU void barrier_arrive(uint32_t id, uint32_t threads) { emu::api->barrier(id, threads, 0, FI_EMU_PC); }
FI_CU void sync_warp(uint32_t mask = kFullMask) {
  emu::api->meet(emu::Meeting::kSync, mask, nullptr, nullptr, FI_EMU_PC);
}
FI_CU void lanes_apart() { emu::api->lanes_apart(FI_EMU_PC); }
FI_CU void fail(const char* sentence) { emu::api->fail(sentence, FI_EMU_PC); }
#endif

}  // namespace flashinfer::cu
