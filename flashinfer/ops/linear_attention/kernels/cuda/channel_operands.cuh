// SPDX-License-Identifier: Apache-2.0
// What 16 tokens are to the products of a block of channels (channel_block.cuh, which has the equations): D o k, D o q
// and E o k in shared memory, and the sums of A and P. All factors are products of decays, as the recurrence forms
// them: no logarithm, and no exponential that could overflow, at any strength of the gates; 0 clears a channel. A pair
// (i, j) is a product of two operands: for the highest bit h in which i and j differ, i is in the second half of a
// group of 2 h tokens and j in its first half, so that a_ij is the product of the decays from the half's begin to i and
// of those behind j within the first half: four products (h = 1, 2, 4, 8), of which each pair is in one. The four warps
// share the channels.
#pragma once
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/ops/linear_attention/kernels/common/channel_block_layout.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/chunk_state.cuh"

namespace flashinfer::cu::linear {

/// acc += a b, both in two parts, without the product of the low ones.
FI_GLOBAL_FN void mma_parts(Acc& acc, const Split& a, Frag2 b_high, Frag2 b_low) {
  acc = mma<bf16_t>(a.low, b_high, acc);
  acc = mma<bf16_t>(a.high, b_low, acc);
  acc = mma<bf16_t>(a.high, b_high, acc);
}
/// The same for two neighbouring tiles.
FI_GLOBAL_FN void mma_parts(Acc& left, Acc& right, const Split& a, Frag4 b_high, Frag4 b_low) {
  mma_pair(left, right, a.low, b_high);
  mma_pair(left, right, a.high, b_low);
  mma_pair(left, right, a.high, b_high);
}

/// Rows 0 .. 16 of `from`, `stride` elements apart, to shared memory by 128 threads; zeros from row `count` on. A row
/// has kPieces pieces of 16 bytes, of which a thread copies the same one of each of its rows.
template <int kPieces, class T>
FI_GLOBAL_FN void copy_rows(const T* from, int64_t stride, int32_t count, void* to) {
  constexpr uint32_t kRowsAtOnce = 128 / kPieces;
  const uint32_t piece = thread_x() % kPieces;
#pragma unroll
  for (uint32_t i = 0; i < kChannelCudaTokens; i += kRowsAtOnce) {
    const uint32_t row = i + thread_x() / kPieces;
    copy_async<16>(static_cast<uint8_t*>(to) + piece_index<kPieces>(row, piece) * 16,
                   from + row * stride + piece * (16 / sizeof(T)), static_cast<int32_t>(row) < count ? 16 : 0);
  }
}

/// K of kWidth; kKeys: beta is of key channels.
template <int kWidth, bool kKeys>
struct ChannelOperands {
  static constexpr ChannelBlockLayout C{kWidth};
  static constexpr int kTokens = kChannelCudaTokens, kPieces = kWidth / 8;
  static constexpr int kSteps = kWidth / 64;  // products of 16 channels that a warp takes of A and P
  uint32_t origin;                            // unknown_zero() of a step

  FI_GLOBAL_FN static float* floats(int at) { return reinterpret_cast<float*>(shared()) + at; }
  FI_GLOBAL_FN static bf16_t* operand(int i) { return reinterpret_cast<bf16_t*>(floats(i * C.operand())); }
  FI_GLOBAL_FN static bf16_t* square(int i) {
    return reinterpret_cast<bf16_t*>(floats(C.pairs_at())) + i * kTokens * kTokens;
  }
  FI_GLOBAL_FN static bf16_t* values() { return reinterpret_cast<bf16_t*>(floats(C.values_at())); }
  FI_GLOBAL_FN static uint32_t square_at(uint32_t i, uint32_t j) { return piece_index<2>(i, j / 8) * 8 + j % 8; }
  FI_GLOBAL_FN static float* beta() { return floats(C.tokens_at()); }
  FI_GLOBAL_FN static float* key_scale() { return beta() + kTokens; }
  FI_GLOBAL_FN static float* query_scale() { return key_scale() + kTokens; }
  /// First of the lane's four channels in a product of 16: those of this warp's quarter, of tokens lane / 4 and + 8.
  FI_GLOBAL_FN static uint32_t channel(int step) {
    return warp() * (kWidth / 4) + 16 * static_cast<uint32_t>(step) + lane() % 4 * 4;
  }

  /// What is 0 throughout: P above the diagonal.
  FI_GLOBAL_FN static void init() {
    if (thread_x() >= 16) return;
    store_shared(square(2 + thread_x() / 8) + square_at(thread_x() % 8, 8), Pack<bf16_t, 8>{});
  }

