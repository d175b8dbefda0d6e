// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::topk {
namespace {
constexpr op::Term kTerms[] = {
    {"compress_ratio", "KV tokens that a logit stands for"},
    {"dsa_graph_safe", "GPU kernels only"},
    {"lengths", "scores of each row that take part"},
    {"load_balance", "GPU kernels only"},
    {"logits", "scores of each row"},
    {"next_n", "rows of a request"},
    {"out_indices", "the positions found"},
    {"out_raw_indices", "the positions found, before they are looked up in the page table"},
    {"out_values", "the logits found"},
    {"page_table_row_starts", "first page of each row in its table"},
    {"pre_idx", "a hint of GPU kernels; without effect"},
    {"return_values", "also return the logits found"},
    {"row_starts", "first score of each row that takes part; 0 when absent"},
    {"row_to_batch", "which row of the page table each row uses; its own when absent"},
    {"sorted", "whether the values of a row come in falling order"},
    {"src_page_table", "the pages of each request, one row each"},
    {"tie_break", "which of equal values is taken: any, that of the smaller index, or of the larger"},
    {"workspace", "scratch memory of upstream's kernels; without effect"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::topk
