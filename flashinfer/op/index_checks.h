// SPDX-License-Identifier: Apache-2.0
// Checks of index arrays that ops share.
#pragma once
#include <string_view>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// ValueError unless lo <= every value < hi: "name[3] is 17, but must be in [0, 16) (pages of the pool)". int32 or
/// int64. An array on a GPU is not read.
void check_index_range(std::string_view name, const TensorView& v, int64_t lo, int64_t hi, std::string_view why);
/// ValueError unless v[0] == 0 and v never decreases; returns the last value.
int64_t check_indptr(std::string_view name, const TensorView& v);
/// ValueError unless v has an entry for each of `batch` requests, as many as the argument `of` has, and one more.
/// Padded batches pass longer arrays, whose other entries are not read.
void check_indptr_room(std::string_view name, const TensorView& v, int64_t batch, std::string_view of);
/// Element i of an int32/int64/uint32/bool... host tensor of rank 1, any stride.
int64_t index_at(const TensorView& v, int64_t i);

}  // namespace flashinfer::op

#pragma GCC visibility pop
