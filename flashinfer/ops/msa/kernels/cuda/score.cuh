// SPDX-License-Identifier: Apache-2.0
// The largest logit of each block of 128 keys. A block of threads has such a block, of one KV head, and up to 16 (query
// row, head) pairs that share it (CUDA cores: 4); each of four warps has 32 of the keys. Rows of several requests,
// whose keys are others, are taken one request after another. With reduce_heads all heads of the rows follow each
// other.
#pragma once
#include "flashinfer/ops/msa/kernels/cuda/rows.cuh"

namespace flashinfer::cu {
namespace msa {

/// NaN is the largest.
struct Largest {
  FI_GLOBAL_FN float operator()(float a, float b) const { return a != a || a > b ? a : b; }
};

/// The largest product of each pair and of this warp's keys, largest[warp][pair]. n: keys that pair m sees; those of
/// other requests than the rows' are 0 for all.
template <MsaCudaConfig C>
FI_GLOBAL_FN void score_mma(const char* queries, const Keys<typename Types<C>::K>& keys, const int* seen,
                            float* largest) {
  using M = typename Multiplied<Types<C>::kBf16>::M;
  char* const own = shared() + kMsaQueryBytes + warp() * kMsaWarpBytes;
  const int first = static_cast<int>(warp()) * 32;
  sync_warp();  // the keys before are read
  fill_rows<M>(own, keys, first);
  commit_async();
  Frag4 q[8];
  load_queries(queries, q);
  wait_async<0>();
  sync_warp();
  Acc x[4];
  multiply_keys<M>(q, own, x);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t m = lane() / 4 + half * 8;
    const int n = (seen[m] < keys.n ? seen[m] : keys.n) - first;
    float top = -kInf;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i)
        if (8 * j + 2 * static_cast<int>(lane() % 4) + i % 2 < n) top = Largest{}(x[j].r[i], top);
    top = warp_reduce<4>(top, Largest{});
    if (lane() % 4 == 0) largest[warp() * 16 + m] = Largest{}(top, largest[warp() * 16 + m]);
  }
}
template <MsaCudaConfig C>
FI_GLOBAL_FN void score_cores(const MsaCudaParams& p, const Queries& queries, const Keys<typename Types<C>::K>& keys,
                              const int* seen, float* largest) {
  using Q = typename Types<C>::Q;
  constexpr int R = 4;
  float q[R][4] = {};
#pragma unroll
  for (uint32_t m = 0; m < R; ++m) {
    if (m >= queries.pairs) continue;
    const int64_t r = queries.first_row + m / queries.heads, h = queries.first_head + m % queries.heads;
    load_four(static_cast<const Q*>(p.q.data) + r * p.q.token + h * p.q.head, p.q.scale, r * p.heads + h, lane(), q[m]);
  }
  const int first = static_cast<int>(warp()) * 32, n = keys.n - first < 32 ? keys.n - first : 32;
#pragma unroll 1
  for (int j = 0; j < n; ++j) {
    const int key = first + j;
    float y[4];
    load_four(keys.data + key * keys.step, keys.scale, keys.scale_row + key * keys.scale_step, lane(), y);
#pragma unroll
    for (int m = 0; m < R; ++m) {
      float dot = q[m][0] * y[0] + q[m][1] * y[1] + q[m][2] * y[2] + q[m][3] * y[3];
      dot = warp_reduce(dot, Sum{});
      if (lane() == 0 && key < seen[m]) {
        float* const to = largest + warp() * 16 + m;
        *to = Largest{}(dot, *to);
      }
    }
  }
}

/// The largest logits of the pairs, from those of the warps; all threads.
FI_GLOBAL_FN float of_pair(const float* largest, uint32_t m) {
  float top = -kInf;
  for (uint32_t w = 0; w < 4; ++w) top = Largest{}(largest[w * 16 + m], top);
  return top;
}
/// The scores of pairs in block `blk`: largest[4][16], once all warps have been there.
template <MsaCudaConfig C>
FI_GLOBAL_FN void score_pairs(const MsaCudaParams& p, const Queries& q, int64_t blk, int64_t g, float* largest,
                              int* seen) {
  using K = typename Types<C>::K;
  sync_threads();  // what follows is not read any more
  if (thread_x() < 64) largest[thread_x()] = -kInf;
  if constexpr (!C.cores) fill_queries<typename Multiplied<Types<C>::kBf16>::M, typename Types<C>::Q>(shared(), p, q);
  const uint32_t rows = q.pairs / q.heads;
  for (uint32_t i = 0; i < rows;) {
    const Row row = row_of(p, q.first_row + i);
    uint32_t end = i + 1;  // of the request's rows
    int most = seen_of(row.visible, blk);
    for (; end < rows; ++end) {
      const Row other = row_of(p, q.first_row + end);
      if (other.request != row.request || other.first != row.first) break;
      const int n = seen_of(other.visible, blk);
      most = n > most ? n : most;
    }
    sync_threads();
    if (thread_x() < 16) {
      const uint32_t of = thread_x() / q.heads;
      seen[thread_x()] = of >= i && of < end ? seen_of(row_of(p, q.first_row + of).visible, blk) : 0;
    }
    sync_threads();
    if (most > 0) {
      const Keys<K> keys = keys_of<K>(p, p.k, row, blk, g, most);
      if constexpr (C.cores)
        score_cores<C>(p, q, keys, seen, largest);
      else
        score_mma<C>(shared(), keys, seen, largest);
    }
    i = end;
  }
  sync_threads();
}
}  // namespace msa

template <MsaCudaConfig C>
FI_GLOBAL_FN void msa_scores(const MsaCudaParams& p) {
  depend_wait();
  const int64_t group = p.heads / p.kv_heads, blk = block_y();
  const MsaShape shape = msa_shape(group, C.cores != 0, false);
  const int64_t first_row = block_x() * shape.rows, rows = p.n - first_row < shape.rows ? p.n - first_row : shape.rows;
  float* const largest = reinterpret_cast<float*>(shared() + (C.cores ? 0 : kMsaQueryBytes + 4 * kMsaWarpBytes));
  int* const seen = reinterpret_cast<int*>(largest + 64);
  const uint32_t m = thread_x();
  float of_row = -kInf;  // reduce_heads: of row m
  for (int64_t part = p.reduce_heads ? 0 : block_z(), i = 0;
       part < p.kv_heads * shape.head_tiles && (p.reduce_heads || i == 0); ++part, ++i) {
    const int64_t g = part / shape.head_tiles, h = part % shape.head_tiles * shape.heads;
    const uint32_t heads = static_cast<uint32_t>(group - h < shape.heads ? group - h : shape.heads);
    const msa::Queries q{first_row, g * group + h, heads, static_cast<uint32_t>(rows) * heads};
    msa::score_pairs<C>(p, q, blk, g, largest, seen);
    if (p.reduce_heads) {
      if (m < rows)
        for (uint32_t e = 0; e < heads; ++e) of_row = msa::Largest{}(msa::of_pair(largest, m * heads + e), of_row);
    } else if (m < q.pairs) {
      p.score[(q.first_head + m % heads) * p.score_head + blk * p.score_tile + (first_row + m / heads) * p.score_row] =
          msa::of_pair(largest, m) * p.factor;
    }
  }
  if (p.reduce_heads && m < rows) p.score[blk * p.score_tile + (first_row + m) * p.score_row] = of_row * p.factor;
  depend_launch();
}

}  // namespace flashinfer::cu
