// SPDX-License-Identifier: Apache-2.0
// Partial attention outputs of the ranks, added by the weights that their LSE give: in f32, in the order of the ranks,
// rounded once, as kernels/cpu/cp_reduce.h. Weights are computed in f64 and rounded to f32, so they are the CPU's but
// for ties within the error of this GPU's exponential.
//
// A launch's rows go through a slot, as in all_reduce.cuh: a block shares the slices of its rows for other ranks, meets
// their blocks with its index, which have the same rows, and reads.
#pragma once
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/comm/kernels/cp_reduce_params.h"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"

namespace flashinfer::cu {

template <CpReduceCudaConfig C>
struct CpReduce {
  using T = scalar_of_t<C.dtype>;
  static constexpr int N = kPiece<T>, kWarps = C.threads / 32;
  static constexpr bool kAligned = C.aligned != 0;
  const CpReduceCudaParams& p;

  /// Of a warp: what its ranks' powers are, then their weights.
  struct Weights {
    double power[kCpRanks];
    float weight[kCpRanks];
  };
  FI_GLOBAL_FN static Weights& weights() { return reinterpret_cast<Weights*>(shared() + kMeetSharedBytes)[warp()]; }
  /// What is for rank `q` in slot `slot` of rank `r`.
  FI_GLOBAL_FN T* slices(int r, int q, int64_t slot) const {
    char* const memory = static_cast<char*>(const_cast<void*>(p.source[r]));
    return reinterpret_cast<T*>(memory + kAllReduceFlagBytes + slot * p.slot) + q * p.rows * p.d;
  }
  FI_GLOBAL_FN float* lses(int r, int q, int64_t slot) const {
    return reinterpret_cast<float*>(slices(r, p.ranks, slot)) + q * p.rows;
  }
  FI_GLOBAL_FN const T* given(int64_t row, int q) const {
    return static_cast<const T*>(p.in) + (row * p.ranks + q) * p.d;
  }

  FI_GLOBAL_FN void share_row(int64_t row, int64_t slot) const {
    for (int q = 0; q < p.ranks; ++q) {
      if (q == p.meet.rank) continue;
      T* const to = slices(p.meet.rank, q, slot) + row * p.d;
      const T* const from = given(row, q);
      for (int64_t at = lane() * N; at < p.d; at += 32 * N) {
        RawPiece<T, N> x;
        load_raw<kAligned, N, Hint::kOnce>(from, at, p.d, x);
        store(to + at, x.part[0]);
      }
      if (lane() == 0) lses(p.meet.rank, q, slot)[row] = p.lse[row * p.ranks + q];
    }
  }
  /// lse(r): that of rank r. Lane l has ranks l and l + 32.
  template <class Lse>
  FI_GLOBAL_FN void weigh(Lse lse) const {
    Weights& w = weights();
    const int own[2] = {static_cast<int>(lane()), static_cast<int>(lane()) + 32};
    float x[2], most = -kInf;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      x[i] = own[i] < p.ranks ? lse(own[i]) : -kInf;
      if (!(x[i] < kInf)) x[i] = -kInf;  // NaN too
      most = most < x[i] ? x[i] : most;
    }
    most = warp_reduce(most, Max{});
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const double apart = static_cast<double>(x[i]) - static_cast<double>(most);
      if (own[i] < p.ranks) w.power[own[i]] = most == -kInf ? 0.0 : p.base2 ? exp2(apart) : exp(apart);
    }
    sync_warp();
    double sum = 0;
    for (int r = 0; r < p.ranks; ++r) sum += w.power[r];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (own[i] < p.ranks) w.weight[own[i]] = sum == 0 ? 0.0f : static_cast<float>(w.power[own[i]] / sum);
    sync_warp();
  }
  /// from(r): the row of rank r.
  template <class From>
  FI_GLOBAL_FN void add_row(int64_t row, From from, bool ok) const {
    const Weights& w = weights();
    T* const out = static_cast<T*>(p.out) + row * p.d;
    for (int64_t at = lane() * N; at < p.d; at += 32 * N) {
      float v[N] = {};
      if (ok) {
#pragma unroll 4
        for (int r = 0; r < p.ranks; ++r) {
          const float weight = w.weight[r];
          if (weight == 0.0f) continue;
          RawPiece<T, N> x;
          load_raw<kAligned, N, Hint::kOnce>(from(r), at, p.d, x);
#pragma unroll
          for (int i = 0; i < N; ++i) v[i] = fmaf(weight, x[i], v[i]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = __builtin_bit_cast(float, 0x7fc00000u);
      }
      store_piece<kAligned, N>(out, at, p.d, v);
    }
    sync_warp();  // the weights were read
  }
  template <class F>
  FI_GLOBAL_FN void each_row(F f) const {
    for (int64_t row = int64_t{block_x()} * kWarps + warp(); row < p.rows; row += int64_t{blocks_x()} * kWarps) f(row);
  }

  FI_GLOBAL_FN void through_peers() const {
    Meeting<kAllReduceRanks> ranks(p.source, p.meet);
    const int64_t slot = ranks.slot();
    const int rank = p.meet.rank;
    if (ranks.ok()) each_row([&](int64_t row) { share_row(row, slot); });
    ranks.meet(1);
    each_row([&](int64_t row) {
      if (ranks.ok()) weigh([&](int r) { return r == rank ? p.lse[row * p.ranks + r] : lses(r, rank, slot)[row]; });
      const auto from = [&](int r) { return r == rank ? given(row, r) : slices(r, rank, slot) + row * p.d; };
      add_row(row, from, ranks.ok());
    });
    ranks.end(C.threads);
  }
  FI_GLOBAL_FN void gathered() const {
    each_row([&](int64_t row) {
      weigh([&](int r) { return p.lse[row * p.ranks + r]; });
      add_row(row, [&](int r) { return given(row, r); }, true);
    });
  }
};

template <CpReduceCudaConfig C>
FI_GLOBAL_FN void cp_reduce(const CpReduceCudaParams& p) {
  if constexpr (C.peers != 0)
    CpReduce<C>{p}.through_peers();
  else
    CpReduce<C>{p}.gathered();
}

}  // namespace flashinfer::cu
