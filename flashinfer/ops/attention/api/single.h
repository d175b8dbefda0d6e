// SPDX-License-Identifier: Apache-2.0
// Attention of one request (semantics: attention/op.h).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Result of an attention call: o, or {o, lse} with return_lse.
using AttentionResult = op::Results;

struct SingleDecode {
  TensorView q;  // [Hq, D]
  TensorView k;  // NHD [kv_len, Hkv, D], HND [Hkv, kv_len, D]
  TensorView v;  // as k; its D may differ
  std::string kv_layout = "NHD";
  std::string pos_encoding_mode = "NONE";  // NONE, ROPE_LLAMA, ALIBI
  bool use_tensor_cores = false;
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{};
  std::optional<double> sm_scale{};                  // 1 / sqrt(D)
  std::optional<double> rope_scale{}, rope_theta{};  // 1, 1e4
  bool return_lse = false;
  std::optional<TensorView> out{}, lse{};  // C++ only: memory for the results, [Hq, Dvo] as q and [Hq] f32
};
AttentionResult single_decode_with_kv_cache(const SingleDecode& args);

struct SinglePrefill {
  TensorView q;                                               // [qo_len, Hq, Dqk]
  TensorView k;                                               // NHD [kv_len, Hkv, Dqk], HND [Hkv, kv_len, Dqk]
  TensorView v;                                               // NHD [kv_len, Hkv, Dvo], HND [Hkv, kv_len, Dvo]
  std::optional<TensorView> scale_q{}, scale_k{}, scale_v{};  // f32 [Hq], [Hkv], [Hkv]: factors of q, k, v
  std::optional<DType> o_dtype{};                             // q's
  std::optional<TensorView> custom_mask{};                    // bool [qo_len, kv_len]
  std::optional<TensorView> packed_custom_mask{};             // u8 [ceil(qo_len * kv_len / 8)], little-endian bits
  bool causal = false;
  std::string kv_layout = "NHD";
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> sm_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{};
  std::optional<double> rope_scale{}, rope_theta{};
  std::string backend = "auto";
  bool return_lse = false;
  std::optional<op::PagedKv> kv_cache_sf{};  // (k_sf, v_sf) of NVFP4 K and V (u8, dims halved): e4m3, one for 16 values
  std::optional<double> k_scale{}, v_scale{};
  std::optional<TensorView> out{}, lse{};  // C++ only: memory for the results
};
AttentionResult single_prefill_with_kv_cache(const SinglePrefill& args);

}  // namespace flashinfer

#pragma GCC visibility pop
