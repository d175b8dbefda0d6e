// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/cascade/op.h"

#include "flashinfer/op/call.h"
#include "flashinfer/ops/cascade/cases.h"
#include "flashinfer/ops/cascade/cuda_launch.h"
#include "flashinfer/ops/cascade/kernels/params.h"
#include "flashinfer/ops/cascade/levels.h"
#include "flashinfer/ops/cascade/ref.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/cascade/kernels/cpu/merge.h", "flashinfer::cpu::merge_states",
                                     "flashinfer::MergeParams"};
inline constexpr jit::Kernel kCudaKernel{"flashinfer/ops/cascade/kernels/cuda/merge.cuh",
                                         "flashinfer::cu::merge_states", "flashinfer::MergeParams"};

void set_state(MergeParams& p, int i, const TensorView& v, const TensorView& s, int head_axis) {
  p.v[i] = v.data(), p.s[i] = s.data_as<float>();
  p.v_stride_n[i] = v.stride(0), p.v_stride_h[i] = v.stride(head_axis);
  p.s_stride_n[i] = s.stride(0), p.s_stride_h[i] = s.stride(head_axis);
}
void set_out(MergeParams& p, const TensorView& v, const TensorView& s) {
  p.v_out = v.data(), p.s_out = s.data_as<float>();
  p.v_out_stride_n = v.stride(0), p.v_out_stride_h = v.stride(1);
  p.s_out_stride_n = s.stride(0), p.s_out_stride_h = s.stride(1);
  p.tokens = v.size(0), p.heads = v.size(1), p.dim = v.size(2);
}
MergeParams pair_params(const TensorView& va, const TensorView& sa, const TensorView& vb, const TensorView& sb) {
  MergeParams p{};
  set_state(p, 0, va, sa, 1);
  set_state(p, 1, vb, sb, 1);
  p.pair = 1, p.states = 2;
  return p;
}
MergeParams params_of(const MergeState& a) {
  MergeParams p = pair_params(a.v_a, a.s_a, a.v_b, a.s_b);
  set_out(p, *a.v, *a.s);
  return p;
}
MergeParams params_of(const MergeStateInPlace& a) {
  MergeParams p = pair_params(a.v, a.s, a.v_other, a.s_other);
  set_out(p, a.v, a.s);
  if (a.mask) p.mask = a.mask->data_as<uint8_t>(), p.mask_stride = a.mask->stride(0);
  return p;
}
MergeParams params_of(const MergeStates& a) {
  MergeParams p{};
  set_state(p, 0, a.v, a.s, 2);
  p.v_stride_state = a.v.stride(1), p.s_stride_state = a.s.stride(1), p.states = a.v.size(1);
  set_out(p, *a.v_merged, *a.s_merged);
  return p;
}
const TensorView& values_of(const MergeState& a) { return a.v_a; }
const TensorView& values_of(const MergeStateInPlace& a) { return a.v; }
const TensorView& values_of(const MergeStates& a) { return a.v; }
template <class Block>
MergeConfig config_of(const Block& a) {
  return {values_of(a).dtype(), values_of(a).dtype()};
}

template <class Block>
op::Prepared prepare(const Block& a) {
  MergeParams p = params_of(a);
  p.tokens_per_task = ops::rows_per_task((p.states + 1) * p.heads * p.dim * values_of(a).item_size());
  return ops::prepare_rows<kKernel>(config_of(a), p, p.tokens, p.tokens_per_task);
}
template <class Block>
op::Prepared prepare_cuda(const Block& a, const op::Call& call) {
  const MergeParams p = params_of(a);
  const auto c = cuda::merge_config(config_of(a), p);
  return ops::prepare_cuda<kCudaKernel>(c, p, call.device, cuda::merge_launch(c, p, true));
}
void reference_merge(const MergeState& a) { ref::merge_pair(a.v_a, a.s_a, a.v_b, a.s_b, nullptr, *a.v, *a.s); }
void reference_in_place(const MergeStateInPlace& a) {
  ref::merge_pair(a.v, a.s, a.v_other, a.s_other, a.mask ? &*a.mask : nullptr, a.v, a.s);
}
void reference_many(const MergeStates& a) { ref::merge_states(a.v, a.s, *a.v_merged, *a.s_merged); }

