// SPDX-License-Identifier: Apache-2.0
// Code shared by the GPU attention kernels: visibility, row addresses, and writing of outputs.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/attention/kernels/cuda/params.h"

namespace flashinfer::cu::attn {

/// One request, as used by the kernels.
struct Seq {
  int32_t index, tokens, keys, offset;  // offset: position of token 0
  int64_t q_first, kv_first;            // in tokens; kv_first in pages when paged
};
/// kAgain: a later call for the same request; no register keeps a comparison of an earlier one.
template <bool kAgain = false>
FI_GLOBAL_FN Seq sequence(const AttentionParams& p, int32_t b) {
  const auto* starts = p.qo_indptr;
  if constexpr (kAgain) starts = forget(starts);
  Seq s;
  s.index = b;
  s.q_first = starts ? p.qo_indptr[b] : b;
  s.tokens = starts ? static_cast<int32_t>(p.qo_indptr[b + 1] - s.q_first) : 1;
  s.keys = p.kv_len[b];
  s.offset = s.keys - s.tokens;
  s.kv_first = p.kv_indptr ? p.kv_indptr[b] : 0;
  return s;
}
/// What a block computes: a tile of the list, for one KV head (of the grid) and one part of V's columns. Here as the
/// grid says, once; in a persistent launch one after another (pair.cuh).
struct OfGrid {
  FI_GLOBAL_FN static uint32_t tile() { return block_x(); }
  FI_GLOBAL_FN static uint32_t head() { return block_y(); }
  FI_GLOBAL_FN static uint32_t heads(const AttentionParams&) { return blocks_y(); }
  FI_GLOBAL_FN static uint32_t part() { return block_z(); }
};
/// The tile that is this block's. Its address is computed anew by each call: a kernel that reads it again behind the
/// loop has no registers to keep it in.
template <class Work = OfGrid>
FI_GLOBAL_FN AttentionTile tile_of(const AttentionCudaParams& pp) {
  Pack<uint32_t, 1> at{{Work::head() * pp.tiles_a_head + Work::tile()}};
  forget(at);
  return pp.tiles[at[0]];
}
/// A tile for what is written: `partial` is that of its own range of keys.
FI_GLOBAL_FN AttentionTile to_write(AttentionTile t) {
  if (t.partial >= 0) t.partial += int64_t{t.chunk} * t.rows;
  return t;
}
/// Where the state of a partial row of this block's head is.
template <class Work = OfGrid>
FI_GLOBAL_FN int64_t state_at(const AttentionParams& p, int64_t partial_row) {
  return partial_row * Work::heads(p) + Work::head();
}
/// Offsets of a key's row in K and in V, without the head.
struct KeyOffsets {
  int64_t k, v;
};
/// In elements.
FI_GLOBAL_FN KeyOffsets key_offsets(const AttentionParams& p, const Seq& s, int32_t key) {
  if (!p.kv_indices) return {(s.kv_first + key) * p.k_stride_n, (s.kv_first + key) * p.v_stride_n};
  const uint32_t page = static_cast<uint32_t>(key) / static_cast<uint32_t>(p.page_size);
  const int64_t row = key - static_cast<int32_t>(page) * p.page_size;
  const int64_t id = p.kv_indices[s.kv_first + page], v_id = p.v_indices ? p.v_indices[s.kv_first + page] : id;
  return {id * p.k_stride_page + row * p.k_stride_n, v_id * p.v_stride_page + row * p.v_stride_n};
}

/// Whether token i of the request sees key j (both exist).
FI_GLOBAL_FN bool visible(const AttentionParams& p, const Seq& s, int32_t i, int32_t j) {
  const int32_t at = i + s.offset;
  if (p.window_left >= 0 && j < at - p.window_left) return false;
  if (p.mask) {
    const int64_t bit = static_cast<int64_t>(i) * s.keys + j;
    return p.mask[p.mask_indptr[s.index] + bit / 8] >> (bit % 8) & 1;
  }
  if (!p.causal) return true;
  if (j > at) return false;
  if (!p.prefix_len) return true;
  const int32_t prefix = static_cast<int32_t>(p.prefix_len[s.index]);
  if (at < prefix || j < prefix) return true;
  return j > at - static_cast<int32_t>(p.token_pos[s.index * p.token_pos_len + at - prefix]);
}
/// Keys [first, end) visible to some token of [i0, i1]; those in [all_first, all_end) are visible to all of them.
struct KeyRange {
  int32_t first, end, all_first, all_end;
};
FI_GLOBAL_FN KeyRange key_range(const AttentionParams& p, const Seq& s, int32_t i0, int32_t i1) {
  KeyRange r{0, s.keys, 0, s.keys};
  if (p.causal && !p.mask) {
    r.end = i1 + s.offset + 1 < s.keys ? i1 + s.offset + 1 : s.keys;
    r.all_end = i0 + s.offset + 1;
  }
  if (p.window_left >= 0) {
    r.first = i0 + s.offset - p.window_left > 0 ? i0 + s.offset - p.window_left : 0;
    r.all_first = i1 + s.offset - p.window_left;
  }
  if (p.mask || p.prefix_len) r.all_end = 0;
  return r;
}

/// tanh from one exponential: to 2^-21 absolutely. tanh.approx's 2^-11 times a cap of 50 would be 0.02 of a logit.
FI_GLOBAL_FN float tanh_exp(float x) { return 1.0f - 2.0f * rcp_fast(1.0f + exp2_fast(2.0f * kLog2e * x)); }

/// A dot product as the base-2 exponent of its weight.
FI_GLOBAL_FN float exponent(const AttentionParams& p, float dot, float slope, int32_t i, int32_t j) {
  float x = dot * p.scale;
  if (p.alibi_slopes) x += slope * static_cast<float>(j - i);
  if (p.soft_cap > 0.0f)
    x = p.soft_cap * tanh_exp(x * rcp_fast(p.soft_cap));  // a division is a call, and costs registers around it
  return x * kLog2e;
}

/// Connects a custom variant (kernels/cuda/variant.cuh) to the kernels. NoHooks compiles to nothing.
struct NoHooks {
  using Params = AttentionParams;
  static constexpr bool kCustom = false, kSoftmax = true, kQuery = false, kKey = false;
  FI_GLOBAL_FN NoHooks(const AttentionParams&, int32_t) {}
};

/// The factor that turns a row's sum over values, with maximum m (exponents of 2) and denominator l, into its output;
/// and the LSE.
struct Finish {
  float scale, lse;
};
FI_GLOBAL_FN Finish finish(const AttentionParams& p, uint32_t head, uint32_t kv_head, float m, float l) {
  float lse = m == -kInf ? -kInf : m + log2f(l), scale = m == -kInf ? 0.0f : rcp_fast(l);
  if (p.sinks) {  // one more key without a value
    const float sink = p.sinks[head] * kLog2e, top = Max{}(lse, sink);
    const float sum = exp2_fast(lse - top) + exp2_fast(sink - top);
    scale *= exp2_fast(lse - top) * rcp_fast(sum);
    lse = top + log2f(sum);
  }
  if (p.v_head_scales) scale *= p.v_head_scales[kv_head];
  return {scale * p.v_scale, lse * p.lse_factor};
}

/// An output, rounded; e4m3 saturates.
template <class O>
FI_GLOBAL_FN O output_of(float x) {
  if constexpr (kSame<O, e4m3_t>) {
    O y;
    y.bits = static_cast<uint8_t>(narrow_pair<O>(x, 0.0f));
    return y;
  } else {
    return from_f32<O>(x);
  }
}

/// Writes columns [4 quad, 4 quad + 4) of a packed row of a request's output from `sum` over values with maximum m
/// (exponents of 2) and denominator l.
template <class O, class H>
FI_GLOBAL_FN void write_output(const AttentionParams& p, const H& hooks, const Seq& seq, uint32_t kv_head,
                               uint32_t group, uint32_t packed, uint32_t quad, float m, float l, float (&sum)[4]) {
  const uint32_t head = kv_head * group + packed % group, i = packed / group;
  const int64_t token = seq.q_first + i;
  float lse;
  if constexpr (H::kCustom) {
    lse = hooks.output(sum, i, head, m, l);
  } else {
    const Finish f = finish(p, head, kv_head, m, l);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] *= f.scale;
    lse = f.lse;
  }
  Pack<O, 4> y;
#pragma unroll
  for (int e = 0; e < 4; ++e) y[e] = output_of<O>(sum[e]);
  store(static_cast<O*>(p.o) + token * p.o_stride_n + head * p.o_stride_h + quad * 4, y);
  if (p.lse && quad == 0) p.lse[token * p.lse_stride_n + head * p.lse_stride_h] = lse;
}

/// The same for row `row` of a tile: writes the output, or stores the state of a split row.
template <class O, int kDim, class Work = OfGrid, class H>
FI_GLOBAL_FN void write_quad(const AttentionParams& p, const H& hooks, const Seq& seq, const AttentionTile& t,
                             uint32_t kv_head, uint32_t group, uint32_t row, uint32_t quad, float m, float l,
                             float (&sum)[4]) {
  if (t.partial < 0)
    return write_output<O>(p, hooks, seq, kv_head, group, static_cast<uint32_t>(t.row_begin) + row, quad, m, l, sum);
  const int64_t at = state_at<Work>(p, t.partial + row);
  const float scale = H::kCustom ? 1.0f : m == -kInf ? 0.0f : rcp_fast(l);
  store(p.partial_o + at * kDim + quad * 4,
        Pack<float, 4>{{sum[0] * scale, sum[1] * scale, sum[2] * scale, sum[3] * scale}});
  if (quad != 0) return;
  if constexpr (H::kCustom)
    p.softmax_state[2 * at] = m, p.softmax_state[2 * at + 1] = l;
  else
    p.softmax_state[at] = m == -kInf ? -kInf : m + log2f(l);
}

}  // namespace flashinfer::cu::attn
