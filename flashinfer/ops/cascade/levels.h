// SPDX-License-Identifier: Apache-2.0
// Levels of keys, each attended alone, and the merge of their states. Internal to the family.
#pragma once
#include <span>
#include <vector>

#include "flashinfer/ops/attention/run.h"

namespace flashinfer::cascade {

/// A level's plan, whose o_data_type is f32, and its tensors but for the results.
struct Level {
  attention::PlanRef plan;
  attention::Call call;
};
/// out[row] = the attention over the keys of all levels.
op::Prepared prepare_levels(std::span<Level> levels, const TensorView& out);
/// The same on the GPU or emulator that the tensors are on.
op::Prepared prepare_levels_cuda(std::span<Level> levels, const TensorView& out);
void reference_levels(std::span<Level> levels, const TensorView& out);
/// The candidates of an op whose block is attention in the levels of LevelsOf(block).
template <class Block, std::vector<Level> (*LevelsOf)(const Block&)>
struct LevelsRun {
  static op::Prepared cpu(const Block& a) {
    std::vector<Level> levels = LevelsOf(a);
    return prepare_levels(levels, *a.out);
  }
  static op::Prepared cuda(const Block& a) {
    std::vector<Level> levels = LevelsOf(a);
    return prepare_levels_cuda(levels, *a.out);
  }
  static void reference(const Block& a) {
    std::vector<Level> levels = LevelsOf(a);
    reference_levels(levels, *a.out);
  }
};
/// One request of `rows` query rows over `k` and `v`, all of which they see; numbers and types from `like`.
attention::Plan shared_plan(const attention::Plan& like, int64_t rows, int64_t keys);

extern const op::Op level_init_op, level_plan_op, level_run_op, level_reset_op, level_prewarm_op;
extern const op::Op shared_decode_init_op, shared_decode_plan_op, shared_decode_forward_op, shared_decode_reset_op;
extern const op::Op shared_prefill_init_op, shared_prefill_plan_op, shared_prefill_forward_op, shared_prefill_reset_op,
    shared_prefill_prewarm_op;

}  // namespace flashinfer::cascade