  // ---- the tokens' operands ----
  /// x o f and y o f of four channels as A, x in rows 0 .. 7 and y in rows 8 .. 15.
  FI_GLOBAL_FN static Split scaled(const float* x, const float* y, const float (&f)[4]) {
    Split s;
    s.set(0, x[0] * f[0], x[1] * f[1]), s.set(1, y[0] * f[0], y[1] * f[1]);
    s.set(2, x[2] * f[2], x[3] * f[3]), s.set(3, y[2] * f[2], y[3] * f[3]);
    return s;
  }
  FI_GLOBAL_FN static void put_operand(int i, uint32_t token, uint32_t at, const float* x, const float (&f)[4]) {
    Pack<uint32_t, 2> high, low;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float a = x[2 * e] * f[2 * e], b = x[2 * e + 1] * f[2 * e + 1];
      high[e] = pack2<bf16_t>(a, b), low[e] = pack2<bf16_t>(low_part(a), low_part(b));
    }
    const uint32_t to = piece_index<kPieces>(token, at / 8) * 8 + at % 8;
    store_shared(reinterpret_cast<uint32_t*>(operand(2 * i) + to), high);
    store_shared(reinterpret_cast<uint32_t*>(operand(2 * i + 1) + to), low);
  }
  /// Writes D o k, D o q, E o k, the decays' product, and this warp's part of A, P and the sums of squares.
  /// tokens_of(step, k, q, decay) gives four channels of the lane's two tokens; with kKeys it also gives beta o k,
  /// which takes the place of k in D o k and on the left in A.
  template <class F>
  FI_GLOBAL_FN void prepare(F tokens_of) const {
    Acc near[3][2], far{};  // of h = 1, 2, 4 in each half of the tokens; of h = 8: rows of k, rows of q
    float sums[2][3] = {};
#pragma unroll
    for (auto& each : near) clear(each);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      float k[2][4], q[2][4], prefix[2][4], suffix[2][4], all[2][4], gated[2][4];
      if constexpr (kKeys)
        tokens_of(step, k, q, prefix, gated);
      else
        tokens_of(step, k, q, prefix);
      const auto& keys = *(kKeys ? &gated : &k);
#pragma unroll
      for (int b = 0; b < 2; ++b)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          all[b][e] = prefix[b][e], suffix[b][e] = 1.0f;
          sums[b][0] += k[b][e] * k[b][e], sums[b][1] += q[b][e] * q[b][e], sums[b][2] += q[b][e] * k[b][e];
        }
#pragma unroll
      for (int level = 0; level < 3; ++level) {
        const bool second = (lane_row() >> level & 1) != 0;
#pragma unroll
        for (int b = 0; b < 2; ++b) {
          float f[4], x[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) f[e] = second ? prefix[b][e] : suffix[b][e], x[e] = second ? keys[b][e] : k[b][e];
          const Split left = scaled(x, q[b], f);
          mma_parts(near[level][b], left, Frag2{{left.high.r[0], left.high.r[2]}},
                    Frag2{{left.low.r[0], left.low.r[2]}});
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float other = shuffle_xor(all[b][e], 4u << level);
            if (second)
              prefix[b][e] *= other;
            else
              suffix[b][e] *= other;
            all[b][e] *= other;
          }
        }
      }
      const Split left = scaled(keys[1], q[1], prefix[1]), right = scaled(k[0], k[0], suffix[0]);
      mma_parts(far, left, Frag2{{right.high.r[0], right.high.r[2]}}, Frag2{{right.low.r[0], right.low.r[2]}});
#pragma unroll
      for (int e = 0; e < 4; ++e) prefix[1][e] *= all[0][e], suffix[0][e] *= all[1][e];
      const uint32_t at = channel(step);
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const uint32_t token = lane_row() + 8 * static_cast<uint32_t>(b) + origin;
        put_operand(0, token, at, keys[b], prefix[b]);
        put_operand(1, token, at, q[b], prefix[b]);
        put_operand(2, token, at, k[b], suffix[b]);
      }
      if (lane_row() == 0)
        store_shared(floats(C.whole_at()) + at, Pack<float, 4>{{all[0][0] * all[1][0], all[0][1] * all[1][1],
                                                                all[0][2] * all[1][2], all[0][3] * all[1][3]}});
    }
    put_partial(near, far);
    put_sums(sums);
  }
  /// Of each pair the product that it is in: below the diagonal of a half of the tokens, and between the halves.
  FI_GLOBAL_FN static void put_partial(const Acc (&near)[3][2], const Acc& far) {
    float* const to = floats(C.partial_at()) + (warp() * 3 * 32 + lane()) * 4;
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      Pack<float, 4> x;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const uint32_t i = lane_row(), j = lane_pair() + static_cast<uint32_t>(e) % 2, differ = i ^ j;
        x[e] = j >= i ? 0.0f : differ >= 4 ? near[2][b].r[e] : differ >= 2 ? near[1][b].r[e] : near[0][b].r[e];
      }
      store_shared(to + b * 32 * 4, x);
    }
    store_shared(to + 2 * 32 * 4, Pack<float, 4>{{far.r[0], far.r[1], far.r[2], far.r[3]}});
  }
  /// k . k, q . q and q . k of the lane's tokens.
  FI_GLOBAL_FN static void put_sums(const float (&x)[2][3]) {
#pragma unroll
    for (int b = 0; b < 2; ++b)
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        const float sum = warp_reduce<4>(x[b][i], Sum{});
        if (lane() % 4 == static_cast<uint32_t>(i))
          floats(C.sums_at())[(warp() * 3 + i) * kTokens + lane_row() + 8 * static_cast<uint32_t>(b)] = sum;
      }
  }
};

}  // namespace flashinfer::cu::linear
