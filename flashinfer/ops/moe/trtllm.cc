// SPDX-License-Identifier: Apache-2.0
// The tables of the trtllm family: one of all members, and each op's signature as names in it.
#include "flashinfer/ops/moe/trtllm.h"

#include <array>

#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/ops.h"
#include "flashinfer/ops/moe/trtllm_check.h"
#include "flashinfer/ops/moe/trtllm_ref.h"

namespace flashinfer {
namespace moe::trtllm {
namespace {
template <class B>
bool finalized(const B& a) {
  return a.do_finalize;
}
template <class B>
bool apart(const B& a) {
  return !a.do_finalize;
}
template <class B>
bool indexed(const B& a) {
  return !a.do_finalize || a.gemm1_lora_delta;
}
template <class B>
bool with_delta(const B& a) {
  return a.gemm1_lora_delta.has_value();
}
template <class B>
op::Shape choices_by_inter(const B& a) {
  return {2, {a.hidden_states.size(0) * choices_of(a), a.intermediate_size}};
}
template <class B>
op::Shape tokens_by_hidden(const B& a) {
  return {2, {a.hidden_states.size(0), valid_hidden(a)}};
}
template <class B>
op::Shape choices_by_hidden(const B& a) {
  return {2, {a.hidden_states.size(0) * choices_of(a), hidden_of(a)}};
}
template <class B>
op::Shape choices(const B& a) {
  return {1, {a.hidden_states.size(0) * choices_of(a)}};
}
template <class B>
op::Shape tokens_by_choices(const B& a) {
  return {2, {a.hidden_states.size(0), choices_of(a)}};
}

template <class B>
inline constexpr op::Field kMembers[] = {
    op::in<&B::topk_ids>("topk_ids", nullptr),
    op::in<&B::routing_logits>("routing_logits", "t e", op::floats),
    op::in<&B::routing_bias>("routing_bias", "e", op::floats),
    op::in<&B::hidden_states>("hidden_states", "t columns"),
    op::in<&B::hidden_states_scale>("hidden_states_scale", nullptr, op::any_layout),
    op::in<&B::gemm1_weights>("gemm1_weights", nullptr, op::contiguous),
    op::in<&B::gemm1_weights_scale>("gemm1_weights_scale", nullptr),
    op::in<&B::gemm1_per_channel_weight_scale>("gemm1_per_channel_weight_scale", nullptr),
    op::in<&B::gemm1_bias>("gemm1_bias", nullptr),
    op::in<&B::gemm1_alpha>("gemm1_alpha", nullptr),
    op::in<&B::gemm1_beta>("gemm1_beta", nullptr),
    op::in<&B::gemm1_clamp_limit>("gemm1_clamp_limit", nullptr),
    op::in<&B::gemm2_weights>("gemm2_weights", nullptr, op::contiguous),
    op::in<&B::gemm2_weights_scale>("gemm2_weights_scale", nullptr),
    op::in<&B::gemm2_per_channel_weight_scale>("gemm2_per_channel_weight_scale", nullptr),
    op::in<&B::gemm2_bias>("gemm2_bias", nullptr),
    op::in<&B::output1_scale_scalar>("output1_scale_scalar", nullptr),
    op::in<&B::output1_scale_gate_scalar>("output1_scale_gate_scalar", nullptr),
    op::in<&B::output2_scale_scalar>("output2_scale_scalar", nullptr),
    op::in<&B::output1_scale_scalar>("output1_scales_scalar", nullptr),
    op::in<&B::output1_scale_gate_scalar>("output1_scales_gate_scalar", nullptr),
    op::in<&B::output2_scale_scalar>("output2_scales_scalar", nullptr),
    op::attr<&B::num_experts>("num_experts"),
    op::attr<&B::top_k>("top_k"),
    op::attr<&B::n_group>("n_group"),
    op::attr<&B::topk_group>("topk_group"),
    op::attr<&B::intermediate_size>("intermediate_size"),
    op::attr<&B::local_expert_offset>("local_expert_offset"),
    op::attr<&B::local_num_experts>("local_num_experts"),
    op::attr<&B::routed_scaling_factor>("routed_scaling_factor"),
    op::attr<&B::use_routing_scales_on_input>("use_routing_scales_on_input"),
    op::attr<&B::routing_method_type>("routing_method_type"),
    op::attr<&B::use_shuffled_weight>("use_shuffled_weight"),
    op::attr<&B::weight_layout>(
        "weight_layout", op::literal(B::kFormat == MoeFormat::kBf16 ? "WeightLayout.BlockMajorK" : nullptr),
        op::enumeration(B::kFormat == MoeFormat::kBf16 ? "WeightLayout: MajorK=0|MajorMn=1|BlockMajorK=2" : nullptr)),
    op::attr<&B::do_finalize>("do_finalize"),
    op::attr<&B::enable_pdl>("enable_pdl"),
    op::in<&B::gemm1_lora_delta>("gemm1_lora_delta", nullptr),
    op::attr<&B::tune_max_num_tokens>("tune_max_num_tokens"),
    op::attr<&B::fp8_quantization_type>(
        "fp8_quantization_type", op::literal("Fp8QuantizationType.DeepSeekFp8"),
        op::enumeration("Fp8QuantizationType: NoneFp8=0|DeepSeekFp8=1|MxFp8=2|PerTensorFp8=3|PerChannelFp8=4")),
    op::attr<&B::activation_type>("activation_type"),
    op::in<&B::per_token_scale>("per_token_scale", nullptr),
    op::attr<&B::norm_topk_prob>("norm_topk_prob"),
    op::inout<&B::routing_replay_out>("routing_replay_out", "rows k", DType::kI16),
    op::attr<&B::num_fused_shared_experts>("num_fused_shared_experts"),
    op::attr<&B::valid_hidden_size>("valid_hidden_size"),
    op::attr<&B::valid_intermediate_size>("valid_intermediate_size"),
    op::attr<&B::hidden_states_scale_layout>("hidden_states_scale_layout"),
    op::out<&B::output>("output", nullptr, DType::kBF16, op::shape<tokens_by_hidden<B>>, op::when<finalized<B>>),
    op::result<&B::gemm2_output>("gemm2_output", nullptr, DType::kBF16, op::shape<choices_by_hidden<B>>,
                                 op::when<apart<B>>),
    op::result<&B::expert_weights>("expert_weights", nullptr, DType::kBF16, op::shape<tokens_by_choices<B>>,
                                   op::when<apart<B>>),
    op::result<&B::expanded_idx_to_permuted_idx>("expanded_idx_to_permuted_idx", nullptr, DType::kI32,
                                                 op::shape<choices<B>>, op::when<indexed<B>>),
    op::result<&B::gemm1_activation_output>("gemm1_activation_output", nullptr, DType::kBF16, op::contiguous,
                                            op::shape<choices_by_inter<B>>, op::when<with_delta<B>>),
};
template <class B>
consteval op::Field member(std::string_view name) {
  for (const op::Field& f : kMembers<B>)
    if (f.name == name) return f;
  throw "no such member";
}

/// A signature: names of members in order, `!` behind those that have no default, `*` before those by name alone.
consteval size_t words(std::string_view text) {
  size_t n = 1;
  for (char c : text) n += c == ' ';
  return n;
}
template <class B, size_t N>
consteval std::array<op::Field, N> table(std::string_view text) {
  const bool takes_delta = text.find("gemm1_lora_delta") != text.npos;
  std::array<op::Field, N> out{};
  size_t n = 0;
  bool by_name = false, has_output = false;
  while (!text.empty()) {
    const size_t end = text.find(' ') == text.npos ? text.size() : text.find(' ');
    std::string_view word = text.substr(0, end);
    text.remove_prefix(end == text.size() ? end : end + 1);
    if (word == "*") {
      by_name = true;
      continue;
    }
    const bool required = word.back() == '!';
    if (required) word.remove_suffix(1);
    has_output = has_output || word == "output";
    out[n] = member<B>(word);
    out[n].required = required;
    out[n++].keyword_only = by_name;
  }
  if (!has_output) {
    out[n] = member<B>("output");
    out[n++].role = op::Role::kResult;
  }
  for (const char* name : {"gemm2_output", "expert_weights", "expanded_idx_to_permuted_idx"})
    out[n++] = member<B>(name);
  if (takes_delta) out[n++] = member<B>("gemm1_activation_output");
  return out;
}
consteval size_t size_of_table(std::string_view text) {
  return words(text) - (text.find("* ") != text.npos) + 3 + (text.find("gemm1_lora_delta") != text.npos) +
         (text.find(" output ") == text.npos && !text.ends_with(" output"));
}

// ---- the ops ----
struct Entry {
  const char *name, *signature;
};
/// By format, then whether the routing is given.
inline constexpr Entry kEntries[] = {
    {"trtllm_bf16_moe",
     "routing_logits! routing_bias! hidden_states! gemm1_weights! gemm2_weights! num_experts! top_k! n_group! "
     "topk_group! intermediate_size! local_expert_offset! local_num_experts! routed_scaling_factor "
     "routing_method_type use_shuffled_weight weight_layout do_finalize enable_pdl tune_max_num_tokens "
     "activation_type norm_topk_prob routing_replay_out gemm1_alpha gemm1_beta gemm1_clamp_limit output"},
    {"trtllm_bf16_routed_moe",
     "topk_ids! hidden_states! gemm1_weights! gemm2_weights! num_experts! top_k! n_group! topk_group! "
     "intermediate_size! local_expert_offset! local_num_experts! routed_scaling_factor routing_method_type "
     "use_shuffled_weight weight_layout do_finalize enable_pdl gemm1_lora_delta tune_max_num_tokens activation_type "
     "routing_replay_out gemm1_alpha gemm1_beta gemm1_clamp_limit output"},
    {"trtllm_fp8_per_tensor_scale_moe",
     "routing_logits! routing_bias! hidden_states! gemm1_weights! output1_scales_scalar! output1_scales_gate_scalar! "
     "gemm2_weights! output2_scales_scalar! num_experts! top_k! n_group! topk_group! intermediate_size! "
     "local_expert_offset! local_num_experts! routed_scaling_factor! use_routing_scales_on_input! "
     "routing_method_type do_finalize enable_pdl tune_max_num_tokens activation_type norm_topk_prob "
     "routing_replay_out output gemm1_clamp_limit"},
    {"trtllm_fp8_per_tensor_scale_routed_moe",
     "topk_ids! routing_bias! hidden_states! gemm1_weights! output1_scales_scalar! output1_scales_gate_scalar! "
     "gemm2_weights! output2_scales_scalar! num_experts! top_k! n_group! topk_group! intermediate_size! "
     "local_expert_offset! local_num_experts! routed_scaling_factor! use_routing_scales_on_input! "
     "routing_method_type do_finalize enable_pdl tune_max_num_tokens activation_type routing_replay_out output "
     "gemm1_clamp_limit"},
    {"trtllm_fp8_per_channel_scale_moe",
     "routing_logits! routing_bias! hidden_states! hidden_states_scale! gemm1_weights! "
     "gemm1_per_channel_weight_scale! output1_scale_scalar! output1_scale_gate_scalar! gemm2_weights! "
     "gemm2_per_channel_weight_scale! output2_scale_scalar! num_experts! top_k! n_group! topk_group! "
     "intermediate_size! local_expert_offset! local_num_experts! routed_scaling_factor! use_routing_scales_on_input! "
     "routing_method_type do_finalize enable_pdl tune_max_num_tokens activation_type norm_topk_prob"},
    {"trtllm_fp8_per_channel_scale_routed_moe",
     "topk_ids! routing_bias! hidden_states! hidden_states_scale! gemm1_weights! gemm1_per_channel_weight_scale! "
     "output1_scale_scalar! output1_scale_gate_scalar! gemm2_weights! gemm2_per_channel_weight_scale! "
     "output2_scale_scalar! num_experts! top_k! n_group! topk_group! intermediate_size! local_expert_offset! "
     "local_num_experts! routed_scaling_factor! use_routing_scales_on_input routing_method_type do_finalize "
     "enable_pdl tune_max_num_tokens activation_type"},
    {"trtllm_fp8_block_scale_moe",
     "routing_logits! routing_bias! hidden_states! hidden_states_scale! gemm1_weights! gemm1_weights_scale! "
     "gemm2_weights! gemm2_weights_scale! num_experts! top_k! n_group! topk_group! intermediate_size! "
     "local_expert_offset! local_num_experts! routed_scaling_factor! routing_method_type use_shuffled_weight "
     "weight_layout do_finalize enable_pdl tune_max_num_tokens fp8_quantization_type num_fused_shared_experts "
     "activation_type norm_topk_prob routing_replay_out gemm1_alpha gemm1_beta gemm1_clamp_limit output "
     "valid_hidden_size valid_intermediate_size * gemm1_bias gemm2_bias"},
    {"trtllm_fp8_block_scale_routed_moe",
     "topk_ids! routing_bias! hidden_states! hidden_states_scale! gemm1_weights! gemm1_weights_scale! gemm2_weights! "
     "gemm2_weights_scale! num_experts! top_k! n_group! topk_group! intermediate_size! local_expert_offset! "
     "local_num_experts! routed_scaling_factor! routing_method_type use_shuffled_weight weight_layout do_finalize "
     "enable_pdl gemm1_lora_delta output tune_max_num_tokens fp8_quantization_type activation_type gemm1_alpha "
     "gemm1_beta gemm1_clamp_limit valid_hidden_size valid_intermediate_size"},
    {"trtllm_fp4_block_scale_moe",
     "routing_logits! routing_bias! hidden_states! hidden_states_scale! gemm1_weights! gemm1_weights_scale! "
     "gemm1_bias! gemm1_alpha! gemm1_beta! gemm1_clamp_limit! gemm2_weights! gemm2_weights_scale! gemm2_bias! "
     "output1_scale_scalar! output1_scale_gate_scalar! output2_scale_scalar! num_experts! top_k! n_group! "
     "topk_group! intermediate_size! local_expert_offset! local_num_experts! routed_scaling_factor! "
     "routing_method_type do_finalize enable_pdl activation_type per_token_scale output tune_max_num_tokens "
     "norm_topk_prob routing_replay_out num_fused_shared_experts valid_hidden_size valid_intermediate_size "
     "hidden_states_scale_layout"},
    {"trtllm_fp4_block_scale_routed_moe",
     "topk_ids! routing_bias! hidden_states! hidden_states_scale! gemm1_weights! gemm1_weights_scale! gemm1_bias! "
     "gemm1_alpha! gemm1_beta! gemm1_clamp_limit! gemm2_weights! gemm2_weights_scale! gemm2_bias! "
     "output1_scale_scalar! output1_scale_gate_scalar! output2_scale_scalar! num_experts! top_k! n_group! "
     "topk_group! intermediate_size! local_expert_offset! local_num_experts! routed_scaling_factor! "
     "routing_method_type do_finalize enable_pdl activation_type per_token_scale output tune_max_num_tokens "
     "gemm1_lora_delta valid_hidden_size valid_intermediate_size num_fused_shared_experts hidden_states_scale_layout"},
    {"trtllm_mxint4_block_scale_moe",
     "routing_logits! routing_bias! hidden_states! gemm1_weights! gemm1_weights_scale! gemm1_alpha! gemm1_beta! "
     "gemm1_clamp_limit! gemm2_weights! gemm2_weights_scale! num_experts! top_k! n_group! topk_group! "
     "intermediate_size! local_expert_offset! local_num_experts! routed_scaling_factor! routing_method_type "
     "do_finalize enable_pdl output tune_max_num_tokens norm_topk_prob routing_replay_out valid_hidden_size "
     "valid_intermediate_size"},
    {"trtllm_mxint4_block_scale_routed_moe",
     "topk_ids! hidden_states! gemm1_weights! gemm1_weights_scale! gemm1_alpha! gemm1_beta! gemm1_clamp_limit! "
     "gemm2_weights! gemm2_weights_scale! num_experts! top_k! n_group! topk_group! intermediate_size! "
     "local_expert_offset! local_num_experts! routed_scaling_factor! routing_method_type do_finalize enable_pdl "
     "gemm1_lora_delta output tune_max_num_tokens valid_hidden_size valid_intermediate_size"},
};
template <class B>
inline constexpr size_t kIndex = static_cast<size_t>(B::kFormat) * 2 + B::kGiven;
template <class B>
inline constexpr auto kFields = table<B, size_of_table(kEntries[kIndex<B>].signature)>(kEntries[kIndex<B>].signature);

template <class B>
void validate(const B& a) {
  check(a);
}
template <class B>
op::Prepared prepare(const B& a) {
  ops::Lookup lookup;
  const Kernels kernels = find_kernels(layer_of(a), lookup);
  return lookup.prepared([&a, kernels] {
    std::vector<Tensor> keep;
    run(routed(a, route, keep), kernels);
  });
}
template <class B>
op::Prepared prepare_gpu(const B& a, const op::Call& call) {
  GpuCall g;
  const Layer l = gpu_layer(a, g);
  return prepare_cuda(l, g, call.device);
}
template <class B>
void compute_reference(const B& a) {
  std::vector<Tensor> keep;
  const Layer l = routed(a, route_reference, keep);
  reference(l, elements_of(a, l));
}
template <class B>
op::Cost cost_of(const B& a) {
  if (a.hidden_states.device() != kCpu) {  // ids of a GPU are not read: each entry another expert
    Layer l = layer_of(a);
    for (int64_t i = 0; i < l.tokens * l.top_k; ++i) l.ids.push_back(static_cast<int32_t>(i % l.experts));
    return cost(l);
  }
  B without = a;  // what a cost model may not write
  without.routing_replay_out = without.expert_weights = std::nullopt;
  std::vector<Tensor> keep;
  return cost(routed(without, route, keep));
}
template <class B>
inline constexpr op::Candidate kCandidates[] = {op::cuda<prepare_gpu<B>>(), op::cpu<prepare<B>>(),
                                                op::reference<compute_reference<B>>()};
template <class B>
constexpr op::Op make(const char* doc, op::CaseTable cases) {
  return op::define<B, validate<B>, cost_of<B>>(kEntries[kIndex<B>].name, "flashinfer.fused_moe", doc, kFields<B>,
                                                kCandidates<B>, cases);
}
}  // namespace
}  // namespace moe::trtllm

namespace ops::moe {
using flashinfer::moe::trtllm::make;
constinit const op::Op trtllm_ops[12] = {
    make<TrtllmBf16Moe>("A mixture of experts of bf16; computes the routing.", trtllm_bf16_cases),
    make<TrtllmBf16RoutedMoe>("A mixture of experts of bf16; takes the routing as an argument.",
                              trtllm_bf16_routed_cases),
    make<TrtllmFp8PerTensorScaleMoe>("A mixture of experts of fp8 with a scale a tensor; computes the routing.",
                                     trtllm_fp8_per_tensor_scale_cases),
    make<TrtllmFp8PerTensorScaleRoutedMoe>(
        "A mixture of experts of fp8 with a scale a tensor; takes the routing as an argument.",
        trtllm_fp8_per_tensor_scale_routed_cases),
    make<TrtllmFp8PerChannelScaleMoe>("A mixture of experts of fp8 with a scale a row; computes the routing.",
                                      trtllm_fp8_per_channel_scale_cases),
    make<TrtllmFp8PerChannelScaleRoutedMoe>(
        "A mixture of experts of fp8 with a scale a row; takes the routing as an argument.",
        trtllm_fp8_per_channel_scale_routed_cases),
    make<TrtllmFp8BlockScaleMoe>("A mixture of experts of fp8 with scales of blocks; computes the routing.",
                                 trtllm_fp8_block_scale_cases),
    make<TrtllmFp8BlockScaleRoutedMoe>(
        "A mixture of experts of fp8 with scales of blocks; takes the routing as an argument.",
        trtllm_fp8_block_scale_routed_cases),
    make<TrtllmFp4BlockScaleMoe>("A mixture of experts of 4 bits with scales of blocks; computes the routing.",
                                 trtllm_fp4_block_scale_cases),
    make<TrtllmFp4BlockScaleRoutedMoe>(
        "A mixture of experts of 4 bits with scales of blocks; takes the routing as an argument.",
        trtllm_fp4_block_scale_routed_cases),
    make<TrtllmMxint4BlockScaleMoe>("A mixture of experts of int4 with scales of 32; computes the routing.",
                                    trtllm_mxint4_block_scale_cases),
    make<TrtllmMxint4BlockScaleRoutedMoe>(
        "A mixture of experts of int4 with scales of 32; takes the routing as an argument.",
        trtllm_mxint4_block_scale_routed_cases),
};
}  // namespace ops::moe

op::Results trtllm_bf16_moe(const TrtllmBf16Moe& a) { return op::call(ops::moe::trtllm_ops[0], a); }
op::Results trtllm_bf16_routed_moe(const TrtllmBf16RoutedMoe& a) { return op::call(ops::moe::trtllm_ops[1], a); }
op::Results trtllm_fp8_per_tensor_scale_moe(const TrtllmFp8PerTensorScaleMoe& a) {
  return op::call(ops::moe::trtllm_ops[2], a);
}
op::Results trtllm_fp8_per_tensor_scale_routed_moe(const TrtllmFp8PerTensorScaleRoutedMoe& a) {
  return op::call(ops::moe::trtllm_ops[3], a);
}
op::Results trtllm_fp8_per_channel_scale_moe(const TrtllmFp8PerChannelScaleMoe& a) {
  return op::call(ops::moe::trtllm_ops[4], a);
}
op::Results trtllm_fp8_per_channel_scale_routed_moe(const TrtllmFp8PerChannelScaleRoutedMoe& a) {
  return op::call(ops::moe::trtllm_ops[5], a);
}
op::Results trtllm_fp8_block_scale_moe(const TrtllmFp8BlockScaleMoe& a) { return op::call(ops::moe::trtllm_ops[6], a); }
op::Results trtllm_fp8_block_scale_routed_moe(const TrtllmFp8BlockScaleRoutedMoe& a) {
  return op::call(ops::moe::trtllm_ops[7], a);
}
op::Results trtllm_fp4_block_scale_moe(const TrtllmFp4BlockScaleMoe& a) { return op::call(ops::moe::trtllm_ops[8], a); }
op::Results trtllm_fp4_block_scale_routed_moe(const TrtllmFp4BlockScaleRoutedMoe& a) {
  return op::call(ops::moe::trtllm_ops[9], a);
}
op::Results trtllm_mxint4_block_scale_moe(const TrtllmMxint4BlockScaleMoe& a) {
  return op::call(ops::moe::trtllm_ops[10], a);
}
op::Results trtllm_mxint4_block_scale_routed_moe(const TrtllmMxint4BlockScaleRoutedMoe& a) {
  return op::call(ops::moe::trtllm_ops[11], a);
}

}  // namespace flashinfer
