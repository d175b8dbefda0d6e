// SPDX-License-Identifier: Apache-2.0
// The interface of upstream's cuDNN attention (semantics: attention/op.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Batch decode over pages [P, Hkv, ps, D] with a dense page table. out = softmax(scale * q k^T) v.
/// ValueError: shapes, lengths beyond the page table, a request with fewer keys than query rows, offsets of q and out
/// other than those of rows that follow each other.
struct CudnnBatchDecode {
  TensorView q;                 // [B * q_len_per_req, Hq, D]; causal among the rows of a request
  TensorView k_cache, v_cache;  // [P, Hkv, ps, D], any strides of pages, heads and tokens
  double scale = 0;
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};  // the library allocates what it needs itself
  int64_t max_sequence_kv = INT64_MAX;                    // at least every length
  std::optional<TensorView> actual_seq_lens_kv{};         // [B] or [B, 1, 1, 1]; needed
  std::optional<TensorView> block_tables{};               // [B, pages]; needed
  bool is_cuda_graph_compatible = false;
  std::optional<TensorView> batch_offsets_q{}, batch_offsets_o{};  // [B] or [B+1] in elements
  std::optional<TensorView> batch_offsets_k{}, batch_offsets_v{};  // unsupported: pages have none
  std::optional<TensorView> out{};                                 // as q
  bool return_lse = false;
  std::optional<TensorView> lse{};  // [B * q_len_per_req, Hq] f32, base 2
  int64_t q_len_per_req = 1;
  int64_t window_left = -1;
  std::optional<TensorView> sinks{};  // [Hq] f32
};
op::Results cudnn_batch_decode_with_kv_cache(const CudnnBatchDecode& args);

/// Batch prefill over pages [P, Hkv, ps, D] with a dense page table, or over ragged K and V [tokens, Hkv, D]. Returns
/// (out, lse); without return_lse the second is None in Python. The LSE is padded: row i of request b lies at [b, i],
/// and rows behind a request's last are -inf.
/// Where a request's query rows begin is given by batch_offsets_q, which may be absent for one request; the first row
/// of its keys by batch_offsets_k (ragged). Offsets are in elements of the tensor (rows * heads * dim), or in rows with
/// batch_offsets_units "tokens"; in the second form they imply lengths that are absent.
/// ValueError: offsets that are missing, that are no multiples of a row, or that disagree with the lengths.
struct CudnnBatchPrefill {
  TensorView q;                 // [tokens, Hq, Dqk]
  TensorView k_cache, v_cache;  // [P, Hkv, ps, D] or [tokens, Hkv, D]
  double scale = 0;
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};
  int64_t max_token_per_sequence = INT64_MAX, max_sequence_kv = INT64_MAX;  // at least every length
  std::optional<TensorView> actual_seq_lens_q{}, actual_seq_lens_kv{};      // [B] or [B, 1, 1, 1]
  std::optional<TensorView> block_tables{};                                 // [B, pages]
  bool causal = false;
  bool return_lse = false;
  std::optional<TensorView> q_scale{}, k_scale{}, v_scale{};       // one f32 each
  std::optional<TensorView> batch_offsets_q{}, batch_offsets_o{};  // [B+1]
  std::optional<TensorView> batch_offsets_k{}, batch_offsets_v{};  // [B+1], ragged
  std::optional<TensorView> batch_offsets_stats{};                 // unsupported
  std::string batch_offsets_units = "elements";
  std::optional<TensorView> out{};  // [tokens, Hq, Dvo]
  std::optional<TensorView> lse{};  // [B, max_token_per_sequence, Hq] f32
  bool is_cuda_graph_compatible = false;
  std::optional<std::string> backend{};
  std::optional<DType> o_data_type{};  // q's, bf16 for 8-bit q
  std::string lse_base = "log2";
};
op::Results cudnn_batch_prefill_with_kv_cache(const CudnnBatchPrefill& args);

}  // namespace flashinfer

#pragma GCC visibility pop
