// SPDX-License-Identifier: Apache-2.0
// Attention over caches of 8-bit floats on tensor cores (and Q beside NVFP4, nvfp4.cuh). K and V lie in shared memory
// as in the cache; a warp reads them by ldmatrix, which takes two neighbouring bytes for one element of 16 bits, and
// converts them to f16 in registers, exactly. Which element of a product a byte becomes follows from what one ldmatrix
// gives a lane:
//
//   K: bytes 4t .. 4t + 3 of a row, where the operand of 16 elements along D takes (2t, 2t + 1) and (2t + 8, 2t + 9).
//      The sum does not depend on the order along D, so Q is stored in the same one (store_queries).
//   V, transposed: columns 2g and 2g + 1 of keys 2t and 2t + 1, which are an element each of two products: one of the
//      even and one of the odd columns of 16. The outputs are put in order when they are written (Columns).
//
// Q becomes f16 too. A bf16 row is divided by a power of two before, so that its largest element is below 2^15: what
// f16 rounds away is 2^-39 of that element.
#pragma once
#include "flashinfer/kernels/cuda/halves.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/ops/attention/kernels/cuda/tiles.cuh"

namespace flashinfer::cu::attn {

/// The power of two that a row with largest magnitude `top` is divided by, and its inverse.
struct PowerOfTwo {
  float factor, inverse;
};
FI_GLOBAL_FN PowerOfTwo row_power(float top) {
  const uint32_t exponent = __builtin_bit_cast(uint32_t, top) >> 23;  // of infinity and NaN: 255
  const uint32_t of = exponent > 15 ? exponent : 15;
  return {__builtin_bit_cast(float, (of - 14) << 23), __builtin_bit_cast(float, (268 - of) << 23)};
}

/// The factor by which converted e2m1 elements are too small (nvfp4.cuh).
inline constexpr float kSmallE2m1 = 16384.0f;

/// Lanes that share a row of Q, 8 elements each.
template <AttentionCudaConfig C>
inline constexpr uint32_t kQueryLanes = C.used_dim(C.dqk) > 128  ? 32
                                        : C.used_dim(C.dqk) > 64 ? 16
                                        : C.used_dim(C.dqk) > 32 ? 8
                                        : C.used_dim(C.dqk) > 16 ? 4
                                                                 : 2;

/// Of a row: the factor of its logits - scales of heads, and the power of two of a bf16 row - and ALiBi's slope. In
/// shared memory, because at D 256 there is no register left for them.
struct RowFactors {
  float factor, slope;
};

/// Writes the words of 8 elements of Q where ldmatrix finds them (FP8: two pieces of each 16 elements; NVFP4: four of
/// each 32). Lanes begin with different pieces: with the same one all of them would write to few banks.
template <AttentionCudaConfig C, uint32_t kLanes>
FI_GLOBAL_FN void store_words(uint32_t* to, uint32_t row, uint32_t piece, const uint32_t (&y)[4]) {
  constexpr uint32_t kPitch = pitch_of(C.dqk * 2);
  if constexpr (C.fp4()) {
    const uint32_t turn = piece / 8 * (kLanes == 16 ? 2 : 1) % 4;
    const bool odd = turn & 1, high = turn & 2;
    const uint32_t pairs[4] = {odd ? y[1] : y[0], odd ? y[0] : y[1], odd ? y[3] : y[2], odd ? y[2] : y[3]};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
      store_shared(to + swizzle<kPitch>(row, piece / 4 * 4 + (i ^ turn)) * 4 + piece % 4,
                   Pack<uint32_t, 1>{{high ? pairs[i ^ 2] : pairs[i]}});
  } else {
    uint32_t* words = to + piece % 2 * 2;
    const uint32_t turn = piece / 8 % 2, first = piece / 2 * 2 + turn;
    store_shared(words + swizzle<kPitch>(row, first) * 4, Pack<uint32_t, 2>{{turn ? y[1] : y[0], turn ? y[3] : y[2]}});
    store_shared(words + swizzle<kPitch>(row, first ^ 1) * 4,
                 Pack<uint32_t, 2>{{turn ? y[0] : y[1], turn ? y[2] : y[3]}});
  }
}

/// Writes Q of a tile, rows that are not there as zeros, and what belongs to each row.
template <AttentionCudaConfig C>
FI_GLOBAL_FN void store_queries(f16_t* to, RowFactors* of_rows, const AttentionCudaParams& pp, const AttentionParams& p,
                                const Seq& s, const AttentionTile& t, uint32_t kv_head, uint32_t group) {
  using Q = scalar_of_t<C.q>;
  constexpr uint32_t kLanes = kQueryLanes<C>;
  const uint32_t piece = thread_x() % kLanes;
  for (uint32_t row = thread_x() / kLanes; row < C.rows(); row += C.threads / kLanes) {
    const bool there = row < static_cast<uint32_t>(t.rows);
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + (there ? row : 0),
                   head = kv_head * group + packed % group;
    const Q* q = static_cast<const Q*>(p.q) + (s.q_first + packed / group) * p.q_stride_n + head * p.q_stride_h;
    const Pack<Q, 8> from = load_if<8>(there && piece < C.dqk / 8, q + piece * 8);
    float x[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = to_f32(from[e]);
    PowerOfTwo power{1.0f, 1.0f};
    if constexpr (C.q == DType::kBF16) {
      float top = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) top = max_magnitude(x[e], top);
      power = row_power(warp_reduce<kLanes>(top, [](float a, float b) { return max_magnitude(a, b); }));
    }
    if (piece < C.used_dim(C.dqk) / 8) {
      if constexpr (C.e4m3 != 0) {
        Q* at = reinterpret_cast<Q*>(to) + swizzle<pitch_of(C.q_row_bytes())>(row, piece / 2) * 16 + piece % 2 * 8;
        store_shared(at, from);
      } else {
        uint32_t y[4];  // in the order along D that K's conversion gives
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int first = C.fp4() ? i : 2 * i, second = C.fp4() ? i + 4 : 2 * i + 1;
          y[i] = pack2<f16_t>(x[first] * power.inverse, x[second] * power.inverse);
        }
        store_words<C, kLanes>(reinterpret_cast<uint32_t*>(to), row, piece, y);
      }
    }
    if (piece == 0) {
      float factor = power.factor * (C.fp4() ? kSmallE2m1 : 1.0f);
      if (pp.q_head_scales) factor *= pp.q_head_scales[head];
      if (pp.k_head_scales) factor *= pp.k_head_scales[kv_head];
      store_shared(&of_rows[row].factor, Pack<float, 2>{{factor, p.alibi_slopes ? p.alibi_slopes[head] : 0.0f}});
    }
  }
}

