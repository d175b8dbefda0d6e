// SPDX-License-Identifier: Apache-2.0
// The fused decode steps on a GPU: a kernel reads the index arrays, then the convolution, the op kda_recurrence and the
// gated norm, four launches in all.
#include "flashinfer/ops/linear_attention/kda/fused_cuda.h"

#include <map>

#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/kda/fused_call.h"
#include "flashinfer/ops/linear_attention/kernels/kda/fused_cuda_params.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer::ops::linear_attention {
namespace {
inline constexpr const char* kFile = "flashinfer/ops/linear_attention/kernels/cuda/kda_fused.cuh";
inline constexpr jit::Kernel kRows{kFile, "flashinfer::cu::kda_fused_rows", "flashinfer::KdaFusedCudaParams"},
    kConv{kFile, "flashinfer::cu::kda_fused_conv", "flashinfer::KdaFusedCudaParams"},
    kNorm{kFile, "flashinfer::cu::kda_fused_norm", "flashinfer::KdaFusedCudaParams"};
constexpr KdaFusedCudaConfig kConfig{DType::kBF16, 128};

/// Scratch on the device, the recurrence's arguments and the kernels' parameters.
struct CudaStep {
  Tensor qkv, starts, read, after;
  KdaRecurrence recurrence;
  KdaFusedCudaParams params{};

  template <class B>
  CudaStep(const B& a, Device device) {
    const int64_t tokens = a.x.size(0), heads = a.state.size(1), width = a.state.size(2), c = heads * width;
    set_indices(a);
    const int64_t count = params.call.count;
    qkv = Tensor::empty({tokens, 3 * c}, DType::kBF16, device), after = Tensor::empty({tokens}, DType::kI64, device);
    starts = Tensor::empty({count + 1}, DType::kI64, device), read = Tensor::empty({count}, DType::kI64, device);
    params.starts = starts.data_as<int64_t>(), params.read = read.data_as<int64_t>(),
    params.after = after.data_as<int64_t>(), params.slot_count = a.state.size(0);
    const TensorView output = a.output->select(0, 0),
                     gate = a.output_gate.rank() == 4 ? a.output_gate.select(0, 0) : a.output_gate;
    set_recurrence(a, output, heads, width);
    KdaFusedParams& p = params.call;
    p.tokens = tokens, p.channels = c, p.x = a.x.data(), p.x_row = a.x.stride(0),
    p.weight = a.weight.template data_as<float>();
    p.state = a.conv_state.data(), p.state_slot = a.conv_state.stride(0), p.state_channel = a.conv_state.stride(1),
    p.state_token = a.conv_state.stride(2), p.out = qkv.data();
    p.result = output.data(), p.result_row = output.stride(0), p.result_head = output.stride(1);
    p.heads = heads, p.width = width, p.gate = gate.data(), p.gate_row = gate.stride(0), p.gate_head = gate.stride(1);
    p.norm_weight = a.norm_weight.template data_as<float>(), p.eps = static_cast<float>(a.norm_eps);
  }

