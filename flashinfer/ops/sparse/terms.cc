// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::sparse {
namespace {
constexpr op::Term kTerms[] = {
    {"C", "columns of a block of the sparse pattern"},
    {"M", "rows of the sparse matrix: query tokens"},
    {"N", "columns of the sparse matrix: KV tokens"},
    {"R", "rows of a block of the sparse pattern"},
    {"block_col_sz", "columns of each block column"},
    {"block_mask", "special GPU back ends only"},
    {"block_mask_map", "which blocks take part, by head, block row and block column"},
    {"block_row_sz", "rows of each block row"},
    {"kv_block_lens", "special GPU back ends only"},
    {"kv_splits", "special GPU back ends only"},
    {"packed_mask", "the mask as bits (packbits, little)"},
    {"q2k_indices", "special GPU back ends only"},
    {"q2k_num", "special GPU back ends only"},
    {"use_clc", "special GPU back ends only"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::sparse
