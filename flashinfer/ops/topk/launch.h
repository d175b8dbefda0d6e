// SPDX-License-Identifier: Apache-2.0
// What the ops of the family share: parameters, tasks, the kernel.
#pragma once
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/topk/kernels/cuda_params.h"
#include "flashinfer/ops/topk/kernels/params.h"
#include "flashinfer/ops/topk/kernels/words.h"

namespace flashinfer::ops::topk {

inline constexpr jit::Kernel kTopK{"flashinfer/ops/topk/kernels/cpu/topk.h", "flashinfer::cpu::top_k",
                                   "flashinfer::TopKParams"};

template <class B>
TopKConfig config_of(const B& a) {
  return {.dtype = a.input.dtype()};
}
template <class B>
TopKParams params_of(const B& a) {
  TopKParams p{};
  p.input = a.input.data();
  p.rows = a.input.size(0);
  p.d = a.input.size(1);
  p.k = a.k;
  p.input_stride = a.input.stride(0);
  p.large = a.tie_break == 2;
  p.rows_per_task = rows_per_task(p.rows, p.d * a.input.item_size());
  return p;
}
/// What all of them ask of input, k and tie_break.
template <class B>
void check_common(const B& a) {
  FI_CHECK(a.tie_break >= 0 && a.tie_break <= 2, ValueError, "tie_break is ", a.tie_break,
           ", but must be 0 (any), 1 (smaller index) or 2 (larger index)");
}
inline RowIndices row_indices(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->dtype() == DType::kI64};
}
// ---- on a GPU ----
inline constexpr jit::Kernel kTopKCuda{"flashinfer/ops/topk/kernels/cuda/topk.cuh", "flashinfer::cu::top_k",
                                       "flashinfer::TopKCudaParams"};
inline StridedIndices cuda_indices(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->dtype() == DType::kI64};
}
/// The parameters that all of them share.
TopKCudaParams cuda_params_of(const TensorView& input, int64_t k, int64_t tie_break);
/// A block for each row; allocates the keys of large sorted results.
op::Prepared prepare_top_k_cuda(const TensorView& input, const TopKCudaParams& p, Device device);

extern const op::Op page_table_op, ragged_op;  // transform.cc
extern const op::Op varlen_op;                 // varlen.cc

}  // namespace flashinfer::ops::topk
