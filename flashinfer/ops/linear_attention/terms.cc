// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr op::Term kTerms[] = {
    {"A", "decay of the state: of each element, by e^(A dt)"},
    {"B", "what x is multiplied with on its way into the state"},
    {"C", "what the state is multiplied with on its way out"},
    {"D", "factor of x that is added to the result"},
    {"cache_steps", "tokens of the longest sequence"},
    {"cu_seqlens", "first token of each sequence, and their number at the end"},
    {"disable_state_update", "leave the pool of states as it is"},
    {"dst_state_batch_indices", "slots written: of each sequence, or, with several tokens, after each of its tokens"},
    {"dt", "time steps"},
    {"dt_bias", "added to dt"},
    {"dt_softplus", "take softplus of dt + dt_bias"},
    {"intermediate_state_indices", "row of intermediate_states_buffer for each sequence; absent: its slot"},
    {"intermediate_state_scales", "decode scales of int16 intermediate states"},
    {"intermediate_states_buffer", "takes the state after each token"},
    {"num_accepted_tokens",
     "tokens of the last step that count: a sequence starts from column max(it - 1, 0) of its slots"},
    {"pad_slot_id", "slot of sequences that are padding: they read zeros and write nothing"},
    {"philox_rounds", "rounds of the random number generator"},
    {"rand_seed", "seed of the random bits with which states are rounded"},
    {"state", "states of all slots, updated in place"},
    {"state_batch_indices", "slot of each sequence; absent: sequence i has slot i"},
    {"state_scale", "decode scales of int16 states, one a row"},
    {"x", "inputs"},
    {"z", "gate: the result is multiplied by silu(z)"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::linear_attention
