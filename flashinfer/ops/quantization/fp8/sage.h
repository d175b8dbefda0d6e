// SPDX-License-Identifier: Apache-2.0
// Queries, keys and values as SageAttention takes them: 8 bits with f32 scale factors.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

namespace flashinfer {

/// q = x / scale, divided in f32, rounded to nearest even, saturating. Of query and key, a head's scale is
/// max |x| / qmax of q_block_size (k_block_size) tokens; qmax is 127 (int8) or 448 (e4m3). Of value, a channel's scale
/// is max |x| / 448 over all tokens. A block of zeros has scale 1. NaN stays NaN in e4m3 and is 0 in int8. Returns the
/// six tensors in the order below. ValueError: shapes that do not fit together, a block size other than 1, 4 and 16,
/// another qk_quant_dtype. NotImplementedError: cum_seq_lens_q, cum_seq_lens_kv, smooth_k.
struct TrtllmSageAttentionQuantize {
  TensorView query;  // [n, h, d] f16|bf16, contiguous
  TensorView key;    // [m, g, d]
  TensorView value;  // [m, g, d]
  int64_t q_block_size = 1, k_block_size = 16;
  DType qk_quant_dtype = DType::kI8;
  std::optional<TensorView> cum_seq_lens_q{}, cum_seq_lens_kv{};  // unsupported
  bool smooth_k = false;                                          // true is unsupported
  std::optional<TensorView> q_quant{}, k_quant{}, v_quant{};      // C++ only: memory for the results
  std::optional<TensorView> q_scale{};                            // f32 [h, ceil(n / q_block_size)]
  std::optional<TensorView> k_scale{};                            // f32 [g, ceil(m / k_block_size)]
  std::optional<TensorView> v_scale{};                            // f32 [g, d]
};
op::Results trtllm_sage_attention_quantize(const TrtllmSageAttentionQuantize& args);

}  // namespace flashinfer
