// SPDX-License-Identifier: Apache-2.0
// Decode of the gated delta rule, states [K][V] in f32: a warp takes 16 columns, lane l four of them (16 bytes) of the
// rows l / 4, l / 4 + 8, ..., so that sums over K are in a lane and then over 8 lanes.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/gdn_decode.cuh"

namespace flashinfer::cu {
namespace linear {

/// Every lane's rows of k and q.
template <int kRows>
struct ColumnToken {
  float k[kRows], q[kRows], alpha, beta, kq;
};
FI_GLOBAL_FN float over_rows(float x) {
#pragma unroll
  for (uint32_t d = 16; d >= 4; d /= 2) x += shuffle_xor(x, d);
  return x;
}
template <int kRows>
FI_GLOBAL_FN float over_rows(const float (&x)[kRows], const float (&y)[kRows]) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kRows; ++j) sum += x[j] * y[j];
  return over_rows(sum);
}
template <int kRows>
FI_GLOBAL_FN void column_token(const GdnDecodeParams& p, const GdnPair& pair, int64_t t, ColumnToken<kRows>& token) {
  const auto row = static_cast<int32_t>(lane() / 4);
  const int64_t k_at = pair.at(p.k, t, pair.query), q_at = pair.at(p.q, t, pair.query);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    const int32_t i = row + 8 * j;
    token.k[j] = i < p.width ? element(p.input, p.k.data, k_at + i) : 0.0f;
    token.q[j] = i < p.width ? element(p.input, p.q.data, q_at + i) : 0.0f;
  }
  float log, k_scale = 1.0f, q_scale = p.scale;
  pair.gates(p, t, &log, &token.beta);
  token.alpha = ::expf(log);
  if (p.l2norm) {
    k_scale = 1.0f / ::sqrtf(over_rows(token.k, token.k) + 1e-6f);
    q_scale *= 1.0f / ::sqrtf(over_rows(token.q, token.q) + 1e-6f);
  }
#pragma unroll
  for (int j = 0; j < kRows; ++j) token.k[j] *= k_scale, token.q[j] *= q_scale;
  token.kq = over_rows(token.k, token.q);
}

}  // namespace linear

/// C.width: rows of K that a lane takes times 8 (64, 128), or 0: K up to 256 and elements one by one.
template <DeltaCudaConfig C>
FI_GLOBAL_FN void gdn_columns(const GdnDecodeParams& p) {
  using namespace linear;
  constexpr int kRows = (C.width ? C.width : kDeltaCudaMaxWidth) / 8, kWide = C.width != 0, kColumns = 4;
  depend_wait();
  const auto tiles = static_cast<uint32_t>(ceil_div(p.rows, C.threads / 2));
  const GdnPair pair(p, block_x() / tiles);
  const auto first = static_cast<int32_t>((block_x() % tiles * (C.threads / 32) + warp()) * 16 + lane() % 4 * kColumns);
  const auto row = static_cast<int32_t>(lane() / 4), n = static_cast<int32_t>(p.rows);
  const auto place = [&](const GdnStates& s, int64_t slot) {
    return static_cast<float*>(s.data) + slot * s.slot + pair.h * s.head + first;
  };
  float s[kRows][kColumns];
  const float* from = place(p.in, pair.from);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    const int32_t i = row + 8 * j;
    if constexpr (kWide) {
      const Pack<float, 4> x = load_if<4, Hint::kOnce>(first < n, from + i * p.in.row);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) s[j][c] = x[c];
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) s[j][c] = i < p.width && first + c < n ? from[i * p.in.row + c] : 0.0f;
    }
  }
#pragma unroll 1
  for (int64_t t = 0; t < p.tokens; ++t) {
    ColumnToken<kRows> token;
    column_token(p, pair, t, token);
    const int64_t v_at = pair.at(p.v, t, pair.h) + first, o_at = pair.result_at(p, t) + first;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      float key = 0.0f, o = 0.0f;
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        s[j][c] *= token.alpha;
        key += s[j][c] * token.k[j], o += s[j][c] * token.q[j];
      }
      key = over_rows(key), o = over_rows(o);
      const float v = first + c < n ? element(p.input, p.v.data, v_at + c) : 0.0f;
      const float d = token.beta * (v - key);
#pragma unroll
      for (int j = 0; j < kRows; ++j) s[j][c] += d * token.k[j];
      if (row == c && first + c < n) put_element(p.out_type, p.result, o_at + c, o + d * token.kq);
    }
  }
  float* to = place(p.out, pair.to);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    const int32_t i = row + 8 * j;
    if constexpr (kWide) {
      if (first < n) store(to + i * p.out.row, Pack<float, 4>{{s[j][0], s[j][1], s[j][2], s[j][3]}});
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (i < p.width && first + c < n) to[i * p.out.row + c] = s[j][c];
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
