// SPDX-License-Identifier: Apache-2.0
// Rows whose keys are cut: the last of their blocks to finish adds the partial results, in ascending order of keys, so
// that no bit depends on which one it is. A launch of its own for that would wait for the slowest block of the whole
// batch, and then for its own start.
#pragma once
#include "flashinfer/kernels/cuda/atomic.h"
#include "flashinfer/ops/attention/kernels/cuda/rows.cuh"

namespace flashinfer::cu::attn {

/// For the whole block. Whether it is the last of its tile's chunks, of `blocks` blocks each, to come here; then it
/// sees the partial results of all of them, and the counter is 0 again for the next launch. Takes the first word of
/// shared memory.
template <class Work>
FI_GLOBAL_FN bool comes_last(const AttentionCudaParams& pp, const AttentionTile& t, uint32_t blocks) {
  uint32_t* const last = reinterpret_cast<uint32_t*>(shared());
  sync_threads();  // partial results of all threads are written, and shared memory is read
  if (thread_x() == 0) {
    uint32_t* const counter = pp.counters + state_at<Work>(pp.a, t.cut);
    const bool all = atomic_add(counter, 1u) + 1 == static_cast<uint32_t>(t.chunks) * blocks;
    if (all) *counter = 0;
    store_shared(last, Pack<uint32_t, 1>{{all ? 1u : 0u}});
  }
  sync_threads();
  return load_shared<1>(last)[0] != 0;
}

/// Behind the rows of this block's tile. A thread adds four columns of a row, with the loads of two chunks in flight.
template <class O, int kDim, int kThreads, class H, class Work = OfGrid>
FI_GLOBAL_FN void merge_last(const AttentionCudaParams& pp, const typename H::Params& p, uint32_t blocks = 1) {
  const AttentionTile t = tile_of<Work>(pp);  // again, rather than kept in registers through the loop over keys
  if (t.partial < 0 || !comes_last<Work>(pp, t, blocks)) return;
  const Seq seq = sequence(p, t.request);
  const H hooks(p, t.request);
  const uint32_t kv_head = Work::head(), group = pp.group;
  constexpr uint32_t kQuads = kDim / 4;
  constexpr int32_t kFloats = H::kCustom ? 2 : 1, kTurn = 2;
  const int64_t step = int64_t{t.rows} * Work::heads(p);  // from a chunk to the next
  for (uint32_t i = thread_x(); i < static_cast<uint32_t>(t.rows) * kQuads; i += kThreads) {
    const uint32_t row = i / kQuads, quad = i % kQuads;
    const float* const states = p.softmax_state + state_at<Work>(p, t.partial + row) * kFloats;
    const float* const values = p.partial_o + state_at<Work>(p, t.partial + row) * kDim + quad * 4;
    const auto top = [&](int32_t c) { return load<1>(states + c * step * kFloats)[0]; };
    const auto each_turn = [&](const auto& turn) {
#pragma unroll 1
      for (int32_t c = 0; c < t.chunks; c += kTurn) turn(c);
    };
    const auto within = [&](int32_t c) { return c < t.chunks ? c : t.chunks - 1; };
    float m = -kInf, l = 0.0f, sum[4] = {};
    each_turn([&](int32_t first) {
      float x[kTurn];
#pragma unroll
      for (int32_t j = 0; j < kTurn; ++j) x[j] = top(within(first + j));
#pragma unroll
      for (int32_t j = 0; j < kTurn; ++j) m = Max{}(x[j], m);
    });
    if (m != -kInf)
      each_turn([&](int32_t first) {
        float weight[kTurn], own[kTurn];
        Pack<float, 4> x[kTurn];
#pragma unroll
        for (int32_t j = 0; j < kTurn; ++j) {
          const int32_t c = within(first + j);
          weight[j] = top(c);
          own[j] = H::kCustom ? load<1>(states + c * step * kFloats + 1)[0] : 1.0f;
          x[j] = load<4>(values + c * step * kDim);
        }
#pragma unroll
        for (int32_t j = 0; j < kTurn; ++j) {
          if (first + j >= t.chunks) break;
          const float w = exp2_fast(weight[j] - m);
          l += H::kCustom ? w * own[j] : w;
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[e] += w * x[j][e];
        }
      });
    write_output<O>(p, hooks, seq, kv_head, group, static_cast<uint32_t>(t.row_begin) + row, quad, m, l, sum);
  }
}
/// The same as a call, for kernels without a register left for it. Its launch parameters are generic loads.
template <class O, int kDim, int kThreads, class H, class Work>
FI_CALLED_FN void call_merge_last(const AttentionCudaParams& pp, const typename H::Params& p, uint32_t blocks) {
  merge_last<O, kDim, kThreads, H, Work>(pp, p, blocks);
}

}  // namespace flashinfer::cu::attn
