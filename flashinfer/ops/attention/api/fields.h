// SPDX-License-Identifier: Apache-2.0
// Parts of tables that the batch ops share. Internal to the family.
#pragma once
#include <array>

#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/api/methods.h"

namespace flashinfer::attention {

/// Rows of a run's q: the plan's, but where it leaves them to the run.
template <class Run>
int64_t rows_of_run(const Run& a, const Plan& p) {
  return p.any_q_len ? a.q.size(0) : p.nnz_qo;
}
template <class Run>
op::Shape out_shape(const Run& a) {
  const Plan& p = plan_of(a.self);
  return rows_heads_dim(rows_of_run(a, p), p.num_qo_heads, p.head_dim_vo);
}
template <class Run>
op::Shape lse_shape(const Run& a) {
  const Plan& p = plan_of(a.self);
  if constexpr (requires { a.lse_layout; }) {
    if (a.lse_layout == "HN") return rows_heads(p.num_qo_heads, p.nnz_qo);
  }
  return rows_heads(rows_of_run(a, p), p.num_qo_heads);
}
template <class Run>
DType out_dtype(const Run& a) {
  return plan_of(a.self).o_data_type;
}

/// One table of several parts.
template <size_t... N>
constexpr auto table_of(const std::array<op::Field, N>&... parts) {
  std::array<op::Field, (N + ...)> all;
  size_t n = 0;
  const auto add = [&](const auto& part) {
    for (const op::Field& f : part) all[n++] = f;
  };
  (add(parts), ...);
  return all;
}

/// __init__ of the paged prefill classes up to the page table's buffers, then the mask's.
template <class B>
constexpr std::array paged_init_head = {
    op::self<&B::self>(),
    op::scratch<&B::float_workspace_buffer>("float_workspace_buffer", nullptr),
    op::attr<&B::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&B::use_cuda_graph>("use_cuda_graph"),
    op::scratch<&B::qo_indptr_buf>("qo_indptr_buf", nullptr),
    op::scratch<&B::paged_kv_indptr_buf>("paged_kv_indptr_buf", nullptr),
    op::scratch<&B::paged_kv_indices_buf>("paged_kv_indices_buf", nullptr),
    op::scratch<&B::paged_kv_last_page_len_buf>("paged_kv_last_page_len_buf", nullptr),
};
template <class B>
constexpr std::array mask_buffers = {op::scratch<&B::custom_mask_buf>("custom_mask_buf", nullptr),
                                     op::scratch<&B::mask_indptr_buf>("mask_indptr_buf", nullptr)};

/// run(): the receiver, q and the cache; results; what follows q_scale in the prefill classes.
template <class B>
constexpr std::array paged_run_head = {op::self<&B::self>(), op::in<&B::q>("q", "n h d", ops::kQueryTypes),
                                       op::paged<&B::paged_kv_cache>("paged_kv_cache", nullptr, kCacheTypes)};
/// The types of a result, and those of classes whose plan may say e4m3.
struct PlainOutputs {
  static constexpr DTypeSet kTypes = op::floats;
};
struct NarrowOutputs {
  static constexpr DTypeSet kTypes = op::floats | DType::kF8E4M3;
};
template <class B, class Outputs = PlainOutputs>
constexpr std::array run_results = {
    op::out<&B::out>("out", nullptr, Outputs::kTypes, op::shape<out_shape<B>>, op::dtype<out_dtype<B>>),
    op::out<&B::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<B>>, op::when<&B::return_lse>),
    op::attr<&B::return_lse>("return_lse"),
};
template <class B>
constexpr std::array kv_scales = {op::attr<&B::k_scale>("k_scale"), op::attr<&B::v_scale>("v_scale")};
template <class B>
constexpr std::array lse_format = {op::attr<&B::lse_base>("lse_base", op::choices("log2|ln")),
                                   op::attr<&B::lse_layout>("lse_layout", op::choices("NH|HN")),
                                   op::attr<&B::enable_pdl>("enable_pdl")};
template <class B>
constexpr std::array paged_run_tail = {
    op::paged<&B::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&B::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&B::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&B::uses_spcompress>("uses_spcompress"),
};

/// forward(): what it replaces of plan(), and its results.
template <class B, class Outputs = PlainOutputs>
constexpr std::array forward_tail = {
    op::attr<&B::window_left>("window_left"),
    op::attr<&B::logits_soft_cap>("logits_soft_cap"),
    op::attr<&B::sm_scale>("sm_scale"),
    op::attr<&B::rope_scale>("rope_scale"),
    op::attr<&B::rope_theta>("rope_theta"),
    op::attr<&B::return_lse>("return_lse", op::internal),
    op::result<&B::out>("out", nullptr, Outputs::kTypes, op::shape<out_shape<B>>, op::dtype<out_dtype<B>>),
    op::result<&B::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<B>>, op::when<&B::return_lse>),
};
template <class B>
constexpr std::array forward_masking = {
    op::attr<&B::causal>("causal"),
    op::attr<&B::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&B::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
};

}  // namespace flashinfer::attention
