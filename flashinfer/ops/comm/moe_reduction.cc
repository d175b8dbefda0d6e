// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/moe_reduction.h"

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/comm/kernels/moe_reduce_params.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::ops::comm {
namespace {
using A = AllReduceFusion;

inline constexpr jit::Kernel kReduce{"flashinfer/ops/comm/kernels/cpu/moe_reduce.h", "flashinfer::cpu::moe_reduce",
                                     "flashinfer::MoeReduceParams"};

const std::optional<TensorView>& scales_of(const A& a) {
  return is_moe_reduction(a) ? a.moe_reduction_scale_input : a.expert_scale_factor;
}
const std::optional<TensorView>& added(const A& a) {
  return is_moe_reduction(a) ? a.moe_reduction_token_input : a.shared_expert_output;
}
int64_t tokens(const A& a) { return a.residual_in->size(0); }
int64_t hidden(const A& a) { return a.input.size(1); }

void check_matrix(const TensorView& t, const char* name, int64_t rows, const A& a) {
  FI_CHECK(t.rank() == 2 && t.size(0) == rows && t.size(1) == hidden(a) && t.dtype() == a.input.dtype(), ValueError,
           name, " is ", to_string(t), ", but must be ", flashinfer::name(a.input.dtype()), "[", rows, ", ", hidden(a),
           "]");
}
void check_scales(const TensorView& t, const char* name, int64_t rows, int64_t columns, const A& a) {
  const bool fits = t.rank() == 2 && t.size(0) == rows && t.size(1) == columns;
  FI_CHECK(fits && (t.dtype() == DType::kF32 || t.dtype() == a.input.dtype()), ValueError, name, " is ", to_string(t),
           ", but must be [", rows, ", ", columns, "], float32 or ", flashinfer::name(a.input.dtype()));
}
void check_belongs(bool given, const char* name, const char* pattern) {
  FI_CHECK(!given, ValueError, name, " is given, but belongs to pattern ", pattern);
}
void check_required(bool given, const char* name, const A& a) {
  FI_CHECK(given, ValueError, name, " is required for pattern ", a.pattern, ", but is None");
}

void check_reduction(const A& a) {
  check_required(a.moe_reduction_device_num_experts.has_value(), "moe_reduction_device_num_experts", a);
  check_required(a.moe_reduction_scale_input.has_value(), "moe_reduction_scale_input", a);
  check_required(a.moe_reduction_active_experts_token_input.has_value(), "moe_reduction_active_experts_token_input", a);
  check_required(a.moe_reduction_token_input.has_value(), "moe_reduction_token_input", a);
  const int64_t experts = *a.moe_reduction_device_num_experts;
  FI_CHECK(experts >= 1 && experts <= 1 << 20, ValueError, "moe_reduction_device_num_experts is ", experts,
           ", but must be in [1, 2^20]");
  check_matrix(*a.moe_reduction_active_experts_token_input, "moe_reduction_active_experts_token_input",
               experts * tokens(a), a);
  check_matrix(*a.moe_reduction_token_input, "moe_reduction_token_input", tokens(a), a);
  check_scales(*a.moe_reduction_scale_input, "moe_reduction_scale_input", experts, tokens(a), a);
}
void check_finalize(const A& a) {
  check_required(a.expanded_idx_to_permuted_idx.has_value(), "expanded_idx_to_permuted_idx", a);
  FI_CHECK(a.use_oneshot.value_or(true), ValueError, "use_oneshot is False, but pattern ", a.pattern,
           " has one shot alone");
  const TensorView& index = *a.expanded_idx_to_permuted_idx;
  FI_CHECK(index.rank() == 2 && index.size(0) == tokens(a), ValueError, "expanded_idx_to_permuted_idx is ",
           to_string(index), ", but must be int32 [", tokens(a), ", top_k]");
  if (a.expert_scale_factor) check_scales(*a.expert_scale_factor, "expert_scale_factor", tokens(a), index.size(1), a);
  if (a.shared_expert_output) check_matrix(*a.shared_expert_output, "shared_expert_output", tokens(a), a);
  if (!host_can_read(index.device())) return;
  const auto* ids = index.data_as<int32_t>();
  for (int64_t i = 0; i < index.numel(); ++i)
    FI_CHECK(ids[i] < a.input.size(0), ValueError, "expanded_idx_to_permuted_idx[", i / index.size(1), "][",
             i % index.size(1), "] is ", ids[i], ", but input has ", a.input.size(0), " rows");
}
}  // namespace

void check_moe(const A& a) {
  if (!is_moe_reduction(a)) {
    check_belongs(a.moe_reduction_device_num_experts.has_value(), "moe_reduction_device_num_experts", "6");
    check_belongs(a.moe_reduction_scale_input.has_value(), "moe_reduction_scale_input", "6");
    check_belongs(a.moe_reduction_active_experts_token_input.has_value(), "moe_reduction_active_experts_token_input",
                  "6");
    check_belongs(a.moe_reduction_token_input.has_value(), "moe_reduction_token_input", "6");
  }
  if (!is_moe_finalize(a)) {
    check_belongs(a.expanded_idx_to_permuted_idx.has_value(), "expanded_idx_to_permuted_idx", "7 or 12");
    check_belongs(a.expert_scale_factor.has_value(), "expert_scale_factor", "7 or 12");
    check_belongs(a.shared_expert_output.has_value(), "shared_expert_output", "7 or 12");
  }
  if (!is_moe(a)) return;
  check_required(a.residual_in.has_value(), "residual_in", a);
  if (is_moe_reduction(a)) check_reduction(a);
  if (is_moe_finalize(a)) check_finalize(a);
}

const jit::Loaded& moe_kernel(const A& a) {
  const auto& scales = scales_of(a);
  return jit::cpu_kernel<kReduce>(MoeReduceConfig{.dtype = a.input.dtype(),
                                                  .scale = scales ? scales->dtype() : a.input.dtype(),
                                                  .permuted = is_moe_finalize(a),
                                                  .scaled = scales.has_value(),
                                                  .adds = added(a).has_value()});
}

Tensor reduce_experts(jit::CpuFn fn, const A& a) {
  Tensor out = Tensor::empty({tokens(a), hidden(a)}, a.input.dtype());
  const TensorView& x = is_moe_finalize(a) ? a.input : *a.moe_reduction_active_experts_token_input;
  MoeReduceParams p{.x = x.data(), .out = out.data(), .rows = tokens(a), .d = hidden(a)};
  p.experts = is_moe_finalize(a) ? a.expanded_idx_to_permuted_idx->size(1) : *a.moe_reduction_device_num_experts;
  if (scales_of(a)) p.scales = scales_of(a)->data();
  if (added(a)) p.add = added(a)->data();
  if (is_moe_finalize(a)) p.index = a.expanded_idx_to_permuted_idx->data_as<int32_t>();
  p.rows_per_task = rows_per_task(p.rows, (p.experts + 2) * p.d * a.input.item_size());
  run_rows(fn, p, p.rows, p.rows_per_task);
  return out;
}

ExpertsOnGpu experts_on_gpu(const A& a) {
  if (!is_moe(a)) return {};
  const bool permuted = is_moe_finalize(a);
  const TensorView& x = permuted ? a.input : *a.moe_reduction_active_experts_token_input;
  ExpertsOnGpu e{.addend = permuted ? AllReduceAddend::kPermuted : AllReduceAddend::kExperts};
  e.params = {.x = x.data(),
              .experts = permuted ? a.expanded_idx_to_permuted_idx->size(1) : *a.moe_reduction_device_num_experts,
              .x_rows = x.size(0)};
  if (scales_of(a)) e.scale = scales_of(a)->dtype(), e.params.scales = scales_of(a)->data();
  if (added(a)) e.params.add = added(a)->data();
  if (permuted) e.params.index = a.expanded_idx_to_permuted_idx->data_as<int32_t>();
  return e;
}

}  // namespace flashinfer::ops::comm
