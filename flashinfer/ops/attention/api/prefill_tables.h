// SPDX-License-Identifier: Apache-2.0
// Tables of members of the paged prefill ops. Included by prefill.cc and sink.cc.
#pragma once
#include "flashinfer/ops/attention/api/fields.h"
#include "flashinfer/ops/attention/api/narrow_output.h"

namespace flashinfer::attention::prefill {

inline constexpr const char* kModule = "flashinfer.prefill";
inline constexpr const char* kAnyRun = "BatchPrefillWithPagedKVCacheWrapper.run";

/// The plan of plan()'s arguments.
Plan plan_of_arguments(const BatchPrefillPlan& a);
void validate_plan(const BatchPrefillPlan& a);
void launch_size(const BatchPrefillWorkspaceSize& a);

inline constexpr auto init_fields = table_of(
    paged_init_head<BatchPrefillInit>, mask_buffers<BatchPrefillInit>,
    std::array{op::attr<&BatchPrefillInit::backend>("backend", op::backends(kBackends)),
               op::attr<&BatchPrefillInit::jit_args>("jit_args"), op::attr<&BatchPrefillInit::jit_kwargs>("jit_kwargs"),
               op::attr<&BatchPrefillInit::variant_owns_mask>("variant_owns_mask")});
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
    op::in<&BatchPrefillPlan::seq_lens>("seq_lens", nullptr, op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::seq_lens_q>("seq_lens_q", nullptr, op::indices, op::any_layout),
    op::in<&BatchPrefillPlan::block_tables>("block_tables", nullptr, op::indices),
    op::attr<&BatchPrefillPlan::max_token_per_sequence>("max_token_per_sequence"),
    op::attr<&BatchPrefillPlan::max_sequence_kv>("max_sequence_kv"),
    op::attr<&BatchPrefillPlan::fixed_split_size>("fixed_split_size"),
    op::attr<&BatchPrefillPlan::disable_split_kv>("disable_split_kv"),
    op::attr<&BatchPrefillPlan::uniform_q_len>("uniform_q_len"),
    op::in<&BatchPrefillPlan::alibi_slopes>("alibi_slopes", nullptr, DType::kF32, op::any_layout, op::internal),
};
inline constexpr auto run_fields = table_of(
    paged_run_head<BatchPrefillRun>,
    std::array{op::attr<&BatchPrefillRun::args>("args", op::varargs), op::attr<&BatchPrefillRun::q_scale>("q_scale")},
    kv_scales<BatchPrefillRun>, run_results<BatchPrefillRun, NarrowOutputs>, lse_format<BatchPrefillRun>,
    std::array{op::attr<&BatchPrefillRun::window_left>("window_left"),
               op::in<&BatchPrefillRun::sinks>("sinks", nullptr, DType::kF32, op::contiguous)},
    paged_run_tail<BatchPrefillRun>);
inline constexpr auto forward_fields =
    table_of(paged_run_head<BatchPrefillForward>, forward_masking<BatchPrefillForward>, kv_scales<BatchPrefillForward>,
             forward_tail<BatchPrefillForward, NarrowOutputs>);
inline constexpr auto size_fields =
    without(plan_fields, {"non_blocking"},
            op::result<&BatchPrefillWorkspaceSize::sizes>("sizes", "2", DType::kI64, op::as_numbers));

}  // namespace flashinfer::attention::prefill
