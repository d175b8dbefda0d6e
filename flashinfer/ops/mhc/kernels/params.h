// SPDX-License-Identifier: Apache-2.0
// Parameters of the hyper-connection kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

inline constexpr int kMhcStreams = 4;
inline constexpr int kMhcMixes = 24;  // 4 of pre, 4 of post, 16 of comb

struct MhcConfig {
  DType dtype;         // of x, residual and the results of their type
  unsigned char post;  // mhc_post, else the pre-mapping

  static constexpr const char* kName = "flashinfer::MhcConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("post", post);
  }
  friend constexpr bool operator==(const MhcConfig&, const MhcConfig&) = default;
};

struct MhcCudaConfig {
  DType dtype;
  unsigned char squares;  // of the pre-mapping: the sum of squares is that of residual
  short aligned;          // every row begins at 16 bytes and fills whole ones
  short threads;          // of a block

  static constexpr const char* kName = "flashinfer::MhcCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("squares", squares);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MhcCudaConfig&, const MhcCudaConfig&) = default;
};

/// All arrays are contiguous, row by row.
struct MhcParams {
  const void *x, *residual;
  void* out;                       // [rows][4][H], or layer_input [rows][H]
  const float *post_in, *comb_in;  // of mhc_post
  const float *dot_mix, *sqrsum;   // [splits][rows][24], [splits][rows]; sqrsum null: from residual
  const float *scale, *base;       // [3], [24]
  float *post_out, *comb_out;      // [rows][4], [rows][16]
  float inverse_k, rms_eps, pre_eps, sinkhorn_eps, post_factor;
  int64_t repeat, splits;
  int64_t rows, hidden, rows_per_task;
};

}  // namespace flashinfer
