// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: routing of tokens to experts, and the experts themselves. Results do not depend on the number of
// threads nor on the other tokens: the k experts of a token are added in the order of its routing.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/moe/gen_routing.h"
#include "flashinfer/ops/moe/hash.h"
#include "flashinfer/ops/moe/lora.h"
#include "flashinfer/ops/moe/lora_steps.h"
#include "flashinfer/ops/moe/moe_gemm.h"
#include "flashinfer/ops/moe/trtllm.h"
#include "flashinfer/ops/moe/workspace.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Not in FlashInfer: top_k experts of each token by one of the routing methods (RoutingMethodType), in f32, the
/// largest first, ties to the smaller id, NaN after all numbers. routing_bias absent: zeros.
///   0 Default            softmax over all, weights are those of the chosen
///   1 Renormalize        softmax over the chosen logits
///   2 DeepSeekV3         s = sigmoid(logit), b = s + bias; a group's score is the sum of its two largest b; experts of
///                        the topk_group best of n_group groups by b; weight s / (sum + 1e-20) * routed_scaling_factor
///   3 Llama4             top_k = 1, weight sigmoid(logit)
///   4 RenormalizeNaive   as 0, divided by their sum
///   5 TopK               weight is the logit
///   6 SigmoidRenorm      sigmoid, divided by the sum when norm_topk_prob
///   7 MiniMax2           as 2 with one group
///   8 Sigmoid, 9 TopKSigmoid   sigmoid of the chosen
/// ValueError: top_k outside [1, e], a bias for other methods than 2 and 7, groups that do not divide
/// e or hold fewer than top_k experts, groups or a factor for methods that have none.
struct MoeRouting {
  TensorView routing_logits;  // [t, e] f32|bf16|f16
  int64_t routing_method = 0;
  int64_t top_k = 0;
  std::optional<TensorView> routing_bias = {};  // [e] f32|bf16|f16
  int64_t n_group = 0;                          // 0 or 1: one group
  int64_t topk_group = 0;                       // 0: all groups
  double routed_scaling_factor = 1.0;
  bool norm_topk_prob = true;
  std::optional<TensorView> topk_ids = {};      // C++ only: memory for the results, i32 [t, top_k]
  std::optional<TensorView> topk_weights = {};  // f32 [t, top_k]
};
std::pair<Tensor, Tensor> moe_routing(const MoeRouting& args);

/// Method 2 into given memory. ValueError: as moe_routing, topk > 8, n_group > 32, e / n_group > 32 or e / n_group *
/// topk_group > 128 with groups, e > 384 without, a tensor that is not contiguous.
struct FusedTopkDeepseek {
  TensorView scores;  // [t, e] f32|f16|bf16, logits
  TensorView bias;    // [e] as scores
  int64_t n_group = 0, topk_group = 0, topk = 0;
  double routed_scaling_factor = 0;
  TensorView topk_values;                             // [t, topk] as scores, written
  TensorView topk_indices;                            // i32 [t, topk], written
  bool launch_with_pdl = true;                        // CUDA only
  std::optional<TensorView> routing_replay_out = {};  // i16 [>= t, topk]: the first t rows get the ids
  std::string backend = "default";
};
void fused_topk_deepseek(const FusedTopkDeepseek& args);

