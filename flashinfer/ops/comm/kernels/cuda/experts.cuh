// SPDX-License-Identifier: Apache-2.0
// What a rank with experts adds to an all-reduce, computed where it is shared. Each product and each sum is rounded to
// the element type, as kernels/cpu/moe_reduce.h does.
#pragma once
#include "flashinfer/ops/comm/kernels/cuda/all_reduce_row.cuh"

namespace flashinfer::cu {

template <AllReduceCudaConfig C>
struct SumOfExperts {
  using A = AllReduceOf<C>;
  using T = typename A::T;
  static constexpr int N = A::N;
  static constexpr bool kPermuted = C.addend == AllReduceAddend::kPermuted;
  const AllReduceCudaParams& p;
  int64_t t;  // the token

  /// The row of x that expert (or choice) e adds; negative: none. What the host cannot check is left out.
  FI_GLOBAL_FN int64_t row_of(int64_t place) const {
    if constexpr (!kPermuted) return place;
    const int64_t row = p.experts.index[place];
    return row < p.experts.x_rows ? row : -1;
  }
  FI_GLOBAL_FN static float rounded(float v) { return to_f32(from_f32<T>(v)); }
  FI_GLOBAL_FN void operator()(int64_t at, float (&v)[N]) const {
    const ExpertsCudaParams& e = p.experts;
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = 0.0f;
    for (int64_t k = 0; k < e.experts; ++k) {
      const int64_t place = kPermuted ? t * e.experts + k : k * p.row.last + t, row = row_of(place);
      if (row < 0) continue;
      RawPiece<T, N> x;
      load_raw<A::kAligned, N, Hint::kOnce>(static_cast<const T*>(e.x) + row * p.row.d, at, p.row.d, x);
      float scale = 1.0f;
      if constexpr (C.scaled != 0) scale = to_f32(static_cast<const scalar_of_t<C.scale>*>(e.scales)[place]);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = rounded(add_rn(v[i], C.scaled ? rounded(mul_rn(x[i], scale)) : x[i]));
    }
    if constexpr (C.adds != 0) {
      RawPiece<T, N> x;
      load_raw<A::kAligned, N, Hint::kOnce>(static_cast<const T*>(e.add) + t * p.row.d, at, p.row.d, x);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = add_rn(v[i], x[i]);
    }
  }
};

}  // namespace flashinfer::cu
