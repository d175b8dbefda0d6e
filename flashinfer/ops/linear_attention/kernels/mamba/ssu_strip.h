// SPDX-License-Identifier: Apache-2.0
// One token of 16 rows of a Mamba state with one decay, from the pool to the pool, in two passes as delta_strip.h does.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_strip.h"

namespace flashinfer::cpu {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
inline constexpr bool kSsuStrips = true;

template <class S>
class SsuStrip {
  using Block = linear::StripBlock<S>;
  static constexpr int64_t L = Vec::kLanes;
  static constexpr bool kDots = __is_same(S, bf16_t), kF32 = __is_same(S, float);

 public:
  static constexpr int64_t kRows = 16;
  /// b and c [n] of a token, n a multiple of 64; c16 is c in bf16, for products by the dot instruction, or null.
  /// memory: 2 n floats.
  SsuStrip(const float* b, const float* c, const bf16_t* c16, float decay, int64_t n, float* memory)
      : b(linear::strip_order<Block::kSorted>(b, n, memory)),
        c(linear::strip_order<Block::kSorted>(c, n, memory + n)),
        c16(c16),
        decay(decay),
        bc(kF32 ? 0.0f : linear::dot_row(b, c, n)),
        n(n) {}
  /// to = decay from + dx b; y = to . c, before to is rounded. dx, y: of 16 rows. f32 rows are multiplied when they are
  /// new, in the order of sum_row: the bytes of a call with several tokens. Others are when they are read.
  void run(const S* from, int64_t from_row, S* to, int64_t to_row, const float* dx, float* y) const {
    if constexpr (kF32) {
      update(from, from_row, to, to_row, dx);
      store(y, products(to, to_row));
    } else {
      const Vec old = products(from, from_row);
      store(y, fma(old, splat(decay), load(dx) * splat(bc)));
      update(from, from_row, to, to_row, dx);
    }
  }

 private:
  FI_VEC_INLINE void update(const S* from, int64_t from_row, S* to, int64_t to_row, const float* dx) const {
    if (n == 128)
      linear::update_strip<128, false>(from, from_row, to, to_row, n, dx, b, &decay);
    else
      linear::update_strip<0, false>(from, from_row, to, to_row, n, dx, b, &decay);
  }
  /// The sums over four rows at a time: `add(row, i, acc)` adds elements [i, i + 64) of a row to its vectors.
  template <int Sums, class Add>
  FI_VEC_INLINE Vec sums(const S* rows, int64_t stride, Add add) const {
    const int64_t length = n;
    Vec of_group[4];
    for (int m = 0; m < 4; ++m) {
      const S* row[4];
      Vec acc[4][Sums], sum[4];
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        row[g] = rows + (4 * g + m) * stride;
#pragma GCC unroll 4
        for (int j = 0; j < Sums; ++j) acc[g][j] = zero();
      }
      for (int64_t i = 0; i < length; i += 64)
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) add(row[g], i, acc[g]);
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        if constexpr (Sums == 4)
          sum[g] = (acc[g][0] + acc[g][2]) + (acc[g][1] + acc[g][3]);
        else
          sum[g] = acc[g][0] + acc[g][1];
      }
      of_group[m] = linear::quarters4(sum);
    }
    return linear::sums16(of_group);
  }
  FI_VEC_INLINE Vec products(const S* rows, int64_t stride) const {
    if constexpr (kDots)
      if (c16) return dots(rows, stride);
    const float* const with = c;
    return sums<4>(rows, stride, [with](const S* row, int64_t i, Vec* acc) {
#pragma GCC unroll 2
      for (int half = 0; half < 4; half += 2, i += 2 * L) {
        Block x;
        x.read(row + i);
        acc[half] = fma(x.a, load(with + i), acc[half]), acc[half + 1] = fma(x.b, load(with + i + L), acc[half + 1]);
      }
    });
  }
  FI_VEC_INLINE Vec dots(const bf16_t* rows, int64_t stride) const {
    const bf16_t* const with = c16;
    return sums<2>(rows, stride, [with](const bf16_t* row, int64_t i, Vec* acc) {
      acc[0] = dot_pairs(acc[0], load_pairs(row + i), load_pairs(with + i));
      acc[1] = dot_pairs(acc[1], load_pairs(row + i + 2 * L), load_pairs(with + i + 2 * L));
    });
  }

  const float *b, *c;
  const bf16_t* c16;
  float decay, bc;
  int64_t n;
};
#else
inline constexpr bool kSsuStrips = false;
template <class S>
class SsuStrip;
#endif

}  // namespace flashinfer::cpu