/// out[t] = sum over j of token_final_scales[t, j] * (fc2[e] . act(fc1[e] . input[t] + bias1[e]) + bias2[e]), e =
/// token_selected_experts[t, j], over the experts of this rank: [ep_rank * E, ep_rank * E + E). The rows of fc1 are
/// first the linear ("up") half, then the gate. quant_scales by the weights' dtype and the flags; "sf": ue8m0 or e4m3
/// scale factors of each expert, "factor": f32 [E] or one, applied after a product:
///   bf16          none: the activation is rounded to bf16, everything else stays in f32
///   e4m3          factor 1, the activations' before their cast to e4m3 [1], factor 2, and one that is unused; an input
///                 of e4m3
///   e4m3, use_deepseek_fp8_block_scale    f32 [E, n/128, k/128] for both weights; rows are quantised by 128 columns
///                 (amax / 448) on the fly
///   e4m3, use_mxfp8_act_scaling           sf 1 (128x4), factor 1, sf 2, factor 2; the input is quantised, or e4m3 with
///                 input_sf
///   uint8 (NVFP4) gs of the input [1], sf 1 (e4m3, 128x4), factor 1, gs of the activation [1], sf 2, factor 2; an
///                 input of 16 bits is quantised, one of uint8 needs input_sf
///   uint8 (MXFP4), use_w4_group_scaling   sf 1, sf 2, linear [E, n, k/32]; rows of 16 bits are not quantised
///   uint8 (int4 in two's complement), use_w4_group_scaling, eight scales: [E, n, k/128] for both weights,
///                 pre-quantization scales of rows and activations (one number, or one a column) for both products, two
///                 without elements (no zeros), factor 1 and 2
///                 use_packed_weights may say so too
///   the last two in the order of FlashInfer's kernels for SM90 (sm90_order.h), when the scales have five dimensions,
///                 [E, n/64, k/128, ...]; scales of int4, and those before the products in 16 bits, are bfloat16
///                 whatever their dtype; not on GPUs. Codes of the experts used are put in plain order in each call.
///   uint8 (MXFP4), use_mxfp8_act_scaling  sf 1 (128x4), factor 1, sf 2, factor 2; input as for e4m3
///   uint8 (MXFP4), five scales            sf 1 (128x4), factor 1, the activations' before their cast to e4m3, sf 2,
///                 factor 2; an input of e4m3
/// Activations (ActivationType), with u the linear half and g the gate, where there is one:
///   0 Gelu, 1 Relu, 2 Silu, 6 Relu2, 9 Identity
///   3 Swiglu       silu(g) u; with alpha, beta or limit as 5
///   4 Geglu        gelu(g) u
///   5 SwigluBias   g = min(g, limit), u = clamp(u, -limit, limit): g sigmoid(alpha g) (u + beta)
///   7 SwigluStep   min(silu(g), 7) clamp(u, -7, 7)
///   8 GegluTanh    gelu_tanh(g) u
///   10 Situ        b tanh(g / b) sigmoid(g) l tanh(u / l)
///   12 ClampedRelu2  (limit tanh(relu(x) / limit))^2
/// With tp_size > 1, i is this rank's share, the result must be summed over ranks, and rank 0 adds bias2.
///
/// ValueError: inconsistent extents, dtypes or ranks, an expert outside all ranks' (enable_alltoall: such entries are
/// skipped), arguments of another activation or mode. NotImplementedError: the modes whose flag is set, a cluster of
/// more than one.
struct CutlassFusedMoe {
  TensorView input;                   // [t, h] bf16|f16|f32, e4m3, or uint8 [t, h/2]
  TensorView token_selected_experts;  // [t, k] i32|i64
  TensorView token_final_scales;      // [t, k] f32
  TensorView fc1_expert_weights;      // [E, 2i, h] (no gate: [E, i, h]), FP4: bytes, or int64 of 8 bytes; or both
                                      // weights from prepare_quantized_weights
  TensorView fc2_expert_weights;      // [E, h, i]
  DType output_dtype = DType::kBF16;
  std::optional<std::vector<TensorView>> quant_scales = {};
  std::optional<TensorView> fc1_expert_biases = {};  // [E, 2i] or [E, i]
  std::optional<TensorView> fc2_expert_biases = {};  // [E, h]
  std::optional<TensorView> input_sf = {};           // e4m3|uint8 scale factors of a uint8 input
  std::optional<TensorView> swiglu_alpha = {}, swiglu_beta = {}, swiglu_limit = {};  // f32 [E]
  int64_t tp_size = 1, tp_rank = 0, ep_size = 1, ep_rank = 0, cluster_size = 1, cluster_rank = 0;
  std::optional<TensorView> output = {};  // [t, h] output_dtype
  bool enable_alltoall = false;
  bool use_deepseek_fp8_block_scale = false, use_w4_group_scaling = false, use_mxfp8_act_scaling = false,
       min_latency_mode = false;
  bool use_packed_weights = false, use_wfp4afp8_humming = false;
  int64_t tune_max_num_tokens = 8192;   // CUDA only
  std::optional<bool> enable_pdl = {};  // CUDA only
  int64_t activation_type = 3;
  bool swizzled_input_sf = true;
  bool use_fused_finalize = true;                        // the sum has one order either way
  std::optional<std::vector<int64_t>> profile_ids = {};  // CUDA only
  std::optional<TensorView> workspace_buffer = {};       // CUDA only: scratch comes from the context's allocator
  std::optional<TensorView> clamped_relu2_limit = {};    // f32, one element; for ClampedRelu2
  std::optional<TensorView> situ_beta = {}, situ_linear_beta = {};  // f32 [E], for Situ; 4 and 25 when absent
  std::string backend = "cutlass";
};
Tensor cutlass_fused_moe(const CutlassFusedMoe& args);

}  // namespace flashinfer

#pragma GCC visibility pop
