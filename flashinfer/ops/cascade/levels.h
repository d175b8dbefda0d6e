// SPDX-License-Identifier: Apache-2.0
// Levels of keys, each attended alone, and the merge of their states. Internal to the family.
#pragma once
#include <span>

#include "flashinfer/ops/attention/plan/plan.h"

namespace flashinfer::cascade {

/// A level's plan, whose o_data_type is f32, and its tensors; out and lse are filled in by run_levels.
struct Level {
  const attention::Plan* plan;
  attention::Call call;
};
/// out[row] = the attention over the keys of all levels.
void run_levels(std::span<Level> levels, const TensorView& out);
void reference_levels(std::span<Level> levels, const TensorView& out);
/// Why the kernels do not serve these levels.
op::Refusal refuse_levels(std::span<const Level> levels, DType out);
/// The same on the GPU or emulator that the block's tensors lie on.
void run_levels_cuda(std::span<Level> levels, const TensorView& out);
op::Refusal refuse_levels_cuda(const op::Op& op, const void* block, std::span<const Level> levels, DType out);
/// One request of `rows` query rows over `k` and `v`, all of which they see; numbers and types from `like`.
attention::Plan shared_plan(const attention::Plan& like, int64_t rows, int64_t keys);

extern const op::Op level_init_op, level_plan_op, level_run_op, level_reset_op, level_prewarm_op;
extern const op::Op shared_decode_init_op, shared_decode_plan_op, shared_decode_forward_op, shared_decode_reset_op;
extern const op::Op shared_prefill_init_op, shared_prefill_plan_op, shared_prefill_forward_op, shared_prefill_reset_op,
    shared_prefill_prewarm_op;

}  // namespace flashinfer::cascade
