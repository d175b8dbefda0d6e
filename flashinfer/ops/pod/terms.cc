// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::pod {
namespace {
constexpr op::Term kTerms[] = {
    {"causal_d", "causal, of the decode half"},
    {"causal_p", "causal, of the prefill half"},
    {"custom_mask_d", "custom_mask, of the decode half"},
    {"custom_mask_p", "custom_mask, of the prefill half"},
    {"k_p", "keys of the prefill half"},
    {"kv_indices_d", "kv_indices, of the decode half"},
    {"kv_indices_p", "kv_indices, of the prefill half"},
    {"kv_indptr_d", "kv_indptr, of the decode half"},
    {"kv_indptr_p", "kv_indptr, of the prefill half"},
    {"kv_layout_d", "kv_layout, of the decode half"},
    {"kv_layout_p", "kv_layout, of the prefill half"},
    {"last_page_len_d", "last_page_len, of the decode half"},
    {"last_page_len_p", "last_page_len, of the prefill half"},
    {"packed_custom_mask_d", "packed_custom_mask, of the decode half"},
    {"packed_custom_mask_p", "packed_custom_mask, of the prefill half"},
    {"paged_kv_cache_d", "paged_kv_cache, of the decode half"},
    {"paged_kv_cache_p", "paged_kv_cache, of the prefill half"},
    {"pos_encoding_mode_d", "pos_encoding_mode, of the decode half"},
    {"pos_encoding_mode_p", "pos_encoding_mode, of the prefill half"},
    {"q_d", "queries of the decode half"},
    {"q_p", "queries of the prefill half"},
    {"qo_indptr_d", "qo_indptr, of the decode half"},
    {"qo_indptr_p", "qo_indptr, of the prefill half"},
    {"return_lse_d", "return_lse, of the decode half"},
    {"return_lse_p", "return_lse, of the prefill half"},
    {"rope_scale_d", "rope_scale, of the decode half"},
    {"rope_scale_p", "rope_scale, of the prefill half"},
    {"rope_theta_d", "rope_theta, of the decode half"},
    {"rope_theta_p", "rope_theta, of the prefill half"},
    {"sm_scale_d", "sm_scale, of the decode half"},
    {"sm_scale_p", "sm_scale, of the prefill half"},
    {"v_p", "values of the prefill half"},
    {"window_left_d", "window_left, of the decode half"},
    {"window_left_p", "window_left, of the prefill half"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::pod
