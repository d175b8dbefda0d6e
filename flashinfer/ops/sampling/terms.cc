// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::sampling {
namespace {
constexpr op::Term kTerms[] = {
    {"check_nan", "a NaN among the probabilities is a ValueError; costs one pass over them"},
    {"draft_probs", "the draft model's probabilities of each proposed token"},
    {"draft_token_ids", "the proposed tokens"},
    {"filter_apply_order", "'top_k_first': top_p of the renormalised top k; 'joint': both of the whole distribution"},
    {"generator", "where random numbers come from; torch's default generator when absent"},
    {"is_deterministic", "without effect: results here never depend on threads"},
    {"logits", "unnormalised log-probabilities, one row a request"},
    {"maybe_output_accepted_token_num", "proposed tokens that pass one by one; added to what it holds"},
    {"maybe_output_emitted_draft_token_num", "how many proposed tokens were emitted; added to what it holds"},
    {"min_p", "tokens less probable than this times the most probable one are left out: a number, or one a row"},
    {"offset", "how many random numbers to skip"},
    {"probs", "probabilities, one row a request; they need not sum to one"},
    {"return_valid", "also return whether each row had a distribution to draw from"},
    {"seed", "of the random numbers, in place of a generator; one for all rows, or one a row"},
    {"target_probs", "the target model's probabilities, of one token more than were proposed"},
    {"temperature", "the logits are divided by this first: a number, or one a row; 1 when absent"},
    {"top_p", "the smallest set of the most probable tokens whose mass reaches this is kept: a number, or one a row"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::sampling
