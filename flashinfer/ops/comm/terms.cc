// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::comm {
namespace {
constexpr op::Term kTerms[] = {
    {"group", "name of the ranks' group, the same on all of them"},
    {"rank", "of this process in the group"},
    {"world_size", "ranks of the group"},
    {"max_token_num", "rows of the largest input"},
    {"hidden_dim", "columns of the largest input"},
    {"workspace", "memory that the ranks share"},
    {"pattern", "which results follow the sum"},
    {"residual_in", "added to the sum; the same on every rank"},
    {"residual_out", "sum + residual_in; not stored when absent"},
    {"rms_gamma", "weight of the RMSNorm"},
    {"weight_bias", "added to rms_gamma (1: Gemma)"},
    {"use_oneshot", "True: each rank sums all rows; False: its part of them; absent: by size"},
    {"fp32_acc", "the sum is rounded once, not after each rank"},
    {"layout_code", "of FP4 scales: 0 128x4, 1 8x4, 2 linear"},
    {"block_quant_group_size", "columns that share a scale"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::comm
