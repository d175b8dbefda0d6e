// SPDX-License-Identifier: Apache-2.0
// From the blocks of this family to the Params of its kernels on a GPU, which read all index arrays themselves.
#pragma once
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/msa/inputs.h"
#include "flashinfer/ops/msa/kernels/cuda_params.h"

namespace flashinfer::msa {

inline StridedIndices cuda_indices(const TensorView* t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->dtype() == DType::kI64};
}
inline void set_batch(MsaCudaParams& p, const Batch& b, const TensorView& k) {
  p.cu_q = cuda_indices(b.cu_seqlens_q), p.cu_k = cuda_indices(b.cu_seqlens_k), p.used = cuda_indices(b.seqused_k);
  p.requests = b.requests(), p.seqlen_q = b.seqlen_q, p.causal = b.causal, p.pool = k.size(0);
  if (b.q_offset) {
    p.offsets = cuda_indices(b.q_offset->tensor()), p.has_offset = 1;
    if (!p.offsets.data) p.offset = static_cast<int64_t>(b.q_offset->number());
  }
  if (!b.page_table) return;
  p.pages = b.page_table->data_as<int32_t>();
  p.page_table_stride = b.page_table->stride(0), p.columns = b.page_table->size(1);
}
/// Whether all rows begin where the kernels on tensor cores load eight elements at once.
inline bool rows_aligned(const TensorView& t) {
  const int64_t bytes = is_nvfp4(t) ? 4 : 8 * t.item_size();
  uint64_t all = reinterpret_cast<uintptr_t>(t.data());
  for (int i = 0; i + 1 < t.rank(); ++i)
    if (t.size(i) > 1) all |= static_cast<uint64_t>(t.stride(i) * t.item_size());
  return all % static_cast<uint64_t>(bytes) == 0;
}
inline bool on_cores(const TensorView& q, const TensorView& k, Device device) {
  return q.dtype() == DType::kF32 || !rows_aligned(q) || !rows_aligned(k) ||
         !jit::arch_of_number(jit::arch_number(device)).async_copy;
}

}  // namespace flashinfer::msa
