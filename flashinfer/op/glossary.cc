// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/glossary.h"

#include <algorithm>
#include <iterator>

#include "flashinfer/op/registry.h"

namespace flashinfer::op {
namespace {

// Symbols: b requests, n tokens, h or Hq query heads, Hkv KV heads, d or D head dim, ps tokens a page. Sorted by name.
constexpr Term kTerms[] = {
    {"a", "left factor"},
    {"a_scale", "decode scales of a's blocks"},
    {"alpha", "factor of the product"},
    {"append_ckv", "new rows of compressed KV"},
    {"append_kpe", "new rows of the keys' position part"},
    {"args", "additional arguments of the custom variant: its tensors, then its scalars, in declared order"},
    {"b", "right factor; usually the transposed view of a row-major weight"},
    {"b_scale", "decode scales of b's blocks"},
    {"backend", "the implementation by name; 'auto' lets the library choose"},
    {"batch_indices", "the request of each token"},
    {"batch_size", "number of requests or segments"},
    {"beta", "added to each element after scaling"},
    {"bias", "added to each row of the product"},
    {"block_size", "elements that share a scale"},
    {"block_tables", "the pages of each request, one row each; entries after the last one are ignored"},
    {"bmm1_scale", "factor of the logits: q's scale * k's scale * sm_scale"},
    {"bmm2_scale", "factor of the result: v's scale / the output's scale"},
    {"causal", "row i of a request of n rows over m keys sees the keys up to m - n + i only"},
    {"causal_seqlens_kv_global",
     "tokens of each request on all ranks before its first query row (context parallelism)"},
    {"ckv_cache", "pages of compressed KV"},
    {"ckv_scale", "decode scale of an 8-bit compressed KV cache"},
    {"cp_rank", "which share of each context the cache has (context parallelism)"},
    {"cp_world", "ranks that share a context (context parallelism)"},
    {"cum_seq_lens_q", "first query token of each request, and their number at the end"},
    {"data_type", "dtype of queries and caches; q_data_type and kv_data_type go before it"},
    {"deterministic", "without effect: results here never depend on threads"},
    {"device", "where the result is made"},
    {"enable_pdl", "programmatic dependent launch; CUDA only, without effect on the CPU"},
    {"eps", "keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero"},
    {"expanded_idx_to_permuted_idx", "row of each choice of an expert, or -1"},
    {"float_workspace_buffer", "scratch memory of FlashInfer's kernels; accepted, unused on the CPU"},
    {"global_scale", "one scale for the whole tensor"},
    {"head_dim", "elements of a head"},
    {"indices", "pages, block columns or rows of probs, one after the other"},
    {"indptr", "first entry of each request in the list that it divides, and the list's length at the end"},
    {"input", "rows to work on"},
    {"int_workspace_buffer", "scratch memory of FlashInfer's kernels; accepted, unused on the CPU"},
    {"is_sf_swizzled_layout", "scale factors are stored in tiles instead of row by row"},
    {"jit_args", "a custom variant, as flashinfer.jit's JitSpec.jit_args gives it"},
    {"k", "keys"},
    {"k_nope", "the keys' part without position"},
    {"k_rope", "the keys' position part"},
    {"k_scale", "decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one"},
    {"key", "keys"},
    {"kpe_cache", "pages of the keys' position part"},
    {"kpe_scale", "decode scale of an 8-bit position part"},
    {"kv_cache", "pages of KV, stacked or a pair (k, v)"},
    {"kv_cache_sf", "scale factors of a 4-bit cache, in the form of the cache"},
    {"kv_data_type", "dtype of the cache; q_data_type when absent"},
    {"kv_indices", "pages of all requests, one after the other"},
    {"kv_indptr", "first KV entry of each request, and their number at the end"},
    {"kv_last_page_len", "tokens on each request's last page, 1 to the page size"},
    {"kv_layout", "axes of a page: NHD (token, head, dim) or HND (head, token, dim)"},
    {"kv_len_arr", "KV tokens of each request"},
    {"last_page_len", "tokens on each request's last page, 1 to the page size"},
    {"launch_with_pdl", "programmatic dependent launch; CUDA only, without effect on the CPU"},
    {"logits_soft_cap", "c > 0: each logit x becomes c tanh(x / c); 0 or None: none"},
    {"lse", "log-sum-exp of each row's logits, to base 2 unless the call names another"},
    {"m_indptr", "first row of a of each group, and where the last one ends"},
    {"mask", "1 where a row, or an element of a block, takes part; all when absent"},
    {"max_q_len", "upper bound of the query tokens of a request"},
    {"max_seq_len", "no request has more KV tokens"},
    {"multi_ctas_kv_counter_buffer", "GPU kernels only"},
    {"non_blocking", "copies to a GPU; without effect on the CPU"},
    {"num_heads", "query heads"},
    {"num_kv_heads", "KV heads; divides num_qo_heads"},
    {"num_qo_heads", "query heads; a multiple of num_kv_heads"},
    {"o_data_type", "dtype of the result; q_data_type when absent"},
    {"o_scale", "scale of an 8-bit result"},
    {"offsets", "position of each request's first token"},
    {"out", "the result"},
    {"out_dtype", "dtype of the result"},
    {"output", "the result"},
    {"output_dtype", "dtype of the result"},
    {"page_size", "tokens of a page"},
    {"paged_kv_cache", "pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)"},
    {"paged_kv_indices", "pages of all requests, one after the other"},
    {"paged_kv_indices_buffer", "memory for the page ids of every later plan (graphs)"},
    {"paged_kv_indptr", "first page of each request in paged_kv_indices, and their number at the end"},
    {"paged_kv_indptr_buffer", "memory for the page offsets of every later plan (graphs)"},
    {"paged_kv_last_page_len", "tokens on each request's last page, 1 to the page size; one array a level in cascades"},
    {"paged_kv_last_page_len_buffer", "memory for the last pages' lengths of every later plan (graphs)"},
    {"per_token_scale", "factor of each row, applied after the first product"},
    {"pos_encoding_mode", "positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI"},
    {"positions", "position of each token"},
    {"profiler_buffer", "GPU kernels only"},
    {"q", "queries"},
    {"q_data_type", "dtype of the queries"},
    {"q_nope", "the queries' part without position"},
    {"q_scale", "decode scale of the queries: a factor of the logits"},
    {"qo_indptr", "first query token of each request, and their number at the end"},
    {"query", "queries"},
    {"return_lse", "also return the log-sum-exp of each row's logits"},
    {"rope_scale", "positions are divided by this"},
    {"rope_theta", "base of the rotations' frequencies"},
    {"scale", "scale of the quantised values"},
    {"scale_granularity_mnk", "extents of the block of each matrix that shares a scale, by (m, n, k)"},
    {"scale_k", "decode scale of each KV head of 8-bit keys"},
    {"scale_major_mode", "which axis of the scales is contiguous: 'K', or 'MN'"},
    {"scale_q", "decode scale of each head of 8-bit queries"},
    {"scale_v", "decode scale of each KV head of 8-bit values"},
    {"seq_lens", "KV tokens of each request"},
    {"sf_vec_size", "elements that share a scale"},
    {"sinks", "one more logit of each query head's softmax, without a value"},
    {"skip_softmax_threshold_scale_factor", "which blocks of little weight GPU kernels skip; nothing is skipped here"},
    {"sm_scale", "factor of the logits; 1 / sqrt(head dim) when absent"},
    {"top_k", "how many of the largest are kept: a number, or one a row"},
    {"use_cuda_graph", "later plans use the buffers given here and keep the batch size"},
    {"use_fp16_qk_reduction", "GPU kernels only: sums are always kept in f32 on the CPU"},
    {"use_fp16_softmax", "GPU kernels only"},
    {"use_profiler", "GPU kernels only"},
    {"uses_shared_paged_kv_idx",
     "K and V of a token lie on pages of the same id; False: block_tables has rows for K and for V"},
    {"v", "values"},
    {"v_scale", "decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one"},
    {"value", "values"},
    {"variant", "FlashInfer's kernel variant; without effect on the CPU"},
    {"weight", "factor of each element; in Gemma's norms 1 + weight is"},
    {"window_left", "a query token sees at most this many keys before its own; -1: all"},
    {"workspace_buffer", "scratch memory of FlashInfer's kernels; accepted, unused on the CPU"},
    {"x", "elements to work on"},
};
static_assert(std::ranges::is_sorted(kTerms, {}, [](const Term& t) { return std::string_view(t.name); }));

}  // namespace

std::span<const Term> glossary() { return kTerms; }

const char* meaning(const Op& op, const Field& f) {
  if (f.doc) return f.doc;
  const std::string_view name = f.name;
  if (const Family* family = family_of(op))
    for (const Term& t : family->terms)
      if (t.name == name) return t.meaning;
  const auto found = std::ranges::lower_bound(kTerms, name, {}, [](const Term& t) { return std::string_view(t.name); });
  return found != std::end(kTerms) && found->name == name ? found->meaning : nullptr;
}

}  // namespace flashinfer::op