op::Cost cost(const MergeState& a) {
  return {.bytes = static_cast<double>(3 * (a.v_a.nbytes() + a.s_a.nbytes())),
          .flops = 4.0 * static_cast<double>(a.v_a.numel())};
}

constexpr op::Field merge_fields[] = {
    op::in<&MergeState::v_a>("v_a", "n h d", op::floats),
    op::in<&MergeState::s_a>("s_a", "n h", DType::kF32, op::any_layout),
    op::in<&MergeState::v_b>("v_b", "n h d", op::same_as("v_a")),
    op::in<&MergeState::s_b>("s_b", "n h", DType::kF32, op::any_layout),
    op::result<&MergeState::v>("v", "n h d", op::same_as("v_a")),
    op::result<&MergeState::s>("s", "n h", DType::kF32, op::any_layout),
};
constexpr op::Field in_place_fields[] = {
    op::inout<&MergeStateInPlace::v>("v", "n h d", op::floats),
    op::inout<&MergeStateInPlace::s>("s", "n h", DType::kF32, op::any_layout),
    op::in<&MergeStateInPlace::v_other>("v_other", "n h d", op::same_as("v")),
    op::in<&MergeStateInPlace::s_other>("s_other", "n h", DType::kF32, op::any_layout),
    op::in<&MergeStateInPlace::mask>("mask", "n", DType::kBool, op::any_layout),
};
constexpr op::Field many_fields[] = {
    op::in<&MergeStates::v>("v", "n x h d", op::floats),
    op::in<&MergeStates::s>("s", "n x h", DType::kF32, op::any_layout),
    op::result<&MergeStates::v_merged>("v_merged", "n h d", op::same_as("v")),
    op::result<&MergeStates::s_merged>("s_merged", "n h", DType::kF32, op::any_layout),
};

template <class Block, void (*Reference)(const Block&)>
constexpr op::Candidate kCandidates[] = {op::cuda<prepare_cuda<Block>>(), op::cpu<prepare<Block>>(),
                                         op::reference<Reference>()};
constexpr std::span<const op::Candidate> merge_candidates = kCandidates<MergeState, reference_merge>,
                                         in_place_candidates = kCandidates<MergeStateInPlace, reference_in_place>,
                                         many_candidates = kCandidates<MergeStates, reference_many>;

constinit const op::Op merge_op = op::define<MergeState, nullptr, cost>(
    "merge_state", "flashinfer.cascade", "Merges two attention states: v weighted by 2^s, s = log2(2^s_a + 2^s_b).",
    merge_fields, merge_candidates, ops::cascade::merge_state_cases);
constinit const op::Op in_place_op = op::define<MergeStateInPlace>(
    "merge_state_in_place", "flashinfer.cascade", "Merges another attention state into (v, s).", in_place_fields,
    in_place_candidates, ops::cascade::merge_state_in_place_cases);
constinit const op::Op many_op =
    op::define<MergeStates>("merge_states", "flashinfer.cascade", "Merges the attention states along axis 1.",
                            many_fields, many_candidates, ops::cascade::merge_states_cases);

using namespace cascade;
constexpr const op::Op* kOps[] = {&merge_op,
                                  &in_place_op,
                                  &many_op,
                                  &level_init_op,
                                  &level_plan_op,
                                  &level_run_op,
                                  &level_reset_op,
                                  &level_prewarm_op,
                                  &shared_decode_init_op,
                                  &shared_decode_plan_op,
                                  &shared_decode_forward_op,
                                  &shared_decode_reset_op,
                                  &shared_prefill_init_op,
                                  &shared_prefill_plan_op,
                                  &shared_prefill_forward_op,
                                  &shared_prefill_reset_op,
                                  &shared_prefill_prewarm_op};
}  // namespace

std::pair<Tensor, Tensor> merge_state(const MergeState& a) { return op::call(merge_op, a); }
void merge_state_in_place(const MergeStateInPlace& a) { op::call(in_place_op, a); }
std::pair<Tensor, Tensor> merge_states(const MergeStates& a) { return op::call(many_op, a); }

namespace ops::cascade {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::cascade

}  // namespace flashinfer
