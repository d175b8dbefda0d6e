// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels that write and read NVFP4 rows on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/kernels/common/page_table.h"
#include "flashinfer/kernels/common/token_rows.h"

namespace flashinfer {

struct Nvfp4CudaConfig {
  DType dtype;   // of the unquantised side, 16 bits when quantising
  bool aligned;  // pieces of 16 bytes of it, and their codes, are aligned in every row
  short threads;

  static constexpr const char* kName = "flashinfer::Nvfp4CudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const Nvfp4CudaConfig&, const Nvfp4CudaConfig&) = default;
};

/// K or V, as Nvfp4Tensor. `fp8`: rows of 16 bits that are cast to e4m3 times 1 / global (the rope part of MLA); no
/// scales.
struct Nvfp4CudaTensor {
  TokenRows plain, data, scale;
  uint32_t heads, dim;  // dim 0: absent
  FactorSource global;
  int32_t fp8;
};

/// Where token t of the caches lies.
enum class TokenPlace : int32_t {
  kOwn,    // at t
  kSlots,  // at slots[t], skipped when that is negative or outside the pool
  kPages,  // where it is appended
  kTable,  // token t % length of request t / length, through its row of a table; skipped from its length on
};
struct TokenPlaces {
  TokenPlace kind;
  int64_t pool;          // kSlots: entries
  StridedIndices slots;  // kTable: lengths
  AppendPages pages;     // kTable: page_size, pages, and the table as kv_indices, whose rows are `table_stride` apart
  int64_t table_stride, length;
};
struct Nvfp4CudaParams {
  Nvfp4CudaTensor tensor[2];
  TokenPlaces places;
  int64_t tokens;
};

}  // namespace flashinfer
