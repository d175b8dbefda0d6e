// SPDX-License-Identifier: Apache-2.0
// Queries, keys and values as SageAttention takes them: 8 bits with f32 scale factors.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// q = x / scale, divided in f32, rounded to nearest even, saturating. Of query and key, a head's scale is
/// max |x| / qmax of q_block_size (k_block_size) tokens; qmax is 127 (int8) or 448 (e4m3). Of value, a channel's scale
/// is max |x| / 448 over all tokens. A block of zeros has scale 1. NaN stays NaN in e4m3 and is 0 in int8. Returns the
/// six tensors in the order below, with smooth_k also k_mean.
///
/// With cum_seq_lens_q and cum_seq_lens_kv tokens [cum[b], cum[b + 1]) belong to request b, and no block holds tokens
/// of two: token t of request b has scale cum[b] / block + b + t / block (rounded down), of ceil(n / block) + b_count -
/// 1 for a head; scales that no token has are 0. With smooth_k, k - k_mean is quantised instead of the key, k_mean[h,
/// i] being the mean over all tokens of all requests: softmax over keys does not see it, the LSE shifts by
/// -sm_scale * query . k_mean.
/// ValueError: shapes that do not fit together, a block size other than 1, 4 and 16, another qk_quant_dtype, one of the
/// cum_seq_lens without the other, offsets that do not go from 0 to the number of tokens.
struct TrtllmSageAttentionQuantize {
  TensorView query;  // [n, h, d] f16|bf16, contiguous
  TensorView key;    // [m, g, d]
  TensorView value;  // [m, g, d]
  int64_t q_block_size = 1, k_block_size = 16;
  DType qk_quant_dtype = DType::kI8;
  std::optional<TensorView> cum_seq_lens_q{}, cum_seq_lens_kv{};  // i32|i64 [requests + 1]; absent: one request
  bool smooth_k = false;
  std::optional<TensorView> q_quant{}, k_quant{}, v_quant{};  // C++ only: memory for the results
  std::optional<TensorView> q_scale{};                        // f32 [h, ceil(n / q_block_size) + requests - 1]
  std::optional<TensorView> k_scale{};                        // f32 [g, ceil(m / k_block_size) + requests - 1]
  std::optional<TensorView> v_scale{};                        // f32 [g, d]
  std::optional<TensorView> k_mean{};                         // f32 [g, d]
};
op::Results trtllm_sage_attention_quantize(const TrtllmSageAttentionQuantize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