/// S = Q K for the warp's rows and kBlocks * 8 keys. `k`: a row of 32 keys a lane.
template <AttentionCudaConfig C, int kBlocks, class QRow, class KRow>
FI_GLOBAL_FN void narrow_logits(Acc (&s)[C.row_tiles()][kBlocks], const HeldQueries<C>& held, const QRow& q,
                                const KRow& k) {
  static_assert(kBlocks % 4 == 0);
  const auto multiply = [&](const Frag4(&a)[C.row_tiles()], uint32_t step) {
#pragma unroll
    for (uint32_t n = 0; n < kBlocks; n += 4) {
      const Frag4 b = load_matrix4(k.piece(n * 8, step));
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const TwoPairs x = four_halves<scalar_of_t<C.kv>, false>(b.r[e]);
#pragma unroll
        for (uint32_t r = 0; r < C.row_tiles(); ++r) s[r][n + e] = mma<f16_t>(a[r], {{x.r[0], x.r[1]}}, s[r][n + e]);
      }
    }
  };
  clear(s);
#pragma unroll
  for (uint32_t step = 0; step < C.held; ++step) multiply(held.a[step], step);
#pragma unroll 4
  for (uint32_t step = C.held; step < steps_of(C.dqk); ++step) {
    Frag4 a[C.row_tiles()];
#pragma unroll
    for (uint32_t r = 0; r < C.row_tiles(); ++r) a[r] = load_matrix4(q.at(16 * r, step / 4 * 8, step % 4));
    multiply(a, step);
  }
}

