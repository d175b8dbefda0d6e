// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::quantization {
namespace {
constexpr op::Term kTerms[] = {
    {"a_fp4", "two e2m1 codes a byte, the first in the low half"},
    {"a_global_sf", "encode scale: one for all, or one a row or batch"},
    {"a_sf", "scale factors of the blocks, as bytes"},
    {"alignment", "columns are padded with zeros to a multiple of this"},
    {"bitorder", "whether the first element becomes the highest ('big') or the lowest ('little') bit of a byte"},
    {"blockK", "columns of a block"},
    {"block_scales", "one scale for 16 elements, as bytes of e4m3"},
    {"column_major_scales", "the rows of the scales are the fastest in memory"},
    {"colwise", "whether columns are quantised"},
    {"do_shuffle", "rows of codes and scales are shuffled into the order of GPU kernels"},
    {"dst_dtype", "8-bit dtype of the result"},
    {"e2m1_tensor", "two e2m1 codes a byte, the first in the low half"},
    {"epilogue_tile_m", "rows of a tile of the shuffle"},
    {"fp4_data", "two e2m1 codes a byte, the first in the low half"},
    {"gated_input", "gate and linear half side by side"},
    {"global_scale_tensor", "factor of the whole tensor; 1 when absent"},
    {"grad_output", "gradient of the activation"},
    {"group_size", "elements that share a scale"},
    {"input_tensor", "rows to work on"},
    {"is_global_scale_inversed", "global_scale is the reciprocal"},
    {"is_sf_8x4_layout", "scale factors are stored in tiles of 8x4 instead of 128x4"},
    {"k_cache", "pages of keys"},
    {"k_global_sf", "encode scale of K; 448 / its largest magnitude when absent"},
    {"num_elts_per_sf", "elements that share a scale; changes nothing"},
    {"nvfp4_4over6", "the recipe by which each block takes the better of two scales; None: one scale"},
    {"nvfp4_4over6_config", "the recipe of the quantisation, which may set the largest block scale to 256"},
    {"out_scale", "factor of the scales that are returned"},
    {"output_k", "K as floats, [b, tokens, heads, dim]"},
    {"output_v", "V as floats, [b, tokens, heads, dim]"},
    {"per_token_activation", "each row has a scale of its own, which is returned"},
    {"pre_quant_scale", "factor of each column before quantising"},
    {"rowwise", "whether rows are quantised"},
    {"scale_tensor", "scale factors of the blocks, as bytes"},
    {"scale_tma_aligned", "columns of the scales are padded to a multiple of four rows"},
    {"scale_ue8m0", "scales are powers of two"},
    {"sfLayout", "layout of the scale factors: tiles of 128x4 or 8x4, or row by row"},
    {"sf_swizzle_layout", "layout of the scale factors, in place of is_sf_swizzled_layout"},
    {"sf_use_ue8m0", "scales are powers of two instead of e4m3"},
    {"ufp8_scale_tensor", "scale factors of the blocks, as bytes"},
    {"ufp8_type", "0: scales are powers of two (ue8m0); 1: e4m3"},
    {"unswizzled_sf", "scale factors row by row"},
    {"v_cache", "pages of values"},
    {"v_global_sf", "encode scale of V; 448 / its largest magnitude when absent"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::quantization
