// SPDX-License-Identifier: Apache-2.0
// Attention over selected blocks of 128 keys: a block of threads has a query row and up to 16 heads that share a KV
// head (CUDA cores: 4). Each of four warps has 32 keys of every selected block, in shared memory of its own, and a
// state of its own: warps wait for each other at the end alone, where the states are added. A row's blocks are taken in
// the order of its list, so that its results do not depend on the other rows.
#pragma once
#include "flashinfer/ops/msa/kernels/cuda/rows.cuh"

namespace flashinfer::cu {
namespace msa {

/// The next block of the row's list from entry c on, that is one of the request's, new, and seen; its entry, or topk.
/// By a whole warp.
struct Selected {
  const int32_t* list;
  int64_t topk;
  Row row;
  FI_GLOBAL_FN int64_t next(int64_t c) const {
    for (; c < topk; ++c) {
      const int32_t blk = list[c];
      if (blk < 0 || blk >= row.blocks || seen_of(row.visible, blk) == 0) continue;
      uint32_t known = 0;
      for (int64_t first = 0; first < c && known == 0; first += 32) {
        const int64_t e = first + lane();
        known = ballot(e < c && list[e] == blk);
      }
      if (known == 0) break;
    }
    return c;
  }
};

/// Largest logit and sums of a row, in base 2, of the keys of a warp. warm: with logits times the temperature.
struct State {
  float top = -kInf, sum = 0.0f, warm = 0.0f;
};
/// The factor of what came before, once `top` is the largest.
FI_GLOBAL_FN float raise(State& s, float top, bool warm, float temperature) {
  const float now = Max{}(top, s.top), old = s.top == -kInf ? 0.0f : exp2_fast(s.top - now);
  if (warm) s.warm = s.top == -kInf ? 0.0f : s.warm * exp2_fast((s.top - now) * temperature);
  s.top = now, s.sum *= old;
  return old;
}

/// The states of four warps become results: rows of kMsaOutputPitch outputs, those of a warp `pitch` elements after
/// those of the one before; state[3][warp][16].
template <class O>
FI_GLOBAL_FN void write_rows(const MsaCudaParams& p, const float* outputs, uint32_t pitch, const float* state,
                             const Queries& q) {
  constexpr float kLn2 = 0.693147180559945f;
  sync_threads();
  for (uint32_t i = thread_x(); i < q.pairs * 32; i += kMsaThreads) {
    const uint32_t m = i / 32, quad = i % 32;
    float top = -kInf, sum = 0.0f, warm = 0.0f, x[4] = {};
    for (uint32_t w = 0; w < 4; ++w) top = Max{}(state[w * 16 + m], top);
    for (uint32_t w = 0; w < 4; ++w) {
      const float of_warp = state[w * 16 + m], factor = of_warp == -kInf ? 0.0f : exp2_fast(of_warp - top);
      sum += state[64 + w * 16 + m] * factor;
      if (p.lse_t && of_warp != -kInf) warm += state[128 + w * 16 + m] * exp2_fast((of_warp - top) * p.temperature);
      const Pack<float, 4> o = load_shared<4>(outputs + w * pitch + m * kMsaOutputPitch + quad * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e] += o[e] * factor;
    }
    const bool empty = top == -kInf && sum == 0.0f;
    const int64_t at = q.first_row * p.heads + q.first_head + m;
    const float scale = empty ? 0.0f : p.v_scale / sum;
    Pack<O, 4> y;
#pragma unroll
    for (int e = 0; e < 4; ++e) y[e] = from_f32<O>(x[e] * scale);
    store(static_cast<O*>(p.out) + at * kMsaDim + quad * 4, y);
    if (quad == 0 && p.lse) p.lse[at] = empty ? -kInf : top * kLn2 + logf(sum);
    if (quad == 0 && p.lse_t) p.lse_t[at] = empty ? -kInf : top * p.temperature * kLn2 + logf(warm);
  }
}

template <MsaCudaConfig C>
FI_GLOBAL_FN void attend_mma(const MsaCudaParams& p, const Selected& selected, int64_t g, const Queries& queries) {
  using K = typename Types<C>::K;
  using M = typename Multiplied<Types<C>::kBf16>::M;
  char* const own = shared() + kMsaQueryBytes + warp() * kMsaWarpBytes;
  char *const keys = own, *const values = own + kMsaWarpBytes / 2;
  float* const state = reinterpret_cast<float*>(shared() + kMsaQueryBytes + 4 * kMsaWarpBytes);
  const int first = static_cast<int>(warp()) * 32;
  const Row& row = selected.row;
  fill_queries<M, typename Types<C>::Q>(shared(), p, queries);
  Frag4 q[8];
  load_queries(shared(), q);
  int64_t c = selected.next(0);
  const auto fill = [&](char* to, const MsaTensor& t, int64_t entry) {
    if (entry < selected.topk) {
      const int32_t blk = selected.list[entry];
      fill_rows<M>(to, keys_of<K>(p, t, row, blk, g, seen_of(row.visible, blk)), first);
    }
    commit_async();
  };
  fill(keys, p.k, c);
  fill(values, p.v, c);
  Acc o[16] = {};
  State s[2];
  while (c < selected.topk) {
    const int32_t blk = selected.list[c];
    const int n = keys_of<K>(p, p.k, row, blk, g, seen_of(row.visible, blk)).n - first;  // of this warp's keys
    const int64_t after = selected.next(c + 1);
    wait_async<1>();
    sync_warp();
    Acc x[4];
    multiply_keys<M>(q, keys, x);
    sync_warp();
    fill(keys, p.k, after);
    float top[2] = {-kInf, -kInf};
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = 8 * j + 2 * static_cast<int>(lane() % 4) + i % 2;
        x[j].r[i] = key < n ? x[j].r[i] * p.scale_log2 : -kInf;
        top[i / 2] = Max{}(x[j].r[i], top[i / 2]);
      }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float old = raise(s[half], warp_reduce<4>(top[half], Max{}), p.lse_t != nullptr, p.temperature);
      const float shift = s[half].top == -kInf ? 0.0f : s[half].top;
#pragma unroll
      for (int j = 0; j < 16; ++j) o[j].r[2 * half] *= old, o[j].r[2 * half + 1] *= old;
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const float less = x[j].r[i] - shift;
          x[j].r[i] = exp2_fast(less);
          s[half].sum += x[j].r[i];
          if (p.lse_t && less != -kInf) s[half].warm += exp2_fast(less * p.temperature);
        }
    }
    wait_async<1>();
    sync_warp();
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const Frag4 weights{{pack2<M>(x[2 * k].r[0], x[2 * k].r[1]), pack2<M>(x[2 * k].r[2], x[2 * k].r[3]),
                           pack2<M>(x[2 * k + 1].r[0], x[2 * k + 1].r[1]),
                           pack2<M>(x[2 * k + 1].r[2], x[2 * k + 1].r[3])}};
#pragma unroll
      for (int j = 0; j < 16; j += 2) {
        const Frag4 v = load_matrix4_transposed(values + swizzle<16>(16 * k + lane() % 16, j + lane() / 16) * 16);
        o[j] = mma<M>(weights, {{v.r[0], v.r[1]}}, o[j]);
        o[j + 1] = mma<M>(weights, {{v.r[2], v.r[3]}}, o[j + 1]);
      }
    }
    sync_warp();
    fill(values, p.v, after);
    c = after;
  }
  wait_async<0>();
  sync_warp();
  float* const outputs = reinterpret_cast<float*>(own);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t m = lane() / 4 + half * 8, at = warp() * 16 + m;
    const float sum = warp_reduce<4>(s[half].sum, Sum{}), warm = warp_reduce<4>(s[half].warm, Sum{});
    if (lane() % 4 == 0) state[at] = s[half].top, state[64 + at] = sum, state[128 + at] = warm;
