// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::mla {
namespace {
constexpr op::Term kTerms[] = {
    {"ckv_scale_arr", "decode scale of each token's compressed KV"},
    {"cute_dsl_impl", "GPU kernels only"},
    {"enable_dcp", "the cache has a share of each context (context parallelism)"},
    {"head_dim_ckv", "elements of a token's compressed KV"},
    {"head_dim_kpe", "elements of a token's position part"},
    {"is_var_seq", "without effect"},
    {"k_pe", "rotated part of the keys, one for all heads"},
    {"kv_cache_layout", "'packed': one tensor of ckv and kpe side by side; 'split': two"},
    {"kv_len", "tokens in the cache of each request; with backend='cutlass'"},
    {"kv_lora_rank", "elements of a token's compressed KV"},
    {"kv_nope", "un-rotated part of each head's key, then its value"},
    {"kv_scale_format", "GPU kernels only"},
    {"lse_mode", "whether run() returns the LSE, and to which base"},
    {"metadata", "the page table, in place of the arguments for it"},
    {"nope_dim", "how much of kv_nope belongs to the key"},
    {"output_scale", "whether run() is given a scale of the result"},
    {"page_table", "the pages of each request, one row each; with backend='cutlass'"},
    {"q_pe", "the queries' position part"},
    {"qk_nope_head_dim", "elements of the un-absorbed heads without position; without effect"},
    {"qk_rope_head_dim", "elements of a token's position part"},
    {"query_layout", "'packed': one tensor of q_nope and q_pe side by side; 'split': two"},
    {"return_lse_base", "base of the LSE; base2 when absent"},
    {"return_lse_base_on_e", "the LSE to base e instead of 2"},
    {"scale_mode", "which scales run() is given"},
    {"skip_softmax", "whether run() is given a threshold to skip blocks by; GPU kernels only"},
    {"sparse_mla_top_k", "block_tables lists so many tokens for each query row; 0: it lists pages"},
    {"sparse_mla_top_k_lens", "how many tokens of its list each query row attends to"},
    {"use_sinks", "whether run() is given sinks"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::mla
