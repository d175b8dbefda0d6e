// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr op::Term kTerms[] = {
    {"A", "decay of the state: of each element, by e^(A dt)"},
    {"A_log", "ln of each head's decay rate"},
    {"B", "what x is multiplied with on its way into the state"},
    {"C", "what the state is multiplied with on its way out"},
    {"D", "factor of x that is added to the result"},
    {"a", "each token's part of the decay's argument"},
    {"accept_lens", "how many tokens of each row were accepted"},
    {"b", "the gate of each update before its sigmoid"},
    {"beta_cache", "the gate of each token's update"},
    {"cache_replayssm", "also stores what gated_delta_rule_replayssm_commit needs"},
    {"cache_steps", "tokens of the longest sequence"},
    {"checkpoint_state", "states of all layers"},
    {"cu_seqlens", "first token of each sequence, and their number at the end"},
    {"disable_state_update", "the states stay as they are; only the output is computed"},
    {"dst_state_batch_indices", "slots written: of each sequence, or, with several tokens, after each of its tokens"},
    {"dt", "time steps"},
    {"dt_bias", "added to dt; of the delta rule: each head's part of the decay's argument"},
    {"dt_softplus", "take softplus of dt + dt_bias"},
    {"g_cache", "ln of each token's decay"},
    {"initial_state", "pool of states"},
    {"initial_state_indices", "the slot that each row reads; negative: none"},
    {"intermediate_state_indices", "row of intermediate_states_buffer for each sequence; absent: its slot"},
    {"intermediate_state_scales", "decode scales of int16 intermediate states"},
    {"intermediate_states_buffer", "takes the state after each token"},
    {"null_block_id", "slots up to this one are none"},
    {"num_accepted_tokens",
     "tokens of the last step that count: a sequence starts from column max(it - 1, 0) of its slots"},
    {"output_state_indices", "the slot that each row writes; negative: none; the one that it reads when absent"},
    {"pad_slot_id", "slot of sequences that are padding: they read zeros and write nothing"},
    {"philox_rounds", "rounds of the random number generator"},
    {"rand_seed", "seed of the random bits with which states are rounded"},
    {"rawk_cache", "keys before their normalisation"},
    {"rawv_cache", "values"},
    {"replayssm_beta", "the gate of each token's update"},
    {"replayssm_g", "ln of each token's decay"},
    {"replayssm_rawk", "keys before their normalisation"},
    {"replayssm_rawv", "values"},
    {"scale", "factor of the queries; 1 / sqrt(K) when absent"},
    {"ssm_state_indices", "the slot for the state after each token; negative: none"},
    {"state", "states, updated in place"},
    {"state_batch_indices", "slot of each sequence; absent: sequence i has slot i"},
    {"state_indices", "the slot of each row"},
    {"state_scale", "decode scales of int16 states, one a row"},
    {"track_state_indices", "a further slot for the state after one of the tokens"},
    {"track_steps", "that token"},
    {"use_qk_l2norm", "divides each row of q and k by its norm"},
    {"x", "inputs"},
    {"z", "gate: the result is multiplied by silu(z)"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::linear_attention
