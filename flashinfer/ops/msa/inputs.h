// SPDX-License-Identifier: Apache-2.0
// What the ops of this family read alike: requests, keys in blocks, scale factors.
#pragma once
#include <optional>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/common/nvfp4.h"
#include "flashinfer/ops/msa/kernels/params.h"
#include "flashinfer/ops/msa/op.h"

namespace flashinfer::msa {

/// The requests of a call: rows, keys and positions.
struct Batch {
  const TensorView* cu_seqlens_q = nullptr;  // null: each request has seqlen_q rows
  int64_t seqlen_q = 0;
  const TensorView *cu_seqlens_k = nullptr, *page_table = nullptr, *seqused_k = nullptr;
  const op::ScalarOrTensor* q_offset = nullptr;
  bool causal = false;

  int64_t requests() const { return page_table ? page_table->size(0) : cu_seqlens_k->size(0) - 1; }
  int64_t first_row(int64_t b) const { return cu_seqlens_q ? op::index_at(*cu_seqlens_q, b) : b * seqlen_q; }
  int64_t first_key(int64_t b) const { return page_table ? 0 : op::index_at(*cu_seqlens_k, b); }
  int64_t keys(int64_t b) const {
    return page_table ? op::index_at(*seqused_k, b)
                      : op::index_at(*cu_seqlens_k, b + 1) - op::index_at(*cu_seqlens_k, b);
  }
  int64_t blocks(int64_t b) const { return ceil_div(keys(b), kMsaBlock); }
  /// Of all requests. Lengths on a GPU are copied, which waits for its stream.
  int64_t most_blocks() const;
  /// Whether the host can read the index arrays: not on a GPU, where their contents are not checked.
  bool readable() const;
  /// How many keys row i of request b sees.
  int64_t visible(int64_t b, int64_t i) const;
};

template <class B>
Batch batch_of(const B& a) {
  Batch batch;
  if constexpr (requires { a.cu_seqlens_q; })
    batch.cu_seqlens_q = &a.cu_seqlens_q;
  else
    batch.seqlen_q = a.seqlen_q;
  if (a.cu_seqlens_k) batch.cu_seqlens_k = &*a.cu_seqlens_k;
  if (a.page_table) batch.page_table = &*a.page_table;
  if (a.seqused_k) batch.seqused_k = &*a.seqused_k;
  if (a.q_offset) batch.q_offset = &*a.q_offset;
  batch.causal = a.causal;
  return batch;
}

/// ValueError unless rows, lengths and pages fit together and to n rows; K is [keys, g, ..] or [pages, g, 128, ..].
void check_batch(const Batch& b, int64_t n, const char* k_name, const TensorView& k);
/// ValueError unless `heads` is a multiple of K's.
void check_heads(int64_t heads, const TensorView& k, const char* k_name);
/// ValueError unless `scale` is what `rows` rows of NVFP4 need; `t` is the data, whose rows are 64 bytes.
void check_nvfp4(const char* name, const TensorView& t, const char* scale_name, const std::optional<TensorView>& scale);
/// Pages that a row needs: those of all blocks up to `blocks`, or of the selected ones.
void check_page(const Batch& b, int64_t request, int64_t block, int64_t pages, const char* k_name);

inline bool is_nvfp4(const TensorView& t) { return ops::kFp4Bytes.has(t.dtype()); }
inline DType kernel_dtype(const TensorView& t) { return is_nvfp4(t) ? DType::kU8 : t.dtype(); }
/// Keys of a flat or paged tensor are on this axis.
inline int64_t heads_of(const TensorView& k) { return k.size(1); }
inline MsaTensor tensor_of(const TensorView& t, const std::optional<TensorView>& scale) {
  MsaTensor m{.data = t.data(), .page = 0, .head = t.stride(1), .token = t.stride(0), .scale = nullptr};
  if (t.rank() == 4) m.page = t.stride(0), m.token = t.stride(2);
  if (scale) m.scale = static_cast<const uint8_t*>(scale->data());
  return m;
}
/// MsaRow for each of n rows, in memory that the launch keeps.
Tensor rows_of(const Batch& b, int64_t n);

}  // namespace flashinfer::msa
