// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::cascade {
namespace {
constexpr op::Term kTerms[] = {
    {"int_workspace_buffers", "scratch memory of FlashInfer's kernels; accepted, unused on the CPU"},
    {"k_shared", "keys of the prefix that all requests share"},
    {"num_levels", "levels of the cascade: shared prefixes, then each request's own part"},
    {"paged_kv_indices_arr", "paged_kv_indices of each level"},
    {"paged_kv_indices_buf_arr", "memory for the page ids of every later plan (graphs), one a level"},
    {"paged_kv_indptr_arr", "paged_kv_indptr of each level"},
    {"paged_kv_indptr_buf_arr", "memory for the page offsets of every later plan (graphs), one a level"},
    {"paged_kv_last_page_len_buf_arr", "memory for the last pages' lengths of every later plan (graphs), one a level"},
    {"qo_indptr_arr", "qo_indptr of each level"},
    {"qo_indptr_buf_arr", "memory for the qo_indptr of every later plan (graphs), one a level"},
    {"s", "log-sum-exp of each row, to base 2"},
    {"s_a", "LSE of v_a's rows, to base 2"},
    {"s_b", "LSE of v_b's rows, to base 2"},
    {"s_other", "LSE of v_other's rows, to base 2"},
    {"unique_kv_cache", "pages of each request's own part"},
    {"unique_kv_indices", "pages of each request's own part, one after the other"},
    {"unique_kv_indptr", "first entry of each request in unique_kv_indices, and their number at the end"},
    {"unique_kv_last_page_len", "tokens on each request's own last page"},
    {"v_a", "results of the first part"},
    {"v_b", "results of the second part"},
    {"v_other", "results of the other part"},
    {"v_shared", "values of the prefix that all requests share"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::cascade