#pragma unroll
    for (int j = 0; j < 16; ++j)
      store_shared(outputs + m * kMsaOutputPitch + 8 * j + 2 * (lane() % 4),
                   Pack<float, 2>{{o[j].r[2 * half], o[j].r[2 * half + 1]}});
  }
}

/// One query row of a lane's four elements for each of 4 heads.
template <MsaCudaConfig C>
FI_GLOBAL_FN void attend_cores(const MsaCudaParams& p, const Selected& selected, int64_t g, const Queries& queries) {
  using Q = typename Types<C>::Q;
  using K = typename Types<C>::K;
  constexpr int R = 4;
  float* const outputs = reinterpret_cast<float*>(shared());
  float* const state = outputs + 4 * R * kMsaOutputPitch;
  const int first = static_cast<int>(warp()) * 32;
  const Row& row = selected.row;
  float q[R][4] = {}, o[R][4] = {};
  State s[R];
#pragma unroll
  for (uint32_t r = 0; r < R; ++r) {
    const int64_t h = queries.first_head + r;
    if (r < queries.pairs)
      load_four(static_cast<const Q*>(p.q.data) + queries.first_row * p.q.token + h * p.q.head, p.q.scale,
                queries.first_row * p.heads + h, lane(), q[r]);
  }
  for (int64_t c = selected.next(0); c < selected.topk; c = selected.next(c + 1)) {
    const int32_t blk = selected.list[c];
    const int seen = seen_of(row.visible, blk);
    const Keys<K> k = keys_of<K>(p, p.k, row, blk, g, seen), v = keys_of<K>(p, p.v, row, blk, g, seen);
    const int n = k.n - first < 32 ? k.n - first : 32;
    float x[R];
#pragma unroll
    for (int r = 0; r < R; ++r) x[r] = -kInf;
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
      float y[4];
      load_four(k.data + (first + j) * k.step, k.scale, k.scale_row + (first + j) * k.scale_step, lane(), y);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        float dot = q[r][0] * y[0] + q[r][1] * y[1] + q[r][2] * y[2] + q[r][3] * y[3];
        dot = warp_reduce(dot, Sum{});
        if (static_cast<int>(lane()) == j) x[r] = dot * p.scale_log2;
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float old = raise(s[r], warp_reduce(x[r], Max{}), p.lse_t != nullptr, p.temperature);
      const float less = x[r] - (s[r].top == -kInf ? 0.0f : s[r].top);
      x[r] = exp2_fast(less);
      s[r].sum += x[r];
      if (p.lse_t && less != -kInf) s[r].warm += exp2_fast(less * p.temperature);
#pragma unroll
      for (int e = 0; e < 4; ++e) o[r][e] *= old;
    }
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
      float y[4];
      load_four(v.data + (first + j) * v.step, v.scale, v.scale_row + (first + j) * v.scale_step, lane(), y);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const float weight = shuffle(x[r], static_cast<uint32_t>(j));
#pragma unroll
        for (int e = 0; e < 4; ++e) o[r][e] += weight * y[e];
      }
    }
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const uint32_t at = warp() * 16 + static_cast<uint32_t>(r);
    const float sum = warp_reduce(s[r].sum, Sum{}), warm = warp_reduce(s[r].warm, Sum{});
    if (lane() == 0) state[at] = s[r].top, state[64 + at] = sum, state[128 + at] = warm;
    store_shared(outputs + (warp() * R + static_cast<uint32_t>(r)) * kMsaOutputPitch + lane() * 4,
                 Pack<float, 4>{{o[r][0], o[r][1], o[r][2], o[r][3]}});
  }
}
}  // namespace msa

