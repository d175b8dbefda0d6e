// SPDX-License-Identifier: Apache-2.0
// Parameters of the merge kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct MergeConfig {
  DType dtype;  // of v: f32, f16, bf16
  DType out;    // of the merged v
  static constexpr const char* kName = "flashinfer::MergeConfig";
  template <class V>
  constexpr void visit(V&& f) const {
    f("dtype", dtype);
    f("out", out);
  }
  friend constexpr bool operator==(const MergeConfig&, const MergeConfig&) = default;
};

/// The same on a GPU.
struct MergeCudaConfig {
  DType dtype;
  DType out;
  short aligned;  // every row of v and v_out is 16-byte aligned and dim is a whole number of 16-byte pieces
  int threads;    // of a block

  static constexpr const char* kName = "flashinfer::MergeCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MergeCudaConfig&, const MergeCudaConfig&) = default;
};

/// States 0..states-1 of row (n, h): with `pair`, state i is in v[i], s[i]; else at i * the state strides of v[0],
/// s[0].
struct MergeParams {
  const void* v[2];
  const float* s[2];
  int64_t v_stride_n[2], v_stride_h[2], s_stride_n[2], s_stride_h[2];
  int64_t v_stride_state, s_stride_state;
  void* v_out;
  float* s_out;
  int64_t v_out_stride_n, v_out_stride_h, s_out_stride_n, s_out_stride_h;
  const uint8_t* mask;  // [tokens] or null: 0 leaves a token unchanged
  int64_t mask_stride;
  int64_t tokens, heads, dim, states, tokens_per_task;
  int64_t pair;
};

}  // namespace flashinfer
