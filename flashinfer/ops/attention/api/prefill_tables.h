// SPDX-License-Identifier: Apache-2.0
// Tables of members of the paged prefill ops. Included by prefill.cc and sink.cc.
#pragma once
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/api/methods.h"

namespace flashinfer::attention::prefill {

inline constexpr const char* kModule = "flashinfer.prefill";
inline constexpr const char* kAnyRun = "BatchPrefillWithPagedKVCacheWrapper.run";

/// Of the block types below: what plan() says.
Plan plan_of_arguments(const BatchPrefillPlan& a);
void validate_plan(const BatchPrefillPlan& a);
void launch_size(const BatchPrefillWorkspaceSize& a);

template <class Run>
op::Shape out_shape(const Run& a) {
  return prefill_out_shape(a);
}
template <class Run>
op::Shape lse_shape(const Run& a) {
  return prefill_lse_shape(a);
}
template <class Run>
DType out_dtype(const Run& a) {
  return plan_of(a.self).o_data_type;
}

inline constexpr op::Field init_fields[] = {
    op::self<&BatchPrefillInit::self>(),
    op::scratch<&BatchPrefillInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchPrefillInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchPrefillInit::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&BatchPrefillInit::qo_indptr_buf>("qo_indptr_buf", nullptr),
    op::scratch<&BatchPrefillInit::paged_kv_indptr_buf>("paged_kv_indptr_buf", nullptr),
    op::scratch<&BatchPrefillInit::paged_kv_indices_buf>("paged_kv_indices_buf", nullptr),
    op::scratch<&BatchPrefillInit::paged_kv_last_page_len_buf>("paged_kv_last_page_len_buf", nullptr),
    op::scratch<&BatchPrefillInit::custom_mask_buf>("custom_mask_buf", nullptr),
    op::scratch<&BatchPrefillInit::mask_indptr_buf>("mask_indptr_buf", nullptr),
    op::attr<&BatchPrefillInit::backend>("backend", op::backends(kBackends)),
    op::attr<&BatchPrefillInit::jit_args>("jit_args"),
    op::attr<&BatchPrefillInit::jit_kwargs>("jit_kwargs"),
    op::attr<&BatchPrefillInit::variant_owns_mask>("variant_owns_mask"),
};
inline constexpr op::Field plan_fields[] = {
    op::self<&BatchPrefillPlan::self>(),
    op::in<&BatchPrefillPlan::qo_indptr>("qo_indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::paged_kv_indptr>("paged_kv_indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::paged_kv_indices>("paged_kv_indices", "n", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::paged_kv_last_page_len>("paged_kv_last_page_len", "b", op::indices, op::any_layout),
    op::attr<&BatchPrefillPlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchPrefillPlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchPrefillPlan::head_dim_qk>("head_dim_qk", op::required),
    op::attr<&BatchPrefillPlan::page_size>("page_size", op::required),
    op::attr<&BatchPrefillPlan::head_dim_vo>("head_dim_vo"),
    op::in<&BatchPrefillPlan::custom_mask>("custom_mask", nullptr, kMaskTypes, op::contiguous),
    op::in<&BatchPrefillPlan::packed_custom_mask>("packed_custom_mask", nullptr, DType::kU8, op::contiguous),
    op::attr<&BatchPrefillPlan::causal>("causal"),
    op::attr<&BatchPrefillPlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BatchPrefillPlan::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BatchPrefillPlan::sm_scale>("sm_scale"),
    op::attr<&BatchPrefillPlan::window_left>("window_left"),
    op::attr<&BatchPrefillPlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BatchPrefillPlan::rope_scale>("rope_scale"),
    op::attr<&BatchPrefillPlan::rope_theta>("rope_theta"),
    op::attr<&BatchPrefillPlan::q_data_type>("q_data_type", op::literal("'float16'")),
    op::attr<&BatchPrefillPlan::kv_data_type>("kv_data_type"),
    op::attr<&BatchPrefillPlan::o_data_type>("o_data_type"),
    op::attr<&BatchPrefillPlan::non_blocking>("non_blocking"),
    op::in<&BatchPrefillPlan::prefix_len_ptr>("prefix_len_ptr", nullptr, kPrefixTypes, op::any_layout),
    op::in<&BatchPrefillPlan::token_pos_in_items_ptr>("token_pos_in_items_ptr", nullptr, kItemTypes),
    op::attr<&BatchPrefillPlan::token_pos_in_items_len>("token_pos_in_items_len"),
    op::in<&BatchPrefillPlan::max_item_len_ptr>("max_item_len_ptr", nullptr, kItemTypes),
    op::in<&BatchPrefillPlan::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::seq_lens_q>("seq_lens_q", "b", op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::block_tables>("block_tables", nullptr, op::indices),
    op::attr<&BatchPrefillPlan::max_token_per_sequence>("max_token_per_sequence"),
    op::attr<&BatchPrefillPlan::max_sequence_kv>("max_sequence_kv"),
    op::attr<&BatchPrefillPlan::fixed_split_size>("fixed_split_size"),
    op::attr<&BatchPrefillPlan::disable_split_kv>("disable_split_kv"),
    op::attr<&BatchPrefillPlan::uniform_q_len>("uniform_q_len"),
    op::in<&BatchPrefillPlan::alibi_slopes>("alibi_slopes", nullptr, DType::kF32, op::any_layout, op::internal),
};
inline constexpr op::Field run_fields[] = {
    op::self<&BatchPrefillRun::self>(),
    op::in<&BatchPrefillRun::q>("q", "n h d", ops::kQueryTypes),
    op::paged<&BatchPrefillRun::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes),
    op::attr<&BatchPrefillRun::args>("args", op::varargs),
    op::attr<&BatchPrefillRun::q_scale>("q_scale"),
    op::attr<&BatchPrefillRun::k_scale>("k_scale"),
    op::attr<&BatchPrefillRun::v_scale>("v_scale"),
    op::out<&BatchPrefillRun::out>("out", nullptr, op::floats, op::shape<out_shape<BatchPrefillRun>>,
                                   op::dtype<out_dtype<BatchPrefillRun>>),
    op::out<&BatchPrefillRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<BatchPrefillRun>>,
                                   op::when<&BatchPrefillRun::return_lse>),
    op::attr<&BatchPrefillRun::return_lse>("return_lse"),
    op::attr<&BatchPrefillRun::lse_base>("lse_base", op::choices("log2|ln")),
    op::attr<&BatchPrefillRun::lse_layout>("lse_layout", op::choices("NH|HN")),
    op::attr<&BatchPrefillRun::enable_pdl>("enable_pdl"),
    op::attr<&BatchPrefillRun::window_left>("window_left"),
    op::in<&BatchPrefillRun::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
    op::paged<&BatchPrefillRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&BatchPrefillRun::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&BatchPrefillRun::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&BatchPrefillRun::uses_spcompress>("uses_spcompress"),
};
inline constexpr op::Field forward_fields[] = {
    op::self<&BatchPrefillForward::self>(),
    op::in<&BatchPrefillForward::q>("q", "n h d", ops::kQueryTypes),
    op::paged<&BatchPrefillForward::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes),
    op::attr<&BatchPrefillForward::causal>("causal"),
    op::attr<&BatchPrefillForward::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&BatchPrefillForward::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&BatchPrefillForward::k_scale>("k_scale"),
    op::attr<&BatchPrefillForward::v_scale>("v_scale"),
    op::attr<&BatchPrefillForward::window_left>("window_left"),
    op::attr<&BatchPrefillForward::logits_soft_cap>("logits_soft_cap"),
    op::attr<&BatchPrefillForward::sm_scale>("sm_scale"),
    op::attr<&BatchPrefillForward::rope_scale>("rope_scale"),
    op::attr<&BatchPrefillForward::rope_theta>("rope_theta"),
    op::attr<&BatchPrefillForward::return_lse>("return_lse", op::internal),
    op::result<&BatchPrefillForward::out>("out", nullptr, op::floats, op::shape<out_shape<BatchPrefillForward>>,
                                          op::dtype<out_dtype<BatchPrefillForward>>),
    op::result<&BatchPrefillForward::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<BatchPrefillForward>>,
                                          op::when<&BatchPrefillForward::return_lse>),
};
inline constexpr auto size_fields =
    without(plan_fields, {"non_blocking"},
            op::result<&BatchPrefillWorkspaceSize::sizes>("sizes", "2", DType::kI64, op::as_numbers));

}  // namespace flashinfer::attention::prefill
