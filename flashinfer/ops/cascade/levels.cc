// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/cascade/levels.h"

#include "flashinfer/ops/attention/cuda/together.h"
#include "flashinfer/ops/cascade/cuda_launch.h"
#include "flashinfer/ops/cascade/kernels/params.h"
#include "flashinfer/ops/cascade/ref.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::cascade {
namespace {

inline constexpr jit::Kernel kMerge{"flashinfer/ops/cascade/kernels/cpu/merge.h", "flashinfer::cpu::merge_states",
                                    "flashinfer::MergeParams"};
inline constexpr jit::Kernel kMergeCuda{"flashinfer/ops/cascade/kernels/cuda/merge.cuh", "flashinfer::cu::merge_states",
                                        "flashinfer::MergeParams"};

/// States of all levels: v f32 [rows, levels, Hq, D], s f32 [rows, levels, Hq].
struct States {
  Tensor v, s;
  States(std::span<Level> levels, const TensorView& out) {
    const auto n = static_cast<int64_t>(levels.size());
    v = Tensor::empty({out.size(0), n, out.size(1), out.size(2)}, DType::kF32, out.device());
    s = Tensor::empty({out.size(0), n, out.size(1)}, DType::kF32, out.device());
  }
  /// Calls f(plan, call) for every level with its state as output.
  template <class F>
  void each(std::span<Level> levels, F f) const {
    for (size_t i = 0; i < levels.size(); ++i) {
      levels[i].call.out = v.view().select(1, static_cast<int64_t>(i));
      levels[i].call.lse = s.view().select(1, static_cast<int64_t>(i));
      f(levels[i].plan, levels[i].call);
    }
  }
};

/// Merges them to `out`; the kernel also merges the LSE, to `merged`.
MergeParams merge_params(const States& states, const TensorView& out, const Tensor& merged) {
  MergeParams p{};
  p.v[0] = states.v.data(), p.s[0] = states.s.data_as<float>();
  p.tokens = out.size(0), p.states = states.v.size(1), p.heads = out.size(1), p.dim = out.size(2);
  p.v_stride_h[0] = p.dim, p.v_stride_state = p.heads * p.dim, p.v_stride_n[0] = p.states * p.v_stride_state;
  p.s_stride_h[0] = 1, p.s_stride_state = p.heads, p.s_stride_n[0] = p.states * p.heads;
  p.v_out = out.data(), p.s_out = merged.data_as<float>();
  p.v_out_stride_n = out.stride(0), p.v_out_stride_h = out.stride(1);
  p.s_out_stride_n = p.heads, p.s_out_stride_h = 1;
  return p;
}
Tensor lse_of(const TensorView& out) { return Tensor::empty({out.size(0), out.size(1)}, DType::kF32, out.device()); }
MergeConfig merge_config(DType out) { return {DType::kF32, out}; }

}  // namespace

namespace {
/// What `prepare` makes of every level, then what `merge` makes of their states.
template <class Prepare, class Merge>
op::Prepared prepare_with(std::span<Level> levels, const TensorView& out, const Prepare& prepare, const Merge& merge) {
  const States states(levels, out);
  const Tensor merged = lse_of(out);
  attention::Launches launches;
  for (const Tensor& t : {states.v, states.s, merged}) launches.keep(t.owner());
  std::vector<attention::PlannedCall> calls;
  states.each(levels,
              [&](const attention::PlanRef& plan, const attention::Call& call) { calls.push_back({plan, call}); });
  prepare(launches, calls);
  launches.add([&] { return merge(merge_config(out.dtype()), merge_params(states, out, merged)); });
  return std::move(launches).prepared();
}
}  // namespace

op::Prepared prepare_levels(std::span<Level> levels, const TensorView& out) {
  const auto each = [](attention::Launches& launches, std::span<const attention::PlannedCall> calls) {
    for (const auto& [plan, call] : calls) launches.add([&] { return attention::prepare_cpu(plan, call); });
  };
  return prepare_with(levels, out, each, [](const MergeConfig& config, MergeParams p) {
    p.tokens_per_task = ops::rows_per_task((p.states + 1) * p.heads * p.dim * 4);
    return ops::prepare_rows<kMerge>(config, p, p.tokens, p.tokens_per_task);
  });
}

op::Prepared prepare_levels_cuda(std::span<Level> levels, const TensorView& out) {
  const auto together = [](attention::Launches& launches, std::span<const attention::PlannedCall> calls) {
    launches.add([&] { return attention::prepare_together_cuda(calls); });
  };
  return prepare_with(levels, out, together, [&](const MergeConfig& config, const MergeParams& p) {
    const MergeCudaConfig c = cuda::merge_config(config, p);
    return ops::prepare_cuda<kMergeCuda>(c, p, out.device(), cuda::merge_launch(c, p, true));
  });
}

void reference_levels(std::span<Level> levels, const TensorView& out) {
  const States states(levels, out);
  states.each(levels, [](const attention::PlanRef& plan, const attention::Call& call) {
    attention::run_reference(*plan, call);
  });
  ref::merge_states(states.v.view(), states.s.view(), out, lse_of(out).view());
}

attention::Plan shared_plan(const attention::Plan& like, int64_t rows, int64_t keys) {
  attention::Plan p;
  p.kv_layout = like.kv_layout, p.paged = false, p.batch_size = 1;
  p.num_qo_heads = like.num_qo_heads, p.num_kv_heads = like.num_kv_heads, p.head_dim_qk = like.head_dim_qk,
  p.head_dim_vo = like.head_dim_vo;
  p.q_data_type = like.q_data_type, p.kv_data_type = like.kv_data_type, p.o_data_type = DType::kF32;
  p.sm_scale = like.sm_scale;
  p.nnz_qo = rows, p.nnz_kv = keys;
  const int32_t qo[2] = {0, static_cast<int32_t>(rows)}, kv[2] = {0, static_cast<int32_t>(keys)};
  p.qo_indptr = Tensor::copy_of(std::span<const int32_t>(qo), {2});
  p.kv_indptr = Tensor::copy_of(std::span<const int32_t>(kv), {2});
  p.kv_len = Tensor::copy_of(std::span<const int32_t>(kv + 1, 1), {1});
  attention::set_work(p);
  return p;
}

}  // namespace flashinfer::cascade
