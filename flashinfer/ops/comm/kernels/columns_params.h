// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernel that moves columns of matrices between ranks: what goes to each rank are columns of
// its own of a matrix's rows, what comes from each are columns of its own of another matrix's. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/fast_divisor.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"

namespace flashinfer {

enum class ColumnsWay : unsigned char {
  kPeers,  // through the ranks' memory
  kSplit,  // this rank's matrix to `parts`, one part behind another
  kMerge,  // `parts` to the result
};
struct ColumnsCudaConfig {
  ColumnsWay way;
  unsigned char unit;  // bytes that all addresses, strides and widths are multiples of: 2, 4 or 16
  unsigned short ranks;
  int threads;

  static constexpr const char* kName = "flashinfer::ColumnsCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("way", way);
    v("unit", unit);
    v("ranks", ranks);
    v("threads", threads);
  }
  friend constexpr bool operator==(const ColumnsCudaConfig&, const ColumnsCudaConfig&) = default;
};

/// Bytes of a part that a block moves at once, whatever its unit: blocks with the same index on all ranks move the
/// same.
inline constexpr int64_t kColumnsTile = 4096;

/// All widths, strides and places are bytes. A part is its columns of each row, one row behind another.
struct ColumnsCudaParams {
  const void* source[kAllReduceRanks];  // kPeers: the memory of each rank
  int64_t begin[kAllReduceRanks + 1];   // where each rank's columns begin in a row of `out`
  const void* in;
  void* out;
  void* parts;
  int64_t in_rows, in_stride, in_width;  // in_width: of one part's columns
  int64_t out_rows, out_stride;
  FastDivisor in_units, out_units[kAllReduceRanks];  // by in_width and by the width of each rank's columns, in units
  int64_t first, last;                               // of each part; what is there of [first, last) is moved
  int in_parts;                                      // one for each rank, or 1 for all
  MeetCudaParams meet;
  int64_t slot;  // bytes
};

}  // namespace flashinfer
