// SPDX-License-Identifier: Apache-2.0
// Tables of members of the batch decode ops. Included by decode.cc alone.
#pragma once
#include "flashinfer/ops/attention/api/fields.h"
#include "flashinfer/ops/attention/api/narrow_output.h"

namespace flashinfer::attention::decode {

inline constexpr const char* kDecodeRun = "BatchDecodeWithPagedKVCacheWrapper.run";

inline constexpr op::Field init_fields[] = {
    op::self<&BatchDecodeInit::self>(),
    op::scratch<&BatchDecodeInit::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&BatchDecodeInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&BatchDecodeInit::use_cuda_graph>("use_cuda_graph"),
    op::attr<&BatchDecodeInit::use_tensor_cores>("use_tensor_cores"),
    op::scratch<&BatchDecodeInit::paged_kv_indptr_buffer>("paged_kv_indptr_buffer", nullptr),
    op::scratch<&BatchDecodeInit::paged_kv_indices_buffer>("paged_kv_indices_buffer", nullptr),
    op::scratch<&BatchDecodeInit::paged_kv_last_page_len_buffer>("paged_kv_last_page_len_buffer", nullptr),
    op::attr<&BatchDecodeInit::backend>("backend", op::backends(kBackends)),
    op::attr<&BatchDecodeInit::jit_args>("jit_args"),
};
inline constexpr op::Field plan_fields[] = {
    op::self<&BatchDecodePlan::self>(),
    op::in<&BatchDecodePlan::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::in<&BatchDecodePlan::indices>("indices", "n", op::indices, op::any_layout),
    op::in<&BatchDecodePlan::last_page_len>("last_page_len", "b", op::indices, op::any_layout),
    op::attr<&BatchDecodePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&BatchDecodePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&BatchDecodePlan::head_dim>("head_dim", op::required),
    op::attr<&BatchDecodePlan::page_size>("page_size", op::required),
    op::attr<&BatchDecodePlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError),
                                                  op::was_positional),
    op::attr<&BatchDecodePlan::window_left>("window_left", op::was_positional),
    op::attr<&BatchDecodePlan::window_right>("window_right"),
    op::attr<&BatchDecodePlan::logits_soft_cap>("logits_soft_cap", op::was_positional),
    op::attr<&BatchDecodePlan::q_data_type>("q_data_type", op::literal("'float16'"), op::was_positional),
    op::attr<&BatchDecodePlan::kv_data_type>("kv_data_type", op::was_positional),
    op::attr<&BatchDecodePlan::o_data_type>("o_data_type", op::was_positional),
    op::attr<&BatchDecodePlan::data_type>("data_type", op::was_positional),
    op::attr<&BatchDecodePlan::sm_scale>("sm_scale", op::was_positional),
    op::attr<&BatchDecodePlan::rope_scale>("rope_scale", op::was_positional),
    op::attr<&BatchDecodePlan::rope_theta>("rope_theta", op::was_positional),
    op::attr<&BatchDecodePlan::non_blocking>("non_blocking", op::was_positional),
    op::in<&BatchDecodePlan::block_tables>("block_tables", nullptr, op::indices, op::was_positional),
    op::in<&BatchDecodePlan::seq_lens>("seq_lens", "b", op::indices, op::any_layout, op::was_positional),
    op::attr<&BatchDecodePlan::fixed_split_size>("fixed_split_size", op::was_positional),
    op::attr<&BatchDecodePlan::disable_split_kv>("disable_split_kv", op::was_positional),
    op::attr<&BatchDecodePlan::q_len_per_req>("q_len_per_req", op::was_positional),
    op::attr<&BatchDecodePlan::is_causal>("is_causal"),
    op::in<&BatchDecodePlan::alibi_slopes>("alibi_slopes", nullptr, DType::kF32, op::any_layout, op::internal),
};
inline constexpr auto run_fields = table_of(
    paged_run_head<BatchDecodeRun>,
    std::array{op::attr<&BatchDecodeRun::args>("args", op::varargs), op::attr<&BatchDecodeRun::q_scale>("q_scale")},
    kv_scales<BatchDecodeRun>, run_results<BatchDecodeRun, NarrowOutputs>,
    std::array{op::attr<&BatchDecodeRun::enable_pdl>("enable_pdl"),
               op::attr<&BatchDecodeRun::window_left>("window_left"),
               op::in<&BatchDecodeRun::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
               op::attr<&BatchDecodeRun::q_len_per_req>("q_len_per_req"),
               op::attr<&BatchDecodeRun::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
               op::paged<&BatchDecodeRun::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes)});
