// SPDX-License-Identifier: Apache-2.0
// Interface between an emulated kernel and the emulator. Freestanding: the wrappers of kernels/cuda include it when the
// host compiler builds them (FI_EMU). An artifact shares no symbols with the library: it receives this table once,
// through flashinfer_emu_bind, so that it works however the library was loaded, also beside a real ThreadSanitizer.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace flashinfer::emu {

/// The running thread, as the kernel sees it.
struct ThreadInfo {
  uint32_t thread[3], block[3], block_dim[3], grid_dim[3], cluster_dim[3];
  uint32_t linear;        // in the block: x fastest
  uint32_t cluster_rank;  // of the block in its cluster
  char* shared;
  uint32_t shared_bytes;
};

enum Access : uint32_t {
  kRead = 0,
  kWrite = 1,
  kAtomic = 2,       // never races with another atomic
  kUnaligned = 4,    // known to the compiler as possibly misaligned (the GPU splits it)
  kMatrix = 8,       // ldmatrix, stmatrix
  kAsync = 16,       // source of cp.async
  kBlockScope = 32,  // an atomic that only threads of its block see as one
  kReadToo = 128,    // a write that reads the old value
  kGlobal = 1024,    // by an instruction that takes addresses of global memory alone
  kMapped = 512,     // at an address that map_shared() gave
  kLanding = 64,     // end of the read of a source of cp.async, which began when it was issued
};

/// How an atomic operation orders memory and what it does. Without acquire and release it is relaxed: it orders nothing
/// but, with fences on both sides, what the fences order. kMayFail: a compare-and-swap, which is a load when it fails.
enum AtomicOrder : uint32_t {
  kRelaxed = 0,
  kAcquire = 1,
  kRelease = 2,
  kLoadOnly = 4,
  kStoreOnly = 8,
  kOfBlock = 16,
  kMayFail = 64
};

/// Kind of a warp-level synchronisation; printed in reports.
enum class Meeting : uint32_t { kSync, kShuffle, kVote, kMma, kMatrixLoad, kMatrixStore, kElect };

/// Counted instructions.
enum class Count : uint32_t { kMma, kMatrix, kShuffle, kVote, kBarrier, kAsyncCopy, kAtomic, kSpecial, kNumCounts };

/// Where the guarded form of an artifact (hooks.h) has the shadow byte of an address: (address >> 3) + kStackShadow.
/// jit::guarded_flags() and the shadow memory itself (guarded.cc) agree on it.
constexpr uintptr_t kStackShadow = uintptr_t{1} << 45;

struct Api {
  const ThreadInfo* now;
  uintptr_t stack_begin, stack_bytes;  // of the running thread: accesses there are local variables

  void (*access)(const void* p, uint32_t bytes, uint32_t flags, const void* pc);
  /// Barrier `id` of the block for `threads` threads (0: all live ones); `wait` 0: arrives only.
  void (*barrier)(uint32_t id, uint32_t threads, uint32_t wait, const void* pc);
  /// Synchronises the lanes of `mask`; the last to arrive runs `compute` on all operands (indexed by lane), then all
  /// continue.
  void (*meet)(Meeting kind, uint32_t mask, void* operand, void (*compute)(void* const* operands, uint32_t mask),
               const void* pc);
  /// cp.async: `from` bytes of `source`, then zeros up to `bytes`.
  void (*async_copy)(void* target, const void* source, uint32_t bytes, uint32_t from, const void* pc);
  void (*async_commit)(const void* pc);
  void (*async_wait)(uint32_t pending, const void* pc);
  /// Runs `apply` on memory, atomically; `order`: of AtomicOrder.
  void (*atomic)(void* p, uint32_t bytes, void (*apply)(void* p, void* operand), void* operand, uint32_t order,
                 const void* pc);
  /// A fence of the block (`of_block`) or of the GPU.
  void (*fence)(uint32_t of_block, const void* pc);
  void (*cluster_barrier)(uint32_t arrive, uint32_t wait, const void* pc);
  /// `counter`: the barrier's word of global memory.
  void (*grid_barrier)(uint32_t* counter, const void* pc);
  /// The same address in the shared memory of another block of the cluster.
  void* (*map_shared)(const void* p, uint32_t rank, const void* pc);
  /// The kernel says that `p` is of shared (else: of global) memory.
  void (*space)(const void* p, uint32_t shared, const void* pc);
  /// The writes of the previous kernel in the stream are visible from here on (programmatic dependent launch).
  void (*depend_wait)();
  void (*count)(Count what, uint32_t n);
  /// printf.
  int (*print)(const char* format, __builtin_va_list values);
  void (*fail)(const char* sentence, const void* pc);
  /// Code ran whose branches and loops may have left the lanes of a warp apart.
  void (*lanes_apart)(const void* pc);
  /// Index `index` of an array in registers or local memory, of type `type` ("'float [4]'"), is out of range.
  void (*array_bounds)(int64_t index, const char* type, const void* pc);
  /// An access of type `type` through a pointer lies outside the local variable that the pointer is of.
  void (*object_bounds)(const char* type, const void* pc);
  /// In the guarded form: an access to the running thread's stack is not of a living variable. `returned`: it lies
  /// below the frames of all functions that run.
  void (*local_bounds)(const void* p, uint32_t bytes, uint32_t flags, uint32_t returned, const void* pc);
};

/// The argument of flashinfer_emu_kernel.
struct Entry {
  const void* params;
};

}  // namespace flashinfer::emu
