// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::msa {
namespace {
constexpr op::Term kTerms[] = {
    {"cu_seqlens_k", "first key of each request, and their number"},
    {"cu_seqlens_q", "first query row of each request, and their number"},
    {"force_begin_blocks", "blocks at a row's beginning that are always selected"},
    {"force_end_blocks", "blocks at a row's end that are always selected"},
    {"force_fused", "GPU kernels only: without effect"},
    {"k_fp4", "keys as NVFP4: two elements a byte"},
    {"k_global_scale", "factor of the logits, of quantised keys"},
    {"lse_temperature_scale", "factor of the logits in the third result"},
    {"lse_t", "log-sum-exp of the logits times lse_temperature_scale, base e"},
    {"max_k_tiles", "blocks of 128 keys in the result; the longest request's unless given"},
    {"max_score", "largest logit of each head, block and row"},
    {"max_seqlen_q", "at least the rows of each request"},
    {"num_valid_pages", "blocks to choose from, of all rows or of each"},
    {"page_table", "page of each block of each request's keys"},
    {"partial_dtype", "GPU kernels only: without effect"},
    {"q_fp4", "queries as NVFP4: two elements a byte"},
    {"q_global_scale", "factor of the logits, of quantised queries"},
    {"q_offset", "position of each request's first row; keys minus rows unless given"},
    {"reduce_heads", "one score for all heads, the largest"},
    {"return_softmax_lse", "also return the log-sum-exp of the logits, base e"},
    {"return_temperature_lse", "also return both log-sum-exps"},
    {"seqlen_q", "query rows of each request"},
    {"seqused_k", "keys of each request"},
    {"softmax_scale", "factor of the logits; 1 / sqrt(128) unless given"},
    {"topk", "blocks to select"},
    {"v_global_scale", "factor of the result"},
    {"workspace", "memory of GPU kernels: must be absent"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::msa
