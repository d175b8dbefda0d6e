// SPDX-License-Identifier: Apache-2.0
// Latent attention without tensor cores: f32, caches of another type than the queries, any dims, GPUs before sm_80. A
// tile of keys is converted to f32 in shared memory; a warp has four rows, whose queries and outputs are spread over
// its lanes, and one key a lane for the softmax.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/ops/attention/kernels/cuda/merge.cuh"
#include "flashinfer/ops/mla/kernels/cuda_params.h"

namespace flashinfer::cu {
namespace latent {

/// The elements of a lane: every 32nd.
template <MlaCoresConfig C>
struct Cores {
  static constexpr int kWidth = C.ckv + C.kpe, kHas = ceil_div(kWidth, 32), kHasO = ceil_div(int{C.ckv}, 32);
  static constexpr int kWarps = C.threads / 32, kRows = C.rows / kWarps;
  static_assert(C.keys <= 32 && C.keys % kWarps == 0);
};

/// Element d of a packed row.
FI_GLOBAL_FN float packed_element(const char* row, uint32_t d) {
  using namespace flashinfer::mla;
  if (d >= kPackedLatent)
    return to_f32(reinterpret_cast<const bf16_t*>(row + kPackedLatent + kPackedScales)[d - kPackedLatent]);
  const float scale = reinterpret_cast<const float*>(row + kPackedLatent)[d / kScaleGroup];
  return to_f32(from_f32<bf16_t>(to_f32(reinterpret_cast<const e4m3_t*>(row)[d]) * scale));
}

/// One row of the tile, by one warp.
template <MlaCoresConfig C>
FI_GLOBAL_FN void load_key(float* to, const MlaCudaParams& pp, const attn::Seq& seq, int32_t key, bool there) {
  using X = Cores<C>;
  using K = scalar_of_t<C.kv>;
  const AttentionParams& p = pp.base.a;
  const uint32_t size = static_cast<uint32_t>(p.page_size), page = static_cast<uint32_t>(key) / size,
                 entry = static_cast<uint32_t>(key) % size;
  const int64_t id = there ? p.kv_indices[seq.kv_first + page] : 0;
  const K* const k = static_cast<const K*>(p.k) + id * p.k_stride_page + entry * p.k_stride_n;
  const K* const pe = static_cast<const K*>(p.v) + id * p.v_stride_page + entry * p.v_stride_n;
#pragma unroll
  for (int i = 0; i < X::kHas; ++i) {
    const uint32_t d = lane() + static_cast<uint32_t>(i) * 32;
    if (X::kWidth % 32 != 0 && d >= X::kWidth) continue;
    if constexpr (C.packed != 0) {
      to[d] = there ? packed_element(reinterpret_cast<const char*>(k), d) : 0.0f;
      continue;
    }
    float x = !there ? 0.0f : to_f32(d < C.ckv ? k[d] : pe[d - C.ckv]);
    if constexpr (C.grouped != 0) {
      constexpr int kGroup = flashinfer::mla::kScaleGroup, kGroups = ceil_div(int{C.ckv}, kGroup);
      if (there && d < C.ckv) x *= pp.ckv_scales[(id * size + entry) * kGroups + d / kGroup];
    }
    to[d] = x;
  }
}

/// A warp's rows.
template <MlaCoresConfig C>
struct CoreRows {
  using X = Cores<C>;
  float q[X::kRows][X::kHas] = {}, o[X::kRows][X::kHasO] = {}, m[X::kRows], l[X::kRows];  // l: this lane's share
  int32_t end[X::kRows];  // keys from here on are not visible
};

/// Queries in f32, times the sign of the scale, so that the greatest logit is the greatest product.
template <MlaCoresConfig C>
FI_GLOBAL_FN void load_rows(CoreRows<C>& w, const MlaCudaParams& pp, const attn::Seq& seq, const AttentionTile& t,
                            uint32_t first, float sign, int32_t end) {
  using X = Cores<C>;
  using Q = scalar_of_t<C.q>;
  const AttentionParams& p = pp.base.a;
  const uint32_t heads = static_cast<uint32_t>(p.num_qo_heads);
#pragma unroll
  for (uint32_t r = 0; r < X::kRows; ++r) {
    const bool there = first + r < static_cast<uint32_t>(t.rows);
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + (there ? first + r : 0), token = packed / heads,
                   head = packed % heads;
    const int32_t seen = static_cast<int32_t>(token) + seq.offset + 1;
    w.m[r] = -kInf, w.l[r] = 0.0f, w.end[r] = p.causal && seen < end ? seen : end;
    const Q* const q = static_cast<const Q*>(p.q) + (seq.q_first + token) * p.q_stride_n + head * p.q_stride_h;
    const Q* const pe =
        static_cast<const Q*>(pp.q_pe) + (seq.q_first + token) * pp.q_pe_stride_n + head * pp.q_pe_stride_h;
#pragma unroll
    for (int i = 0; i < X::kHas; ++i) {
      const uint32_t d = lane() + static_cast<uint32_t>(i) * 32;
      if (!there || (X::kWidth % 32 != 0 && d >= X::kWidth)) continue;
      w.q[r][i] = d < C.ckv ? sign * to_f32(q[d]) : sign * pp.kpe_ratio * to_f32(pe[d - C.ckv]);
    }
  }
}

/// One tile of keys, the first of which is `first`.
template <MlaCoresConfig C>
FI_GLOBAL_FN void add_keys(CoreRows<C>& w, const float* keys, int32_t first, float factor) {
  using X = Cores<C>;
  float s[X::kRows];  // of key `lane`
#pragma unroll
  for (int r = 0; r < X::kRows; ++r) s[r] = -kInf;
#pragma unroll 1
  for (uint32_t j = 0; j < static_cast<uint32_t>(C.keys); ++j) {
    float dot[X::kRows] = {};
#pragma unroll
    for (int i = 0; i < X::kHas; ++i) {
      const uint32_t d = lane() + static_cast<uint32_t>(i) * 32;
      if (X::kWidth % 32 != 0 && d >= X::kWidth) continue;
      const float x = keys[j * X::kWidth + d];
#pragma unroll
      for (int r = 0; r < X::kRows; ++r) dot[r] += w.q[r][i] * x;
    }
#pragma unroll
    for (int r = 0; r < X::kRows; ++r) {
      dot[r] = warp_reduce(dot[r], Sum{});
      if (lane() == j && first + static_cast<int32_t>(j) < w.end[r]) s[r] = dot[r];
    }
  }
  // Relative to the greatest product, which is exact where it matters: a product with the factor near 1e5 is off by
  // 0.004.
#pragma unroll
  for (int r = 0; r < X::kRows; ++r) {
    const float top = Max{}(warp_reduce(s[r], Max{}), w.m[r]);
    const float old = w.m[r] == -kInf ? 0.0f : exp2_fast((w.m[r] - top) * factor);
    s[r] = s[r] == -kInf ? 0.0f : exp2_fast((s[r] - top) * factor);
    w.l[r] = w.l[r] * old + s[r], w.m[r] = top;
#pragma unroll
    for (int i = 0; i < X::kHasO; ++i) w.o[r][i] *= old;
  }
#pragma unroll 1
  for (uint32_t j = 0; j < static_cast<uint32_t>(C.keys); ++j) {
    float weight[X::kRows];
#pragma unroll
    for (int r = 0; r < X::kRows; ++r) weight[r] = shuffle(s[r], j);
#pragma unroll
    for (int i = 0; i < X::kHasO; ++i) {
      const uint32_t d = lane() + static_cast<uint32_t>(i) * 32;
      if (C.ckv % 32 != 0 && d >= C.ckv) continue;
      const float x = keys[j * X::kWidth + d];
#pragma unroll
      for (int r = 0; r < X::kRows; ++r) w.o[r][i] += weight[r] * x;
    }
  }
}

/// Writes a row's output, or the state of a split row. m: exponents of 2.
template <MlaCoresConfig C>
FI_GLOBAL_FN void write_row(const float (&o)[Cores<C>::kHasO], const AttentionParams& p, const attn::Seq& seq,
                            const AttentionTile& t, uint32_t row, float m, float l) {
  using O = scalar_of_t<C.o>;
  const uint32_t packed = static_cast<uint32_t>(t.row_begin) + row, heads = static_cast<uint32_t>(p.num_qo_heads),
                 head = packed % heads;
  const int64_t token = seq.q_first + packed / heads;
  const attn::Finish f = attn::finish(p, head, 0, m, l);
  const int64_t at = attn::state_at(p, t.partial + row);
  const float scale = t.partial >= 0 ? (m == -kInf ? 0.0f : rcp_fast(l)) : f.scale;
#pragma unroll
  for (int i = 0; i < Cores<C>::kHasO; ++i) {
    const uint32_t d = lane() + static_cast<uint32_t>(i) * 32;
    if (C.ckv % 32 != 0 && d >= C.ckv) continue;
    if (t.partial >= 0)
      p.partial_o[at * C.ckv + d] = o[i] * scale;
    else
      static_cast<O*>(p.o)[token * p.o_stride_n + head * p.o_stride_h + d] = attn::output_of<O>(o[i] * scale);
  }
  if (lane() != 0) return;
  if (t.partial >= 0)
    p.softmax_state[at] = m == -kInf ? -kInf : m + log2f(l);
  else if (p.lse)
    p.lse[token * p.lse_stride_n + head * p.lse_stride_h] = f.lse;
}

template <MlaCoresConfig C>
FI_GLOBAL_FN void run_cores(const MlaCudaParams& pp) {
  using X = Cores<C>;
  const AttentionParams& p = pp.base.a;
  const AttentionTile t = attn::tile_of(pp.base);
  if (t.rows == 0) return;  // spare, in a captured grid
  const attn::Seq seq = attn::sequence(p, t.request);
  const int32_t heads = p.num_qo_heads;
  float* const keys = reinterpret_cast<float*>(shared());
  const attn::KeyRange range = attn::key_range(p, seq, t.row_begin / heads, (t.row_begin + t.rows - 1) / heads);
  const int32_t end = range.end < t.key_end ? range.end : t.key_end;
  const float scale = pp.scale ? p.scale * *pp.scale : p.scale, sign = scale < 0.0f ? -1.0f : 1.0f,
              factor = sign * scale * kLog2e;
  const uint32_t mine = warp() * X::kRows;
  CoreRows<C> w;
  load_rows(w, pp, seq, t, mine, sign, end);
  for (int32_t first = t.key_begin; first < end; first += C.keys) {
    sync_threads();
#pragma unroll 1
    for (uint32_t j = warp(); j < static_cast<uint32_t>(C.keys); j += X::kWarps) {
      const int32_t key = first + static_cast<int32_t>(j);
      load_key<C>(keys + j * X::kWidth, pp, seq, key, key < end);
    }
    sync_threads();
    if (mine < static_cast<uint32_t>(t.rows)) add_keys(w, keys, first, factor);
  }
  const AttentionTile same = attn::to_write(t);
#pragma unroll
  for (uint32_t r = 0; r < X::kRows; ++r) {
    const float l = warp_reduce(w.l[r], Sum{}), m = w.m[r] == -kInf ? -kInf : w.m[r] * factor;
    if (mine + r < static_cast<uint32_t>(t.rows)) write_row<C>(w.o[r], p, seq, same, mine + r, m, l);
  }
  if constexpr (C.ckv % 4 == 0)  // else keys are not cut
    attn::merge_last<scalar_of_t<C.o>, C.ckv, C.threads, attn::NoHooks>(pp.base, p);
  depend_launch();
}
}  // namespace latent

template <MlaCoresConfig C>
FI_GLOBAL_FN void mla_cores(const MlaCudaParams& p) {
  depend_wait();
  latent::run_cores<C>(p);
}

}  // namespace flashinfer::cu
