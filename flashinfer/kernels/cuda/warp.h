// SPDX-License-Identifier: Apache-2.0
// Shuffles, votes and reductions. Sums have one fixed order: lanes 16, 8, 4, 2, 1 apart, then warps in ascending order.
#pragma once
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

#if !defined(__CUDACC__)
namespace emulated {
struct Shuffle {
  uint32_t value, source, result;
};
/// Every lane of the mask gets the value of its source lane.
__attribute__((noinline, no_sanitize("thread", "address"))) inline void shuffle_all(void* const* operands,
                                                                                    uint32_t mask) {
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    Shuffle* s = static_cast<Shuffle*>(operands[i]);
    s->result = static_cast<const Shuffle*>(operands[s->source])->value;
  }
}
__attribute__((noinline, no_sanitize("thread", "address"))) inline uint32_t shuffle(uint32_t mask, uint32_t value,
                                                                                    uint32_t source, const void* pc) {
  if (source > 31 || !(mask >> source & 1)) emu::api->fail("a shuffle from a lane that is not in its mask", pc);
  Shuffle s{value, source, 0};
  emu::api->count(emu::Count::kShuffle, 1);
  emu::api->meet(emu::Meeting::kShuffle, mask, &s, shuffle_all, pc);
  return s.result;
}
struct Vote {
  uint32_t predicate, result;
};
__attribute__((noinline, no_sanitize("thread", "address"))) inline void vote_all(void* const* operands, uint32_t mask) {
  uint32_t ballot = 0;
  for (uint32_t i = 0; i < 32; ++i)
    if (mask >> i & 1) ballot |= static_cast<const Vote*>(operands[i])->predicate << i;
  for (uint32_t i = 0; i < 32; ++i)
    if (mask >> i & 1) static_cast<Vote*>(operands[i])->result = ballot;
}
}  // namespace emulated
#endif

/// The value of lane `source` (below 32 and in the mask). All lanes of the mask must participate.
FI_CU uint32_t shuffle_bits(uint32_t value, uint32_t source, uint32_t mask = kFullMask) {
#if defined(__CUDACC__)
  return __shfl_sync(mask, value, static_cast<int>(source));
#else
  return emulated::shuffle(mask, value, source, FI_EMU_PC);
#endif
}
/// The value of lane ^ `distance`: a butterfly step.
FI_CU uint32_t shuffle_xor_bits(uint32_t value, uint32_t distance, uint32_t mask = kFullMask) {
#if defined(__CUDACC__)
  return __shfl_xor_sync(mask, value, static_cast<int>(distance));
#else
  return emulated::shuffle(mask, value, (emu::api->now->linear & 31u) ^ distance, FI_EMU_PC);
#endif
}
/// One bit for each lane of the mask.
FI_CU uint32_t ballot(bool predicate, uint32_t mask = kFullMask) {
#if defined(__CUDACC__)
  return __ballot_sync(mask, predicate);
#else
  emulated::Vote v{predicate, 0};
  emu::api->count(emu::Count::kVote, 1);
  emu::api->meet(emu::Meeting::kVote, mask, &v, emulated::vote_all, FI_EMU_PC);
  return v.result;
#endif
}

FI_GLOBAL_FN int32_t count_bits(uint32_t x) {
#if defined(__CUDACC__)
  return __popc(x);
#else
  return __builtin_popcount(x);
#endif
}

FI_GLOBAL_FN float shuffle(float x, uint32_t source) {
  return __builtin_bit_cast(float, shuffle_bits(__builtin_bit_cast(uint32_t, x), source));
}
FI_GLOBAL_FN int64_t shuffle(int64_t x, uint32_t source) {
  const uint64_t u = static_cast<uint64_t>(x);
  const uint32_t low = shuffle_bits(static_cast<uint32_t>(u), source),
                 high = shuffle_bits(static_cast<uint32_t>(u >> 32), source);
  return static_cast<int64_t>(uint64_t{high} << 32 | low);
}
/// An address that lane `source` has.
template <class T>
FI_GLOBAL_FN T* shuffle_address(T* p, uint32_t source) {
  return reinterpret_cast<T*>(shuffle(reinterpret_cast<int64_t>(p), source));
}
FI_GLOBAL_FN float shuffle_xor(float x, uint32_t distance) {
  return __builtin_bit_cast(float, shuffle_xor_bits(__builtin_bit_cast(uint32_t, x), distance));
}
FI_GLOBAL_FN int32_t shuffle_xor(int32_t x, uint32_t distance) {
  return static_cast<int32_t>(shuffle_xor_bits(static_cast<uint32_t>(x), distance));
}
FI_GLOBAL_FN double shuffle_xor(double x, uint32_t distance) {
  const uint64_t u = __builtin_bit_cast(uint64_t, x);
  const uint64_t low = shuffle_xor_bits(static_cast<uint32_t>(u), distance);
  const uint64_t high = shuffle_xor_bits(static_cast<uint32_t>(u >> 32), distance);
  return __builtin_bit_cast(double, high << 32 | low);
}

struct Sum {
  template <class T>
  FI_GLOBAL_FN T operator()(T a, T b) const {
    return a + b;
  }
  template <class T>
  FI_GLOBAL_FN T start() const {
    return T(0);
  }
};
/// NaN is ignored, as by the GPU's max.
struct Max {
  FI_GLOBAL_FN float operator()(float a, float b) const { return a != a ? b : a < b ? b : a; }
  template <class T>
  FI_GLOBAL_FN T start() const {
    return -kInf;
  }
};
/// The same as the GPU's one instruction, which may return either zero of -0 and +0.
struct Top : Max {
#if defined(__CUDACC__)
  FI_GLOBAL_FN float operator()(float a, float b) const { return fmaxf(a, b); }
#endif
};

/// Reduces groups of `kWidth` (1, 2, 4, ... 32) neighbouring lanes; every lane gets the same result, bit for bit.
template <uint32_t kWidth = 32, class T, class F>
FI_GLOBAL_FN T warp_reduce(T x, F f) {
#pragma unroll
  for (uint32_t d = kWidth / 2; d > 0; d /= 2) x = f(x, shuffle_xor(x, d));
  return x;
}

/// Reduces over the block's `kThreads` threads, which must all participate and all get the result. `scratch`: kThreads
/// / 32 elements of shared memory, free again after the call's second barrier, so that calls may follow each other.
template <uint32_t kThreads, class T, class F>
FI_GLOBAL_FN T block_reduce(T x, F f, T* scratch) {
  x = warp_reduce(x, f);
  if constexpr (kThreads > 32) {
    if (lane() == 0) scratch[warp()] = x;
    sync_threads();
    x = scratch[0];
#pragma unroll
    for (uint32_t w = 1; w < kThreads / 32; ++w) x = f(x, scratch[w]);
    sync_threads();
  }
  return x;
}

}  // namespace flashinfer::cu
