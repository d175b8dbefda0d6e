// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::mhc {
namespace {
constexpr op::Term kTerms[] = {
    {"comb_res_mix", "how the residual streams are mixed among themselves"},
    {"dot_mix", "raw mixes of each row: 4 of pre, 4 of post, 16 of comb"},
    {"mhc_base", "added to the mixes"},
    {"mhc_post_mult_value", "factor of post_mix"},
    {"mhc_pre_eps", "added to the mixes of the layer's input"},
    {"mhc_scale", "factors of the mixes of pre, post and comb"},
    {"mhc_sinkhorn_eps", "added to the elements and sums of Sinkhorn's iteration"},
    {"num_splits", "parts whose sum the mixes are"},
    {"post_layer_mix", "how the layer's result is mixed into each stream"},
    {"residual", "four residual streams"},
    {"rms_eps", "added to the mean square"},
    {"sinkhorn_repeat", "steps of Sinkhorn's iteration"},
    {"sqrsum", "sum of squares of each row"},
    {"x", "the layer's result"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::mhc
