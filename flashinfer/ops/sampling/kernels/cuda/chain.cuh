// SPDX-License-Identifier: Apache-2.0
// chain_speculative_sampling on a GPU: a cluster of blocks processes a row. Acceptance uses the products of
// kernels/cpu/chain.h; the residual of target minus draft is written to scratch and sampled by the passes of
// kernels/cuda/row.cuh, whose sums have the CPU's order: the tokens are the CPU's.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/sampling/kernels/cuda/sample.cuh"

namespace flashinfer::cu {

/// A token drawn by u from max(target - draft, 0), or from the target without a draft; -1 when it has no mass.
template <int kThreads, class T>
FI_GLOBAL_FN int64_t draw_residual(const RowPasses<kThreads>& m, const T* target, const T* draft, int64_t n, double u,
                                   const sampling::Room& room) {
  m.sync_row();  // `room` may still be read
  for (int64_t i = cluster_rank() * kThreads + thread_x(); i < n; i += kThreads * cluster_blocks()) {
    const float t = to_f32(target[i]), v = draft ? t - to_f32(draft[i]) : t;
    room.values[i] = v > 0.0f ? v : 0.0f;
  }
  m.block_stats(static_cast<const float*>(room.values), n, room.row);
  const double mass = m.total(room.row.sums, stats_blocks(n));
  if (!(mass > 0) || mass > sampling::kMostSum) return -1;
  return m.draw(static_cast<const float*>(room.values), n, room.row.sums, 0.0f, u * mass);
}

template <SampleCudaConfig C>
FI_GLOBAL_FN void chain(const ChainCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  const RowPasses<C.threads> m = row_passes<C.threads>();
  const uint32_t blocks = cluster_blocks(), first = block_x() / blocks;
  const sampling::Room room = room_of(p.scratch + first * chain_cuda_words(p.v), p.v);
  depend_wait();
  for (int64_t r = first; r < p.rows; r += blocks_x() / blocks) {
    const T* draft = static_cast<const T*>(p.draft) + r * p.draft_row;
    const T* target = static_cast<const T*>(p.target) + r * p.target_row;
    int32_t* out = p.out + r * p.out_row;
    sampling::Uniforms u = uniforms_of(p.random, r);
    const auto id_at = [&](int64_t i) { return sampling::index_of(p.ids, p.ids_wide, r * p.ids_row + i); };
    const auto accepts = [&](int64_t i) {
      const int64_t id = id_at(i);
      const float x = m.next(u);
      return id >= 0 && id < p.v &&
             mul_rn(x, to_f32(draft[i * p.draft_step + id])) < to_f32(target[i * p.target_step + id]);
    };
    int64_t emitted = 0;
    while (emitted < p.n && accepts(emitted)) ++emitted;
    int64_t accepted = emitted;
    for (int64_t i = emitted; i < p.n; ++i) accepted += accepts(i);
    const double x = static_cast<double>(m.next(u));
    const T* at = target + emitted * p.target_step;
    int64_t token = -1;
    if (emitted < p.n) token = draw_residual(m, at, draft + emitted * p.draft_step, p.v, x, room);
    if (token < 0)
      token = draw_residual(m, at, static_cast<const T*>(nullptr), p.v, x, room);  // the residual has no mass
    if (cluster_rank() != 0) continue;
    for (int64_t i = thread_x(); i <= p.n; i += C.threads)
      out[i] = i < emitted    ? static_cast<int32_t>(id_at(i))
               : i == emitted ? static_cast<int32_t>(token < 0 ? 0 : token)
                              : -1;
    if (thread_x() == 0) {
      p.accepted_now[r] =
          static_cast<int32_t>(sampling::add_count(p.accepted, p.accepted_wide, p.accepted_given, r, accepted));
      p.emitted_now[r] =
          static_cast<int32_t>(sampling::add_count(p.emitted, p.emitted_wide, p.emitted_given, r, emitted));
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
