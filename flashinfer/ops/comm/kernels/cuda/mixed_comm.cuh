// SPDX-License-Identifier: Apache-2.0
// Mixed collectives: every rank shares its input once; each adds what it wants of all inputs in f32, in the order that
// the host lists, and rounds once. Slots and phases as in all_reduce.cuh.
#pragma once
#include "flashinfer/kernels/cuda/exact.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"
#include "flashinfer/ops/comm/kernels/mixed_comm_params.h"

namespace flashinfer::cu {

template <MixedCommCudaConfig C>
struct MixedComm {
  using T = scalar_of_t<C.dtype>;
  static constexpr int N = kPiece<T>;
  static constexpr bool kAligned = C.aligned != 0;
  const MixedCommCudaParams& p;
  int64_t slot;

  /// Element `first` of block `b` of rank r's input, in its slot.
  FI_GLOBAL_FN T* shared_by(int r, int b) const {
    char* const memory = static_cast<char*>(const_cast<void*>(p.source[r]));
    return reinterpret_cast<T*>(memory + kAllReduceFlagBytes + slot * p.slot) + b * (p.last - p.first);
  }
  FI_GLOBAL_FN const T* input_of(int r) const {
    if (C.peers != 0 && r != p.meet.rank) return shared_by(r, p.own);
    const void* const input = C.peers != 0 ? p.in : p.source[r];
    return static_cast<const T*>(input) + p.own * p.block + p.first;
  }
  /// f(at) for the pieces of a block that belong to this thread: the same on all ranks.
  template <class F>
  FI_GLOBAL_FN void each_piece(F f) const {
    const int64_t step = int64_t{blocks_x()} * C.threads * N;
    for (int64_t at = (int64_t{block_x()} * C.threads + thread_x()) * N; at < p.last - p.first; at += step) f(at);
  }
  FI_GLOBAL_FN void store_raw(T* to, int64_t at, const RawPiece<T, N>& x) const {
    if constexpr (kAligned) {
      store(to + at, x.part[0]);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (at + i < p.last - p.first) to[at + i] = x.part[0][i];
    }
  }
  FI_GLOBAL_FN void share() const {
    for (int b = 0; b < p.blocks; ++b) {
      const T* const from = static_cast<const T*>(p.in) + b * p.block + p.first;
      T* const to = shared_by(p.meet.rank, b);
      each_piece([&](int64_t at) {
        RawPiece<T, N> x;
        load_raw<kAligned, N, Hint::kOnce>(from, at, p.last - p.first, x);
        store_raw(to, at, x);
      });
    }
  }
  FI_GLOBAL_FN void finish(bool ok) const {
    const int64_t n = p.last - p.first;
    for (int s = 0; s < p.sums; ++s) {
      T* const to = static_cast<T*>(p.out) + s * p.block + p.first;
      const unsigned char* const ranks = p.rank + s * p.addends;
      each_piece([&](int64_t at) {
        if (p.copies != 0 && ok) {
          RawPiece<T, N> x;
          load_raw<kAligned, N, Hint::kOnce>(input_of(ranks[0]), at, n, x);
          return store_raw(to, at, x);
        }
        float v[N];
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = ok ? 0.0f : __builtin_bit_cast(float, 0x7fc00000u);
        const int addends = ok ? p.addends : 0;
#pragma unroll 4
        for (int r = 0; r < addends; ++r) {
          RawPiece<T, N> x;
          load_raw<kAligned, N, Hint::kOnce>(input_of(ranks[r]), at, n, x);
#pragma unroll
          for (int i = 0; i < N; ++i) v[i] = add_rn(v[i], x[i]);
        }
        store_piece<kAligned, N>(to, at, n, v);
      });
    }
  }
};

template <MixedCommCudaConfig C>
FI_GLOBAL_FN void mixed_comm(const MixedCommCudaParams& p) {
  if constexpr (C.peers != 0) {
    Meeting<kAllReduceRanks> ranks(p.source, p.meet);
    const MixedComm<C> mixed{p, ranks.slot()};
    if (ranks.ok()) mixed.share();
    ranks.meet(1);
    mixed.finish(ranks.ok());
    ranks.end(C.threads);
  } else {
    MixedComm<C>{p, 0}.finish(true);
  }
}

}  // namespace flashinfer::cu
