// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernels of an expert all-to-all. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/scale_layout.h"

namespace flashinfer {

inline constexpr int kMoeA2aRanks = 64;

/// Where a token's row went, for each of its experts: rank << kMoePlaceBits | slot in that rank's slice of this one;
/// kMoeNoPlace when an earlier expert of the token is of the same rank, or the token is not sent there.
inline constexpr int kMoePlaceBits = 25;
inline constexpr uint32_t kMoeNoPlace = 0xffffffffu;

enum class MoeCombineQuant : unsigned char { kNone, kMxfp8, kMxfp4, kNvfp4 };

struct MoeCombineConfig {
  DType payload;  // of the rows; e4m3 when they were sent in low precision
  DType out;      // kNone: of the sums
  MoeCombineQuant quant;

  static constexpr const char* kName = "flashinfer::MoeCombineConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("payload", payload);
    v("out", out);
    v("quant", quant);
  }
  friend constexpr bool operator==(const MoeCombineConfig&, const MoeCombineConfig&) = default;
};
struct MoeCombineParams {
  const void* source[kMoeA2aRanks];  // each rank's rows for this one
  const uint32_t* places;            // [tokens, top_k]
  int64_t tokens, top_k, d;
  int64_t row_bytes;  // between rows of a source
  int64_t rows_per_task;
  void* out;
  void* scales;         // of the quantised
  int64_t padded_rows;  // rows of scales; those behind the tokens become 0
  SfLayout layout;
  float scale;     // of NVFP4
  float* scratch;  // d elements a task
};

/// Rows of T to e4m3, saturating, from the beginning of each row; `from` may be `to`.
struct MoeNarrowConfig {
  DType payload;

  static constexpr const char* kName = "flashinfer::MoeNarrowConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("payload", payload);
  }
  friend constexpr bool operator==(const MoeNarrowConfig&, const MoeNarrowConfig&) = default;
};
struct MoeNarrowParams {
  const void* from;
  void* to;
  int64_t rows, d, row_bytes, rows_per_task;
};

}  // namespace flashinfer
