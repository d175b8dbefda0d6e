// SPDX-License-Identifier: Apache-2.0
// Launches of the causal convolution on a GPU.
#pragma once
#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/linear_attention/conv/form.h"
#include "flashinfer/ops/linear_attention/kernels/conv/cuda_params.h"

namespace flashinfer::ops::linear_attention {

#define FI_CONV "flashinfer/ops/linear_attention/kernels/cuda/conv.cuh"
inline constexpr jit::Kernel kConvCuda{FI_CONV, "flashinfer::cu::causal_conv1d", "flashinfer::ConvCudaParams"};
inline constexpr jit::Kernel kConvStatesCuda{FI_CONV, "flashinfer::cu::causal_conv1d_states",
                                             "flashinfer::ConvCudaParams"};
inline constexpr jit::Kernel kConvUpdateCuda{FI_CONV, "flashinfer::cu::causal_conv1d_update",
                                             "flashinfer::ConvCudaParams"};
#undef FI_CONV
inline constexpr int64_t kConvCudaUnit = 16;  // tokens of a thread where channels are side by side

inline GdnIndices conv_indices(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->dtype() == DType::kI64};
}
inline ConvCudaParams conv_cuda_params(const ConvForm& f, const ConvParams& call) {
  ConvCudaParams p{call};
  p.call.sequences = f.sequences, p.call.rows = nullptr;
  p.x_row = f.x.stride(0), p.out_row = f.out.stride(0), p.tokens = f.x.size(2);
  p.slot_count = f.state.defined() ? f.state.size(0) : 0;
  p.width = static_cast<int32_t>(f.width), p.weight_type = f.weight.dtype(), p.silu = f.silu;
  const uint64_t channels =
      reinterpret_cast<uintptr_t>(f.weight.data()) | static_cast<uint64_t>(f.weight.stride(0) * f.weight.item_size());
  p.wide = f.width == 4 && f.weight.stride(1) == 1 && channels % static_cast<uint64_t>(4 * f.weight.item_size()) == 0;
  return p;
}
inline ConvCudaParams conv_cuda_params(const ConvForm& f, const ConvParams& call, const CausalConv1dFn& a) {
  ConvCudaParams p = conv_cuda_params(f, call);
  p.starts = conv_indices(a.query_start_loc), p.slots = conv_indices(a.cache_indices), p.pad = a.pad_slot_id;
  if (a.has_initial_state)
    p.initial = a.has_initial_state->data_as<bool>(), p.initial_stride = a.has_initial_state->stride(0);
  return p;
}
inline ConvCudaParams conv_cuda_params(const ConvForm& f, const ConvParams& call, const CausalConv1dUpdate& a) {
  ConvCudaParams p = conv_cuda_params(f, call);
  p.slots = conv_indices(a.conv_state_indices), p.pad = a.pad_slot_id, p.always_initial = true;
  p.positions = conv_indices(a.cache_seqlens ? a.cache_seqlens : a.num_accepted_tokens);
  return p;
}
/// The whole call's; reads no indices.
ConvCudaParams conv_update_cuda_params(const CausalConv1dUpdate& a);
/// Whether two sequences meet at a slot; reads index arrays.
inline bool conv_shares_slots(const std::vector<ConvRow>& rows) {
  std::vector<int64_t> slots;
  for (const ConvRow& r : rows)
    if (r.slot >= 0) slots.push_back(r.slot);
  std::ranges::sort(slots);
  return std::ranges::adjacent_find(slots) != slots.end();
}
inline cuda::Launch conv_launch(int64_t across, int64_t y, int64_t z, int threads) {
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(threads);
  l.grid[0] = cuda::grid_size(ceil_div(across, threads));
  l.grid[1] = cuda::grid_size(y), l.grid[2] = cuda::grid_size(z), l.pdl = true;
  return l;
}
/// Empty, or why the grid would be too large.
inline std::string conv_unsupported(int64_t y, int64_t z) {
  if (y < 65536 && z < 65536) return {};
  return str("the call needs a grid of ", y, " x ", z, " blocks, but a GPU's may be at most 65535 each");
}

}  // namespace flashinfer::ops::linear_attention
