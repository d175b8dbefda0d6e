// SPDX-License-Identifier: Apache-2.0
// Config and Params of the RoPE kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/token_rows.h"
#include "flashinfer/ops/rope/kernels/angle.h"

namespace flashinfer {

struct RopeConfig {
  DType dtype;               // of q and k
  unsigned char interleave;  // pairs (2i, 2i + 1)

  static constexpr const char* kName = "flashinfer::RopeConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("interleave", interleave);
  }
  friend constexpr bool operator==(const RopeConfig&, const RopeConfig&) = default;
};

/// The same on a GPU.
struct RopeCudaConfig {
  DType dtype;
  unsigned char interleave;
  short aligned;  // every head is 16-byte aligned; half of rotary (interleaved: rotary) and the rest are whole 16-byte
                  // pieces
  int threads;    // of a block, which processes a token

  static constexpr const char* kName = "flashinfer::RopeCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("interleave", interleave);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const RopeCudaConfig&, const RopeCudaConfig&) = default;
};

/// An array of int32 or int64.
struct IndexArray {
  const void* data;
  int64_t wide;  // int64
};
FI_ROPE_FN int64_t index_at(const IndexArray& a, int64_t i) {
  return a.wide ? static_cast<const int64_t*>(a.data)[i] : static_cast<const int32_t*>(a.data)[i];
}

/// q or k.
struct RopeTensor {
  const void* in;
  void* out;
  int64_t heads;
  int64_t in_stride[2], out_stride[2];  // token, head; in elements
};

struct RopeParams {
  RopeTensor tensor[2];
  int64_t tokens, d, rotary, tokens_per_task;
  IndexArray positions;        // [tokens], or null data: by request
  IndexArray indptr, offsets;  // [batch + 1], [batch]
  int64_t batch;
  const double* frequency;  // [rotary / 2], or null: from the table
  const float* table;       // [max position][rotary]: cos, then sin
  int64_t table_stride;
};

// ---- with a cast to FP8 ----

struct RopeQuantizeConfig {
  DType dtype;               // of the input
  DType out;                 // e4m3 or e5m2
  unsigned char interleave;  // pairs (2i, 2i + 1)

  static constexpr const char* kName = "flashinfer::RopeQuantizeConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("interleave", interleave);
  }
  friend constexpr bool operator==(const RopeQuantizeConfig&, const RopeQuantizeConfig&) = default;
};

/// Heads that are read, rotated (all of their dims) or not, scaled and cast.
struct RopeQuantizePart {
  TokenRows from, to;
  int64_t heads, dim;  // dim 0: absent
  float scale;
  unsigned char rotate, paged;  // paged: `to` is addressed by the token's slot
};
inline constexpr int kRopeQuantizeParts = 5;  // Q's rope part and its other part, K's two, V
struct RopeQuantizeParams {
  RopeParams rope;  // positions and table
  RopeQuantizePart part[kRopeQuantizeParts];
  const int64_t* slot;  // [tokens], negative: padding, rows that are not paged become 0; or null
  int64_t tokens, tokens_per_task;
};

}  // namespace flashinfer
