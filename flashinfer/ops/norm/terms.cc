// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::norm {
namespace {
constexpr op::Term kTerms[] = {
    {"block_scale", "scale factors of the blocks"},
    {"block_scale_unswizzled", "the same scale factors, linear"},
    {"branch", "what is normalised and added to the residual"},
    {"ffn_input", "receives the norm of the sum"},
    {"gain_center", "added to the weight"},
    {"gate", "what gates the result, through a sigmoid"},
    {"gemma", "factor of each element"},
    {"next_eps", "added to the mean square of the sum"},
    {"next_gain_center", "added to next_weight"},
    {"next_weight", "weight of the second norm"},
    {"normed_out", "the normalised input, before it is quantised"},
    {"output_both_sf_layouts", "also return the scale factors row by row"},
    {"post_eps", "added to the mean square of the branch"},
    {"post_gain_center", "added to post_weight"},
    {"post_weight", "weight of the branch before its norm; none when absent"},
    {"residual", "the stream that input is added to"},
    {"residual_out", "receives the sum"},
    {"scale_format", "dtype of the scales: 'e4m3' or 'ue8m0'; by block_size when absent"},
    {"y_fp4", "the quantised result, two e2m1 codes a byte"},
    {"y_out", "the result before it is quantised, written when given"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::norm
