// SPDX-License-Identifier: Apache-2.0
// The family of mixtures that compute or receive a routing, with weights in the layouts of tiled GPU kernels. The k
// experts of a token are added in the order of the routing, whatever the batch and the threads.
#pragma once
#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Storage formats of the weights and of the rows multiplied with them.
enum class MoeFormat { kBf16, kFp8PerTensor, kFp8PerChannel, kFp8Block, kFp4Block, kMxint4 };

/// out[t] = sum over j of w[t, j] * (gemm2[e] . act(gemm1[e] . hidden[t] + bias1[e]) + bias2[e]), e = the j-th expert
/// of token t, over the experts [local_expert_offset, local_expert_offset + local_num_experts), whose weights are
/// given. The logical rows of gemm1 are first the linear half, then the gate; n is 2 * intermediate_size with a gate,
/// else intermediate_size; k of gemm1 is h.
///
/// Formats of weights, scales and hidden states:
///   bf16           all bf16
///   fp8 per tensor e4m3; the sums of GEMM 1 are scaled by output1_scales_gate_scalar[e], activations are then scaled
///                  by output1_scales_scalar[e] / output1_scales_gate_scalar[e] and cast to e4m3, the sums of GEMM 2
///                  are scaled by output2_scales_scalar[e]
///   fp8 per channel as per tensor, and hidden_states_scale[t] and a factor of each (stored) row of the weights
///   fp8 block      DeepSeekFp8: e4m3 with f32 scales [E, n/128, k/128], hidden states e4m3 with hidden_states_scale
///                  [h/128, t] (of 16 bits: quantised here); activations are quantised by 128 columns. MxFp8: e4m3 with
///                  ue8m0 scales of 32 along k, of weights 128x4 when they are shuffled, else linear; of hidden states
///                  linear [t, h/32]
///   fp4 block      e2m1 with scales of 16 (e4m3: NVFP4) or 32 (ue8m0: MXFP4) along k, 128x4; hidden states uint8
///                  [t, h/2] (NVFP4), e4m3 with ue8m0 scales (MXFP4 weights) or bf16; activations in the same format.
///                  The scalars as per tensor; absent: 1
///   mxint4         int4 in two's complement, bf16 scales of 32 along k in the order of 128x4; all else bf16. Weights
///   of
///                  four dimensions are blocked (below)
///
/// Layout of weights: rows of a gated gemm1 are interleaved (linear, gate, linear, ...), then rows within each 32
/// (DeepSeekFp8: 16, and not interleaved) are permuted as by shuffle_matrix_a; biases, factors and scale factors of
/// rows likewise. bf16 and fp8 block may be unshuffled (use_shuffled_weight = false), and blocked: [E, k / b, n, b]
/// with blocks of 128 bytes (weight_layout 2; 0: [E, n, k]). hidden_states_scale [h/128, t] may have any strides.
///
/// num_fused_shared_experts (fp8 block, fp4 block): every token also goes to that many experts, whose weights follow
/// the routed ones, with weight 1; only with DeepSeekV3 routing and all experts on this rank (else ValueError). They
/// are included in the choices of a token.
///
/// With do_finalize = false the results are instead: gemm2_output bf16 [t * top_k, h], rows sorted by expert,
/// unweighted; expert_weights bf16 [t, top_k]; expanded_idx_to_permuted_idx i32 [t * top_k], the row of each choice or
/// -1.
///
/// As in FlashInfer, routing methods without a bias or a factor ignore routing_bias and routed_scaling_factor, and only
/// the fp8 block format rejects groups of other methods than DeepSeekV3. A given routing ignores all of these.
///
/// With valid_hidden_size = v the columns of hidden_states from v on are padding: GEMM 1 reads v of them, out has v
/// columns, and GEMM 2 has rows for all columns or for v rounded up to 128. With valid_intermediate_size = v GEMM 2
/// reads v columns of the activations. Neither value of padding nor of its weights is used. v must be whole blocks of
/// scales and of the blocked layout.
///
/// ValueError: as moe_routing; inconsistent extents, dtypes or layouts; arguments of another format. Activations are
/// those of cutlass_fused_moe except ClampedRelu2. SwigluStep's limit is gemm1_clamp_limit[e], times
/// output1_scale_gate_scalar[e] where there is one; 7 when absent. Situ (beta tanh(u / beta) alpha tanh(g / alpha)
/// sigmoid(g)) takes alpha, beta and a limit of its inputs from gemm1_*; 1, 1 and none when absent; otherwise they must
/// be finite and positive.
///
/// gemm1_lora_delta [t, top_k, n], logical columns, is added to the first product of each choice, behind gemm1_bias;
/// nothing is added to that of shared experts. With it the results end with gemm1_activation_output bf16 [t * top_k,
/// intermediate_size], the activations before they are quantised, rows sorted by expert, zeros behind them; and
/// expanded_idx_to_permuted_idx is a result with do_finalize = true, too.
///
/// NotImplementedError: valid_hidden_size below the full one with do_finalize = false.
template <MoeFormat F, bool Given>
struct TrtllmMoe {
  static constexpr MoeFormat kFormat = F;
  static constexpr bool kGiven = Given;  // the routing is given