 private:
  void rows(const TensorView& indices) {
    params.slots = indices.data_as<int32_t>(), params.slot_row = indices.stride(0), params.columns = 1;
    params.call.count = indices.size(0);
  }
  void set_indices(const FusedKdaDecode& a) { rows(a.state_indices); }
  void set_indices(const PackedFusedKdaDecode& a) {
    if (a.t1_state_indices) return rows(*a.t1_state_indices);
    rows(a.state_indices);
    params.slot_column = a.state_indices.stride(1), params.columns = a.state_indices.size(1);
    params.start = a.query_start_loc.data_as<int32_t>(), params.start_stride = a.query_start_loc.stride(0);
    params.accepted = a.num_accepted_tokens.data_as<int32_t>(),
    params.accepted_stride = a.num_accepted_tokens.stride(0);
  }
  template <class B>
  void set_recurrence(const B& a, const TensorView& output, int64_t heads, int64_t width) {
    const int64_t tokens = a.x.size(0), c = heads * width;
    const auto part = [&](int64_t i) {
      const int64_t shape[] = {tokens, heads, width}, strides[] = {3 * c, width, 1};
      return TensorView(qkv.data_as<bf16_t>() + i * c, DType::kBF16, shape, strides, qkv.device());
    };
    KdaRecurrence& r = recurrence;
    r.q = part(0), r.k = part(1), r.v = part(2), r.g = a.raw_gate.select(0, 0), r.beta = a.raw_beta.select(0, 0);
    r.cu_seqlens = starts;
    r.A_log = TensorView(const_cast<void*>(a.A_log.data()), DType::kF32, {heads}, a.A_log.device());
    r.dt_bias = TensorView(const_cast<void*>(a.dt_bias.data()), DType::kF32, {heads, width}, a.dt_bias.device());
    r.use_gate = r.beta_is_logit = r.disable_state_update = true, r.lower_bound = a.lower_bound;
    r.state = a.state, r.read_indices = read, r.after_indices = after, r.output = output;
  }
};

/// Whether two sequences have a slot in common.
template <class B>
bool share_slots(const B& a) {
  const KdaFusedCall call(a);
  std::map<int64_t, size_t> owner;
  bool shared = false;
  const auto owns = [&](int64_t slot, size_t i) {
    if (slot >= 0) shared = shared || owner.emplace(slot, i).first->second != i;
  };
  for (size_t i = 0; i < call.rows.size(); ++i) {
    const KdaFusedRow& r = call.rows[i];
    if (r.slot < 0 || r.tokens == 0) continue;
    owns(r.slot, i), owns(call.read.data_as<int64_t>()[i], i);
    for (int64_t t = r.first; t < r.first + r.tokens; ++t) owns(call.after.data_as<int64_t>()[t], i);
  }
  return shared;
}

template <class B>
op::Prepared prepare(const B& a, const op::Call& call) {
  const jit::CudaLoaded &rows = jit::cuda_kernel<kRows>(kConfig, call.device),
                        &conv = jit::cuda_kernel<kConv>(kConfig, call.device),
                        &norm = jit::cuda_kernel<kNorm>(kConfig, call.device);
  if (call.device.type == DeviceType::kEmu && share_slots(a))
    return op::Unsupported{"sequences share a slot: on a GPU they have no order"};
  const int64_t tokens = a.x.size(0), heads = a.state.size(1), channels = 3 * heads * a.state.size(2);
  for (std::string why : {grid_unsupported(tokens, channels, kConfig.threads), grid_unsupported(tokens * heads, 1, 1)})
    if (!why.empty()) return op::Unsupported{std::move(why)};
  {
    const CudaStep step(a, call.device);
    const op::Selection s = op::explain(kda_recurrence_op, &step.recurrence);
    if (!s.candidate || s.candidate->backend != op::Backend::kCuda)
      return op::Unsupported{s.rejections.empty() ? "kda_recurrence has no kernel" : s.rejections.front().why};
  }
  for (const jit::CudaLoaded* k : {&rows, &conv, &norm})
    if (!k->why_not.empty()) return op::Unsupported{k->why_not};
  return [&a, &rows, &conv, &norm, device = call.device, tokens, heads, channels] {
    CudaStep step(a, device);
    const int64_t count = step.params.call.count;
    launch_unless_empty(rows, step.params, delta_launch(ceil_div(count, kConfig.threads), 1, 1, kConfig.threads));
    launch_unless_empty(conv, step.params, delta_launch(count, channels, kConfig.threads, kConfig.threads));
    if (tokens) op::detail::run_unobserved(kda_recurrence_op, &step.recurrence);
    launch_unless_empty(norm, step.params,
                        delta_launch(ceil_div(tokens * heads, int64_t{kConfig.threads / 32}), 1, 1, kConfig.threads));
  };
}
}  // namespace

op::Prepared prepare_fused_cuda(const FusedKdaDecode& a, const op::Call& call) { return prepare(a, call); }
op::Prepared prepare_packed_cuda(const PackedFusedKdaDecode& a, const op::Call& call) { return prepare(a, call); }

}  // namespace flashinfer::ops::linear_attention