inline constexpr op::Field graph_init_fields[] = {
    op::self<&CUDAGraphBatchDecodeInit::self>(),
    op::scratch<&CUDAGraphBatchDecodeInit::workspace_buffer>("workspace_buffer", nullptr),
    op::scratch<&CUDAGraphBatchDecodeInit::indptr_buffer>("indptr_buffer", nullptr, op::required),
    op::scratch<&CUDAGraphBatchDecodeInit::indices_buffer>("indices_buffer", nullptr, op::required),
    op::scratch<&CUDAGraphBatchDecodeInit::last_page_len_buffer>("last_page_len_buffer", nullptr, op::required),
    op::attr<&CUDAGraphBatchDecodeInit::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&CUDAGraphBatchDecodeInit::use_tensor_cores>("use_tensor_cores"),
};
inline constexpr auto forward_fields =
    table_of(paged_run_head<BatchDecodeForward>,
             std::array{op::attr<&BatchDecodeForward::pos_encoding_mode>("pos_encoding_mode",
                                                                         op::choices(kModes, ErrorKind::kKeyError)),
                        op::attr<&BatchDecodeForward::q_scale>("q_scale")},
             kv_scales<BatchDecodeForward>, forward_tail<BatchDecodeForward, NarrowOutputs>);
inline constexpr op::Field fast_fields[] = {
    op::self<&FastDecodePlan::self>(),
    op::in<&FastDecodePlan::indptr>("indptr", "b+1", op::indices, op::any_layout),
    op::in<&FastDecodePlan::indices>("indices", "n", op::indices, op::any_layout),
    op::in<&FastDecodePlan::last_page_len>("last_page_len", "b", op::indices, op::any_layout),
    op::attr<&FastDecodePlan::num_qo_heads>("num_qo_heads", op::required),
    op::attr<&FastDecodePlan::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&FastDecodePlan::head_dim>("head_dim", op::required),
    op::attr<&FastDecodePlan::page_size>("page_size", op::required),
    op::attr<&FastDecodePlan::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&FastDecodePlan::window_left>("window_left"),
    op::attr<&FastDecodePlan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&FastDecodePlan::q_data_type>("q_data_type"),
    op::attr<&FastDecodePlan::kv_data_type>("kv_data_type"),
    op::attr<&FastDecodePlan::data_type>("data_type"),
    op::attr<&FastDecodePlan::sm_scale>("sm_scale"),
    op::attr<&FastDecodePlan::rope_scale>("rope_scale"),
    op::attr<&FastDecodePlan::rope_theta>("rope_theta"),
    op::attr<&FastDecodePlan::non_blocking>("non_blocking"),
    op::attr<&FastDecodePlan::fixed_split_size>("fixed_split_size"),
    op::attr<&FastDecodePlan::disable_split_kv>("disable_split_kv"),
    op::attr<&FastDecodePlan::q_len_per_req>("q_len_per_req"),
    op::in<&FastDecodePlan::global_override_indptr_cpu>("global_override_indptr_cpu", "b+1", op::indices,
                                                        op::any_layout),
};
inline constexpr auto size_fields =
    without(plan_fields, {"window_right", "non_blocking", "is_causal"},
            op::result<&BatchDecodeWorkspaceSize::sizes>("sizes", "2", DType::kI64, op::as_numbers));

}  // namespace flashinfer::attention::decode
