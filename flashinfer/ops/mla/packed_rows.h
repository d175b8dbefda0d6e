// SPDX-License-Identifier: Apache-2.0
// Rows of 656 bytes of a latent cache (kPackedRow of kernels/params.h), unpacked for the CPU's kernels.
#pragma once
#include <vector>

#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {

/// The rows that a plan's requests need, unpacked; the plan's tokens are renumbered to be their places.
class PackedRows {
 public:
  /// `rows`: uint8 [tokens, 656], which outlive this. `p`: a plan of pages of one token.
  PackedRows(Plan& p, const TensorView& rows);
  /// Writes bf16 values: products with scales are rounded.
  void unpack() const;
  /// The same by plain loops, from the bits of the codes.
  void unpack_reference() const;
  /// [rows, 1, 512 + 64].
  TensorView values() const { return values_.view(); }

 private:
  TensorView rows_;
  std::vector<int32_t> used_;
  Tensor values_;
};

}  // namespace flashinfer::mla
