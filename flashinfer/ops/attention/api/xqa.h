// SPDX-License-Identifier: Apache-2.0
// The interface of upstream's XQA kernels over a dense page table (semantics: attention/op.h). The rows of a request
// are the last tokens of its cache. With several rows a mask says which of them see each other; all see the tokens
// before them. A mask is one bit for each pair of rows of a request: u16 words of 16 bits, low bit first, ceil(rows /
// 32) * 2 words a row.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// output = bmm2_scale * softmax(bmm1_scale * q k^T) v. Returns the output.
/// ValueError: shapes, lengths beyond the page table, a mask that is missing though a request may have several rows.
struct XqaBatchDecode {
  TensorView query;  // [B * q_len_per_req, Hq, D], or [q_cu_seq_lens[B], Hq, D]
  op::PagedKv kv_cache;
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};  // the library allocates what it needs itself
  TensorView block_tables;                                // [B, pages]; only pages that seq_lens needs are read
  TensorView seq_lens;                                    // [B] tokens in the cache
  int64_t max_seq_len = INT64_MAX;                        // at least every seq_lens
  op::ScalarOrTensor bmm1_scale = 1.0, bmm2_scale = 1.0;
  int64_t window_left = -1;
  std::optional<TensorView> out{};    // as query, or e4m3: rounded from f32, saturating
  std::optional<TensorView> sinks{};  // f32, one for each query head
  std::string kv_layout = "NHD";
  std::optional<bool> enable_pdl{};
  int64_t q_len_per_req = 1;  // with q_cu_seq_lens: at least every request's
  double o_scale = 1.0;       // value of one unit of an e4m3 out: bmm2_scale is divided by it already
  std::optional<TensorView> mask{};
  std::optional<op::PagedKv> kv_cache_sf{};
  std::optional<TensorView> q_cu_seq_lens{};  // [B+1] first row of each request
};
op::Results xqa_batch_decode_with_kv_cache(const XqaBatchDecode& args);

/// output = kv_scale * rcp_out_scale * softmax(q_scale * kv_scale / sqrt(D) * q k^T) v. Returns nothing.
struct Xqa {
  TensorView q;                        // [B, 1, Hq, D], [B, 1, q_seq_len, Hq, D], or [q_cu_seq_lens[B], Hq, D]
  TensorView k_cache;                  // [P, page_size, Hkv, D], or HND
  TensorView v_cache;                  // as k_cache
  TensorView page_table;               // [B, pages]
  TensorView seq_lens;                 // [B] or [B, 1]
  std::optional<TensorView> output{};  // as q, or e4m3: rounded from f32, saturating; needed
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};
  TensorView semaphores{nullptr, DType::kU32, {0}};  // of GPU kernels
  int64_t num_kv_heads = 0, page_size = 0;           // those of the caches
  std::optional<TensorView> sinks{};                 // f32 [Hkv, Hq / Hkv]
  op::ScalarOrTensor q_scale = 1.0, kv_scale = 1.0;
  int64_t sliding_win_size = 0;  // a row sees so many keys, its own among them; 0: all
  std::string kv_layout = "NHD";
  std::optional<int64_t> sm_count{};
  std::optional<bool> enable_pdl{};
  double rcp_out_scale = 1.0;
  int64_t q_seq_len = 1;
  std::optional<TensorView> mask{};
  std::optional<TensorView> q_cu_seq_lens{};
  std::optional<TensorView> k_sf_cache{}, v_sf_cache{};  // e4m3 scale factors of NVFP4 caches
};
void xqa(const Xqa& args);

/// output = kv_scale * softmax(q_scale * kv_scale * q k^T) v[..., :512]: latent attention whose q_scale includes the
/// softmax scale. Returns nothing.
struct XqaMla {
  TensorView q;                        // [B, 1, H, D], D = 576 of DeepSeek
  TensorView k_cache;                  // [P, page_size, 1, D], [P, page_size, D] or [P * page_size, D]
  TensorView v_cache;                  // as k_cache; only its first 512 elements are read
  TensorView page_table;               // [B, pages]
  TensorView seq_lens;                 // [B] or [B, 1]
  std::optional<TensorView> output{};  // [B, 1, H, 512], may be e4m3, written; needed
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};
  TensorView semaphores{nullptr, DType::kU32, {0}};
  int64_t page_size = 0;
  op::ScalarOrTensor q_scale = 1.0, kv_scale = 1.0;
  std::optional<int64_t> sm_count{};
  std::optional<bool> enable_pdl{};
};
void xqa_mla(const XqaMla& args);

}  // namespace flashinfer

#pragma GCC visibility pop
