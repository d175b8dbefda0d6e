// SPDX-License-Identifier: Apache-2.0
// The replaying ops on a GPU. Internal to the family.
#pragma once
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/replay_cuda_params.h"
#include "flashinfer/ops/linear_attention/mamba/replay_call.h"

namespace flashinfer::ops::linear_attention {

inline constexpr jit::Kernel kReplayCuda{"flashinfer/ops/linear_attention/kernels/cuda/replay.cuh",
                                         "flashinfer::cu::mamba_replay", "flashinfer::ReplayCudaParams"};

inline GdnIndices replay_indices(const TensorView& t) { return {t.data(), t.stride(0), t.dtype() == DType::kI64}; }
inline GdnIndices replay_indices(const std::optional<TensorView>& t) { return t ? replay_indices(*t) : GdnIndices{}; }
inline void set_replay_sequences(ReplayCudaParams& p, const CheckpointingSsu& a) {
  p.call.count = replay_count(a), p.steps = replay_tokens(a), p.window = a.x_cache.size(2) - p.steps;
  p.read = replay_indices(a.state_batch_indices), p.tokens = replay_indices(a.cu_seqlens);
  p.start = replay_indices(a.ring_start), p.prefix = replay_indices(a.prev_num_accepted_tokens);
  p.wide = rows_aligned(a.B) && rows_aligned(a.C) && rows_aligned(a.B_cache);
}
inline void set_replay_sequences(ReplayCudaParams& p, const ReplaySsmMaterializeLayer& a) {
  p.call.count = a.src_slots.size(0), p.materialize = true, p.window = 16;
  p.read = replay_indices(a.src_slots), p.write = replay_indices(a.dst_slots);
  p.start = replay_indices(a.ring_start), p.prefix = replay_indices(a.replay_prefix_len);
  p.wide = rows_aligned(a.B_cache);
}

/// `params`: of the rows and operands, without a seed. Sequences that share a slot have no order on a GPU.
template <class B>
op::Prepared prepare_replay_cuda(const B& a, const op::Call& call, const ReplayParams& params, bool in_order) {
  if (std::string why = delta_unsupported(params.dstate); !why.empty()) return op::Unsupported{std::move(why)};
  const DType state = a.state.dtype();
  // Rows of 8-bit states are loaded by element: their width is no part of the kernel.
  const DeltaCudaConfig c = delta_config(state, params.dstate, rows_aligned(a.state) && a.state.item_size() > 1);
  ReplayCudaParams p{};
  p.call = params, p.io = a.x_cache.dtype(), p.pad = a.pad_slot_id, p.slots = a.state.size(0),
  p.ring_slots = a.x_cache.size(0);
  if (a.rand_seed) p.seed = a.rand_seed->template data_as<int64_t>();
  set_replay_sequences(p, a);
  if (std::string why = grid_unsupported(p.call.count * p.call.heads, p.call.dim, c.block_rows()); !why.empty())
    return op::Unsupported{std::move(why)};
  if (in_order) return op::Unsupported{"sequences share a slot that one of them writes: on a GPU they have no order"};
  return prepare_cuda<kReplayCuda>(c, p, call.device,
                                   delta_launch(p.call.count * p.call.heads, p.call.dim, c.block_rows(), c.threads));
}

}  // namespace flashinfer::ops::linear_attention