  op::PagedKv topk_ids =
      {};  // given: i32 [t, top_k] of expert << 16 | bits of a bf16 weight, or a pair: i32 ids, bf16|f32 weights
  TensorView routing_logits = {};               // [t, num_experts] f32|bf16|f16
  std::optional<TensorView> routing_bias = {};  // [num_experts]
  TensorView hidden_states = {};                // [t, h], uint8: [t, h/2]
  std::optional<TensorView> hidden_states_scale = {};
  TensorView gemm1_weights = {};
  std::optional<TensorView> gemm1_weights_scale = {}, gemm1_per_channel_weight_scale = {};  // per channel: f32 [E, n]
  std::optional<TensorView> gemm1_bias = {};                                                // [E, n]
  std::optional<TensorView> gemm1_alpha = {}, gemm1_beta = {},
                            gemm1_clamp_limit = {};  // f32 [E], as swiglu_alpha... of cutlass_fused_moe
  TensorView gemm2_weights = {};
  std::optional<TensorView> gemm2_weights_scale = {}, gemm2_per_channel_weight_scale = {};
  std::optional<TensorView> gemm2_bias = {};  // [E, h]
  std::optional<TensorView> output1_scale_scalar = {}, output1_scale_gate_scalar = {},
                            output2_scale_scalar = {};  // f32 [E] or one
  int64_t num_experts = 0, top_k = 0;
  std::optional<int64_t> n_group = {}, topk_group = {};
  int64_t intermediate_size = 0, local_expert_offset = 0, local_num_experts = 0;
  std::optional<double> routed_scaling_factor = {};
  bool use_routing_scales_on_input = false;  // apply the routing weight after GEMM 1 instead of GEMM 2
  int64_t routing_method_type = 0;
  bool use_shuffled_weight = F == MoeFormat::kBf16;
  int64_t weight_layout = F == MoeFormat::kBf16 ? 2 : 0;
  bool do_finalize = true;
  std::optional<bool> enable_pdl = F == MoeFormat::kBf16 ? std::optional<bool>(true) : std::nullopt;  // CUDA only
  std::optional<TensorView> gemm1_lora_delta = {};
  int64_t tune_max_num_tokens = 8192;  // CUDA only
  int64_t fp8_quantization_type = 1;   // DeepSeekFp8 1, MxFp8 2
  int64_t activation_type = 3;
  std::optional<TensorView> per_token_scale = {};  // f32 [t]: factor applied after GEMM 1
  bool norm_topk_prob = true;
  std::optional<TensorView> routing_replay_out = {};  // i16 [>= t, top_k]: the first t rows get the ids
  std::optional<int64_t> num_fused_shared_experts = {}, valid_hidden_size = {}, valid_intermediate_size = {};
  std::optional<int64_t> hidden_states_scale_layout = {};  // None or SfLayout.layout_linear (2)
  std::optional<TensorView> output = {};                   // bf16 [t, h], with valid_hidden_size [t, v]
  std::optional<TensorView> gemm2_output = {}, expert_weights = {}, expanded_idx_to_permuted_idx = {},
                            gemm1_activation_output = {};  // C++ only: memory for the other results
};
using TrtllmBf16Moe = TrtllmMoe<MoeFormat::kBf16, false>;
using TrtllmBf16RoutedMoe = TrtllmMoe<MoeFormat::kBf16, true>;
using TrtllmFp8PerTensorScaleMoe = TrtllmMoe<MoeFormat::kFp8PerTensor, false>;
using TrtllmFp8PerTensorScaleRoutedMoe = TrtllmMoe<MoeFormat::kFp8PerTensor, true>;
using TrtllmFp8PerChannelScaleMoe = TrtllmMoe<MoeFormat::kFp8PerChannel, false>;
using TrtllmFp8PerChannelScaleRoutedMoe = TrtllmMoe<MoeFormat::kFp8PerChannel, true>;
using TrtllmFp8BlockScaleMoe = TrtllmMoe<MoeFormat::kFp8Block, false>;
using TrtllmFp8BlockScaleRoutedMoe = TrtllmMoe<MoeFormat::kFp8Block, true>;
using TrtllmFp4BlockScaleMoe = TrtllmMoe<MoeFormat::kFp4Block, false>;
using TrtllmFp4BlockScaleRoutedMoe = TrtllmMoe<MoeFormat::kFp4Block, true>;
using TrtllmMxint4BlockScaleMoe = TrtllmMoe<MoeFormat::kMxint4, false>;
using TrtllmMxint4BlockScaleRoutedMoe = TrtllmMoe<MoeFormat::kMxint4, true>;

/// `output`, or with do_finalize = false the three results; with gemm1_lora_delta see there.
op::Results trtllm_bf16_moe(const TrtllmBf16Moe& args);
op::Results trtllm_bf16_routed_moe(const TrtllmBf16RoutedMoe& args);
op::Results trtllm_fp8_per_tensor_scale_moe(const TrtllmFp8PerTensorScaleMoe& args);
op::Results trtllm_fp8_per_tensor_scale_routed_moe(const TrtllmFp8PerTensorScaleRoutedMoe& args);
op::Results trtllm_fp8_per_channel_scale_moe(const TrtllmFp8PerChannelScaleMoe& args);
op::Results trtllm_fp8_per_channel_scale_routed_moe(const TrtllmFp8PerChannelScaleRoutedMoe& args);
op::Results trtllm_fp8_block_scale_moe(const TrtllmFp8BlockScaleMoe& args);
op::Results trtllm_fp8_block_scale_routed_moe(const TrtllmFp8BlockScaleRoutedMoe& args);
op::Results trtllm_fp4_block_scale_moe(const TrtllmFp4BlockScaleMoe& args);
op::Results trtllm_fp4_block_scale_routed_moe(const TrtllmFp4BlockScaleRoutedMoe& args);
op::Results trtllm_mxint4_block_scale_moe(const TrtllmMxint4BlockScaleMoe& args);
op::Results trtllm_mxint4_block_scale_routed_moe(const TrtllmMxint4BlockScaleRoutedMoe& args);

}  // namespace flashinfer

#pragma GCC visibility pop
