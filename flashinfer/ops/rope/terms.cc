// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::rope {
namespace {
constexpr op::Term kTerms[] = {
    {"cos_sin_cache", "row p holds the cosines of position p, then the sines, for half the rotated dims each"},
    {"head_size", "elements of a head"},
    {"high_freq_factor", "wavelengths below old_context_len / this are not scaled (Llama 3.1)"},
    {"interleave", "rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)"},
    {"is_neox", "rotates halves; False: neighbours (2i, 2i+1)"},
    {"k_nope_out", "k_nope, quantised"},
    {"k_rope_out", "k_rope, rotated and quantised"},
    {"low_freq_factor", "wavelengths above old_context_len / this are scaled by rope_scale (Llama 3.1)"},
    {"old_context_len", "context length that the model was trained with before scaling (Llama 3.1)"},
    {"pos_ids", "position of each token"},
    {"q_nope_out", "q_nope, quantised"},
    {"q_rope", "the queries' position part"},
    {"q_rope_out", "q_rope, rotated and quantised"},
    {"quant_scale_kv", "factor of K and V before the cast"},
    {"quant_scale_q", "factor of q before the cast"},
    {"quantize_dtype", "8-bit dtype of the results"},
    {"rotary_dim", "elements of a head that are rotated; all when absent"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::rope
