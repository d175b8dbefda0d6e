// SPDX-License-Identifier: Apache-2.0
// What the names of this family's arguments mean, in the symbols of op/glossary.cc, which has the names that several
// families share.
#include "flashinfer/op/glossary.h"

namespace flashinfer::ops::page {
namespace {
constexpr op::Term kTerms[] = {
    {"append_indptr", "first new token of each request, and their number at the end"},
    {"append_key", "new keys, one row a token"},
    {"append_value", "new values, one row a token"},
    {"ckv_sf_cache", "pages of scale factors of a 4-bit compressed KV cache"},
    {"nnz", "number of tokens"},
    {"offset_step", "random numbers that a draw may use"},
    {"slot_mapping", "page * page size + place in it, of each token; negative or past the pool: skipped"},
};
}  // namespace
extern const std::span<const op::Term> terms;
constinit const std::span<const op::Term> terms = kTerms;
}  // namespace flashinfer::ops::page
