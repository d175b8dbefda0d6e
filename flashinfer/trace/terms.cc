// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/trace/terms.h"

#include <span>

namespace flashinfer::trace {
namespace {

struct Term {
  std::string_view name, meaning;
};
constexpr Term kAxes[] = {
    {"K", "extent that the product sums over"},
    {"M", "rows of the first operand"},
    {"N", "columns of the result"},
    {"batch_dim", "rows of the leading axes"},
    {"batch_size", "requests of the batch"},
    {"block_size", "elements that share a scale factor"},
    {"ckv_scale_groups", "groups of a row's compressed elements with a scale each"},
    {"cp_size", "ranks that share a context"},
    {"head_dim", "elements of a head"},
    {"head_dim_ckv", "elements of the compressed key and value"},
    {"head_dim_kpe", "elements of the key's rotary part"},
    {"head_size", "elements of a head"},
    {"hidden_dim", "elements of a token's row"},
    {"hidden_size", "elements of a token's row"},
    {"intermediate_size", "elements between the two products of an expert"},
    {"len_indptr", "requests plus one"},
    {"n_group", "groups of experts that routing chooses among"},
    {"num_experts", "experts of the layer"},
    {"num_kv_heads", "heads of keys and values"},
    {"num_kv_indices", "pages of all requests"},
    {"num_local_experts", "experts of this process"},
    {"num_pages", "pages of the pool"},
    {"num_qo_heads", "heads of queries"},
    {"num_tokens", "tokens of the batch"},
    {"page_size", "tokens of a page"},
    {"seq_len", "tokens of a request"},
    {"stats_dim", "statistics of a row"},
    {"top_k", "experts of a token"},
    {"topk_group", "groups of experts that are kept"},
    {"total_kv", "keys of all requests"},
    {"total_q", "query rows of all requests"},
    {"vocab_size", "words of the vocabulary"},
    {"workspace_bytes", "bytes of the workspace"},
    {"ws_elems_per_rank", "words of a rank's part of the workspace"},
};
constexpr Term kPlanned[] = {
    {"kv_indices", "pages of the requests, one request after the other; set by plan()"},
    {"kv_indptr", "where each request's part begins in the key and value indices; set by plan()"},
    {"qo_indptr", "where each request's query rows begin; set by plan()"},
    {"return_lse", "Bool: whether the log-sum-exp is returned too"},
    {"sm_scale", "factor of the logits; default 1 / sqrt(head_dim)"},
};

std::string meaning(std::span<const Term> terms, std::string_view name) {
  for (const Term& t : terms)
    if (t.name == name) return std::string(t.meaning);
  return {};
}

}  // namespace

std::string axis_meaning(std::string_view name) { return meaning(kAxes, name); }
std::string plan_meaning(std::string_view key) { return meaning(kPlanned, key); }

}  // namespace flashinfer::trace
