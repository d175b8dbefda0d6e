// SPDX-License-Identifier: Apache-2.0
// Prefill of whole, un-absorbed heads without plan(): ragged batches and batches of equal lengths (semantics:
// attention/op.h). K and V may have different head dims (192 and 128 of DeepSeek).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out = bmm2_scale * softmax(bmm1_scale * q k^T) v. A request without keys has zeros and an LSE of -inf.
///
/// Codes of 8 bits with scales, as trtllm_sage_attention_quantize makes them: sage_attn_sfs has f32 scales of query
/// [Hq, blocks], of key [Hkv, blocks], None, and of value [Hkv, Dvo], num_elts_per_sage_attn_blk the tokens of a block
/// of query and key, 0, and 1. With as many blocks as all tokens make, token i is in block i / tokens; with one more
/// for each further request, in the one that trtllm_sage_attention_quantize says. The codes are multiplied by their
/// scales in f32 before attention, which is f32 too. An 8-bit value beside a 16-bit key is converted exactly.
struct TrtllmRaggedDeepseek {
  TensorView query;                                       // [cum_seq_lens_q[B], Hq, Dqk]; int8 with sage_attn_sfs
  TensorView key, value;                                  // [cum_seq_lens_kv[B], Hkv, Dqk], [.., Dvo]
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};  // the library allocates what it needs itself
  TensorView seq_lens;                                    // [B] or [B, 1, 1, 1]: KV lengths, those of cum_seq_lens_kv
  int64_t max_q_len = INT64_MAX, max_kv_len = INT64_MAX;  // at least the lengths
  op::ScalarOrTensor bmm1_scale = 1.0, bmm2_scale = 1.0;
  double o_sf_scale = -1;  // of a 4-bit output: without effect
  int64_t batch_size = 0;
  int64_t window_left = -1;
  TensorView cum_seq_lens_q, cum_seq_lens_kv;  // [B+1]
  std::optional<bool> enable_pdl{};
  bool is_causal = false, return_lse = false;
  std::optional<TensorView> attention_sinks{};                  // [Hq] f32
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  std::optional<TensorView> out{};                              // [tokens, Hq, Dvo]; query's dtype, bf16 for 8 bits
  std::optional<TensorView> lse{};                              // [tokens, Hq] f32, base 2
  op::Value sage_attn_sfs{op::TupleValue{{op::Value(), op::Value(), op::Value(), op::Value()}}};
  op::Value num_elts_per_sage_attn_blk{
      op::TupleValue{{op::Value(int64_t{0}), op::Value(int64_t{0}), op::Value(int64_t{0}), op::Value(int64_t{0})}}};
  std::string backend = "trtllm-gen";
  // [B]; must agree with the indptrs. In host memory also where the other tensors are on a GPU, and then no more than
  // max_q_len and max_kv_len.
  std::optional<TensorView> q_seq_lens_cpu{}, kv_seq_lens_cpu{};
  std::optional<bool> use_fp16_softmax{}, uses_spcompress{};  // unsupported when true
  bool skip_all_rows_active_check = true;                     // without effect: empty requests are legal
};
op::Results trtllm_ragged_attention_deepseek(const TrtllmRaggedDeepseek& args);

/// out = v_scale * softmax(q_scale * k_scale * sm_scale * q k^T) v over ragged requests.
struct FmhaVarlen {
  TensorView q;                                       // [tokens, Hq, Dqk]
  TensorView k, v;                                    // [tokens, Hkv, Dqk], [tokens, Hkv, Dvo]
  TensorView qo_segment_offsets, kv_segment_offsets;  // [B+1]
  op::Value plan_info{};                              // of GPU kernels: without effect
  std::optional<int64_t> max_qo_len{};                // at least every request's rows
  std::optional<TensorView> out{};                    // [tokens, Hq, Dvo]; q's dtype, bf16 for 8 bits
  std::optional<TensorView> lse{};                    // [tokens, Hq] f32, base 2
  bool causal = false;
  std::optional<double> sm_scale{};  // 1 / sqrt(Dqk)
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<double> o_scale{};  // unsupported: of 8-bit outputs
  bool return_lse = false;
};
op::Results fmha_varlen(const FmhaVarlen& args);

/// Causal attention of requests of one length: out = scale_bmm2 * softmax(scale_bmm1 * q k^T) v.
struct FmhaV2Deepseek {
  TensorView query;                          // [B, S, H, Dqk]
  TensorView key, value;                     // [B, S, H, Dqk], [B, S, H, Dvo]
  std::optional<TensorView> out{};           // [B, S, H, Dvo], written; needed
  int64_t num_heads = 0, head_dim = 0;       // H, Dqk
  int64_t seq_len = 0;                       // S
  double scale_softmax = 0;                  // of the GPU kernel's 8-bit probabilities: without effect
  std::optional<double> scale_bmm1{};        // q's scale * k's scale * softmax scale; needed, or scale_bmm1_d
  std::optional<double> scale_bmm2{};        // v's scale; 1
  bool return_lse = false;                   // unsupported
  std::optional<TensorView> lse{};           // unsupported
  std::optional<TensorView> scale_bmm1_d{};  // [1] f32 instead of scale_bmm1
  std::optional<TensorView> scale_bmm2_d{};  // [1] f32 instead of scale_bmm2
};
op::Results fmha_v2_prefill_deepseek(const FmhaV2Deepseek& args);

/// The same, causal or not (names and needed arguments as there).
struct FmhaV2Sm120 {
  TensorView query, key, value;
  std::optional<TensorView> out{};
  int64_t num_heads = 0, head_dim = 0, seq_len = 0;
  double scale_softmax = 0;  // without effect
  std::optional<double> scale_bmm1{}, scale_bmm2{};
  bool causal = true;
  bool return_lse = false;                                   // unsupported
  std::optional<TensorView> lse{};                           // unsupported
  std::optional<TensorView> scale_bmm1_d{}, scale_bmm2_d{};  // [1] f32 instead of the numbers
};
op::Results fmha_v2_prefill_sm120(const FmhaV2Sm120& args);

}  // namespace flashinfer

#pragma GCC visibility pop
