// SPDX-License-Identifier: Apache-2.0
// What the RoPE kernel needs to know. Freestanding.
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

/// On a GPU.
struct RopeCudaConfig {
  DType dtype;
  unsigned char interleave;
  short
      aligned;  // every head begins at 16 bytes; half of rotary (interleaved: rotary) and what follows fill whole ones
  int threads;  // of a block, which takes a token

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

/// One of q and k.
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
  DType dtype;               // of what is read
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

/// Heads that are read, rotated as a whole or not at all, multiplied and cast.
struct RopeQuantizePart {
  TokenRows from, to;
  int64_t heads, dim;  // dim 0: absent
  float scale;
  unsigned char rotate, paged;  // paged: `to` is addressed by the token's slot
};
inline constexpr int kRopeQuantizeParts = 5;  // Q's rope part and its other one, K's, V
struct RopeQuantizeParams {
  RopeParams rope;  // positions and table
  RopeQuantizePart part[kRopeQuantizeParts];
  const int64_t* slot;  // [tokens], negative: rows that are not paged become 0, nothing else; or null
  int64_t tokens, tokens_per_task;
};

}  // namespace flashinfer
