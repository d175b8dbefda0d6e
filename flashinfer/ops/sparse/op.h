// SPDX-License-Identifier: Apache-2.0
// Block-sparse attention (semantics: attention/op.h).
//
// BlockSparseAttentionWrapper: rows in blocks of R, keys in blocks of C, one pattern for all heads: row block r attends
// to the key blocks indices[indptr[r] .. indptr[r+1]]. VariableBlockSparseAttentionWrapper: a pattern and block sizes
// for each KV head. A key block is a page of the cache and a row block a request, so that no index is written for each
// token; where sizes vary, a page is the greatest common divisor of all sizes and offsets.
//
// `causal` uses positions among the gathered keys of a row block, as in FlashInfer, not absolute ones: row i of R sees
// the first gathered - R + i + 1 of them.
//
// ValueError: a key block beyond N, M that is not R times the row blocks, mask sizes. AssertionError: inconsistent
// block maps and sizes.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct SparseInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string backend = "auto";
};
struct BlockSparsePlan {
  op::Object* self = nullptr;
  TensorView indptr;   // [M/R + 1] i32|i64
  TensorView indices;  // key blocks
  int64_t M = 0, N = 0, R = 0, C = 0;
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0;
  std::optional<TensorView> mask{};  // bool [blocks, R, C]
  std::optional<TensorView>
      packed_mask{};  // u8: convert_bsr_mask_layout, then segment_packbits of each row block, little-endian
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{};
  std::optional<DType> o_data_type{};  // q's (FlashInfer: f16, whatever q is)
  bool non_blocking = true;
  op::Value block_mask{}, kv_block_lens{}, q2k_indices{}, q2k_num{}, kv_splits{}, use_clc{}, q_scale{}, k_scale{},
      v_scale{};  // unsupported
};
struct BlockSparseRun {
  op::Object* self = nullptr;
  TensorView q, k, v;                                         // [M, Hq, D], [N, Hkv, D], [N, Hkv, D]
  std::optional<TensorView> scale_q{}, scale_k{}, scale_v{};  // f32 [Hq], [Hkv], [Hkv]: factors of q, k, v
  std::optional<TensorView> out{};                            // [M, Hq, D]
  std::optional<TensorView> lse{};                            // [M, Hq] f32, base 2
  bool return_lse = false;
  std::optional<bool> enable_pdl{};
};
/// Deprecated form of run() that overrides arguments of plan().
struct BlockSparseForward : BlockSparseRun {
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
};
class BlockSparseAttentionWrapper {
 public:
  explicit BlockSparseAttentionWrapper(SparseInit args = {});
  explicit BlockSparseAttentionWrapper(const TensorView& float_workspace_buffer, const std::string& backend = "auto");
  void plan(BlockSparsePlan args);
  op::Results run(BlockSparseRun args);
  Tensor forward(BlockSparseForward args);
  void begin_forward(BlockSparsePlan args) { plan(std::move(args)); }
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

struct VariableBlockSparsePlan {
  op::Object* self = nullptr;
  TensorView block_mask_map;  // bool [Hkv, MB, NB]
  TensorView block_row_sz;    // [Hkv, MB] i32|i64; the rows of each head add up to the same number
  TensorView block_col_sz;    // [Hkv, NB]; so do the keys
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0;
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
  bool non_blocking = true;
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{};
};
struct VariableBlockSparseRun {
  op::Object* self = nullptr;
  TensorView q, k, v;               // [Hq, rows, D], [Hkv, keys, D], [Hkv, keys, D]
  std::optional<TensorView> out{};  // [Hq, rows, D]
  std::optional<TensorView> lse{};  // [Hq, rows] f32, base 2
  bool return_lse = false;
  std::optional<bool> enable_pdl{};
};
struct VariableBlockSparseForward : VariableBlockSparseRun {
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
};
class VariableBlockSparseAttentionWrapper {
 public:
  explicit VariableBlockSparseAttentionWrapper(SparseInit args = {});
  explicit VariableBlockSparseAttentionWrapper(const TensorView& float_workspace_buffer,
                                               const std::string& backend = "auto");
  void plan(VariableBlockSparsePlan args);
  op::Results run(VariableBlockSparseRun args);
  Tensor forward(VariableBlockSparseForward args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

/// Elements of `mask` [blocks, R, C] in the order of attention: for each row block, rows one after another, each over
/// its blocks.
struct ConvertBsrMask {
  TensorView mask;                  // bool [blocks, R, C]
  TensorView indptr;                // [row blocks + 1]
  std::optional<TensorView> out{};  // C++ only: memory for the result, bool [blocks * R * C]
};
Tensor convert_bsr_mask_layout(const ConvertBsrMask& args);

}  // namespace flashinfer

#pragma GCC visibility pop