template <MsaCudaConfig C>
FI_GLOBAL_FN void msa_attention(const MsaCudaParams& p) {
  depend_wait();
  const int64_t r = block_x(), g = block_y(), group = p.heads / p.kv_heads;
  const MsaShape shape = msa_shape(group, C.cores != 0, true);
  const int64_t h = block_z() * shape.heads, left = group - h;
  const msa::Queries queries{r, g * group + h, static_cast<uint32_t>(shape.heads),
                             static_cast<uint32_t>(left < shape.heads ? left : shape.heads)};
  const msa::Selected selected{p.selected + (g * p.n + r) * p.topk, p.topk, msa::row_of(p, r)};
  using O = scalar_of_t<C.out>;
  if constexpr (C.cores) {
    msa::attend_cores<C>(p, selected, g, queries);
    float* const outputs = reinterpret_cast<float*>(shared());
    msa::write_rows<O>(p, outputs, 4 * kMsaOutputPitch, outputs + 16 * kMsaOutputPitch, queries);
  } else {
    msa::attend_mma<C>(p, selected, g, queries);
    msa::write_rows<O>(p, reinterpret_cast<float*>(shared() + kMsaQueryBytes), kMsaWarpBytes / 4,
                       reinterpret_cast<float*>(shared() + kMsaQueryBytes + 4 * kMsaWarpBytes), queries);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