/// The same of e4m3 queries: bytes of Q and K lie as the product of e4m3 takes them, nothing is converted.
template <AttentionCudaConfig C, int kBlocks, class QRow, class KRow>
FI_GLOBAL_FN void e4m3_logits(Acc (&s)[C.row_tiles()][kBlocks], const HeldQueries<C>& held, const QRow& q,
                              const KRow& k) {
  static_assert(kBlocks % 4 == 0 && C.dqk % 32 == 0 && C.q == DType::kF8E4M3 && C.kv == DType::kF8E4M3);
  const auto multiply = [&](const Frag4(&a)[C.row_tiles()], uint32_t step) {
#pragma unroll
    for (uint32_t n = 0; n < kBlocks; n += 4) {
      const Frag4 x = load_matrix4(k.piece(n * 8, 2 * step)), y = load_matrix4(k.piece(n * 8, 2 * step + 1));
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e)
#pragma unroll
        for (uint32_t r = 0; r < C.row_tiles(); ++r) s[r][n + e] = mma<e4m3_t>(a[r], {{x.r[e], y.r[e]}}, s[r][n + e]);
    }
  };
  clear(s);
#pragma unroll
  for (uint32_t step = 0; step < C.held; ++step) multiply(held.a[step], step);
#pragma unroll 2
  for (uint32_t step = C.held; step < C.dqk / 32; ++step) {
    Frag4 a[C.row_tiles()];
#pragma unroll
    for (uint32_t r = 0; r < C.row_tiles(); ++r) a[r] = load_matrix4(q.at(16 * r, step / 4 * 8, step % 4));
    multiply(a, step);
  }
}

/// O = O * old(tile, half) + P V, P in e4m3; columns as in add_narrow_values. Of V, transposed, bytes are sorted by
/// column: keys 2t, 2t + 1, 2t + 8 and 2t + 9 of 16, which is P's order. GPUs cut sums of such products to 14 bits, so
/// they are f32 from tile to tile.
template <AttentionCudaConfig C, int kBlocks, class Old, class Row>
FI_GLOBAL_FN void add_e4m3_values(Outputs<C>& o, const Weights<C, kBlocks>& w, const Old& old, const Row& v) {
  static_assert(kBlocks % 4 == 0);
#pragma unroll
  for (uint32_t step = 0; step < steps_of(C.dvo); ++step) {
    Acc part[2][C.row_tiles()];
    clear(part);
#pragma unroll
    for (uint32_t n = 0; n < kBlocks; n += 4) {
      const Frag4 b = load_matrix4_transposed(v.piece(n * 8, step));
#pragma unroll
      for (uint32_t odd = 0; odd < 2; ++odd) {
        const uint32_t which = odd ? 0x7531 : 0x6420;
        const Frag2 column{{pick_bytes(b.r[0], b.r[1], which), pick_bytes(b.r[2], b.r[3], which)}};
#pragma unroll
        for (uint32_t r = 0; r < C.row_tiles(); ++r) part[odd][r] = mma<e4m3_t>(w.a[r][n / 4], column, part[odd][r]);
      }
    }
#pragma unroll
    for (uint32_t odd = 0; odd < 2; ++odd)
#pragma unroll
      for (uint32_t r = 0; r < C.row_tiles(); ++r)
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
          float& x = o[r][2 * step + odd].r[i];
          x = fmaf(x, old(r, i / 2), part[odd][r].r[i]);
        }
  }
}

/// O += P V: even columns of 16 in o[2 i], odd ones in o[2 i + 1].
template <AttentionCudaConfig C, int kBlocks, class Row>
FI_GLOBAL_FN void add_narrow_values(Outputs<C>& o, const Weights<C, kBlocks>& w, const Row& v) {
#pragma unroll
  for (uint32_t n = 0; n < kBlocks; n += 4) {
#pragma unroll
    for (uint32_t step = 0; step < steps_of(C.dvo); ++step) {
      const Frag4 b = load_matrix4_transposed(v.piece(n * 8, step));
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const TwoPairs x = four_halves<scalar_of_t<C.kv>, true>(b.r[2 * i]),
                       y = four_halves<scalar_of_t<C.kv>, true>(b.r[2 * i + 1]);
#pragma unroll
        for (uint32_t r = 0; r < C.row_tiles(); ++r) {
          o[r][2 * step] = mma<f16_t>(w.a[r][n / 2 + i], {{x.r[0], y.r[0]}}, o[r][2 * step]);
          o[r][2 * step + 1] = mma<f16_t>(w.a[r][n / 2 + i], {{x.r[1], y.r[1]}}, o[r][2 * step + 1]);
        }
      }
      if (C.dvo > 128 || C.min_blocks() > 2 || C.wide != 0) sync_warp();  // what ptxas would convert ahead spills
    }
  }
}

}  // namespace flashinfer::cu::attn
