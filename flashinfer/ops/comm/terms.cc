// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::comm {
namespace {
constexpr op::Term kTerms[] = {
    {"group", "name of the ranks' group, the same on all of them"},
    {"rank", "of this process in the group"},
    {"world_size", "ranks of the group"},
    {"dtype", "element type of the inputs"},
    {"max_token_num", "rows of the largest input"},
    {"hidden_dim", "columns of the largest input"},
    {"workspace", "memory that the ranks share"},
    {"pattern", "which results follow the sum"},
    {"trigger_completion_at_end", "of a GPU kernel; changes no result"},
    {"norm_out", "memory for the normalised rows"},
    {"quant_out", "memory for the codes: e4m3 [tokens, hidden], or two e2m1 a byte"},
    {"scale_out", "memory for the scales, in the form of the pattern"},
    {"scale_factor", "of FP8: what codes are multiplied by; of FP4: the global scale"},
    {"rms_eps", "added to the mean of the squares"},
    {"residual_in", "added to the sum; the same on every rank"},
    {"residual_out", "sum + residual_in; not stored when absent"},
    {"rms_gamma", "weight of the RMSNorm"},
    {"weight_bias", "added to rms_gamma (1: Gemma)"},
    {"use_oneshot", "True: each rank sums all rows; False: its part of them; absent: by size"},
    {"fp32_acc", "the sum is rounded once, not after each rank"},
    {"layout_code", "of FP4 scales: 0 128x4, 1 8x4, 2 linear"},
    {"moe_reduction_device_num_experts", "of pattern 6, which is not implemented"},
    {"moe_reduction_scale_input", "of pattern 6, which is not implemented"},
    {"moe_reduction_active_experts_token_input", "of pattern 6, which is not implemented"},
    {"moe_reduction_token_input", "of pattern 6, which is not implemented"},
    {"expert_scale_factor", "of pattern 7, which is not implemented"},
    {"shared_expert_output", "of pattern 7, which is not implemented"},
    {"moe_finalize_backend", "of patterns 7 and 12, which are not implemented"},
    {"block_quant_group_size", "columns that share a scale"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::comm
