// SPDX-License-Identifier: Apache-2.0
// Parameters of the norms of diffusion transformers. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct DitNormConfig {
  DType dtype;           // of all rows
  unsigned char affine;  // gamma and beta, else scale and shift of each row

  static constexpr const char* kName = "flashinfer::DitNormConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("affine", affine);
  }
  friend constexpr bool operator==(const DitNormConfig&, const DitNormConfig&) = default;
};

/// One of the rows' tensors; null data: absent.
struct DitRows {
  const void* data;
  int64_t stride[2];
};
struct DitNormParams {
  DitRows input, residual, gate, scale, shift, residual_out, norm_out;  // the last two are written
  const float *gate_bias, *scale_bias, *shift_bias;                     // [d] or null; with affine gamma, beta:
  const float *gamma, *beta;
  float input_factor, eps;
  int64_t rows, d, inner;  // row r is (r / inner, r % inner)
  int64_t rows_per_task;
};

struct QkNormRopeConfig {
  DType dtype;  // of qkv and weights
  DType out;    // as dtype, or f8_e4m3fn
  unsigned char interleave;

  static constexpr const char* kName = "flashinfer::QkNormRopeConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("interleave", interleave);
  }
  friend constexpr bool operator==(const QkNormRopeConfig&, const QkNormRopeConfig&) = default;
};

inline constexpr int kMaxQkNormRopeDim = 1024;

struct QkNormRopeParams {
  const void* qkv;
  const void* weight[2];     // of q and k; null: no norm
  void* out[3];              // q, k, v
  int64_t out_stride[3][3];  // of b, n and head
  int64_t qkv_stride[2];
  int64_t heads[3], dim;
  float eps, out_scale[3];
  // Tables of the three parts' angles: [extent][channels / 2] cos, then as much of sin.
  const float *cos[3], *sin[3];
  int64_t extent[3], pairs[3];  // ppf, pph, ppw; channels / 2
  int64_t rows, inner;          // row r is (r / inner, r % inner)
  int64_t rows_per_task;
};

struct QkNormRopeCudaConfig {
  DType dtype, out;
  unsigned char interleave, aligned;  // aligned: pieces of 16 bytes of qkv everywhere, and as many elements of results
  short threads;                      // of a block

  static constexpr const char* kName = "flashinfer::QkNormRopeCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("interleave", interleave);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const QkNormRopeCudaConfig&, const QkNormRopeCudaConfig&) = default;
};
struct QkNormRopeCudaParams {
  QkNormRopeParams rows;    // without its tables
  const double* frequency;  // [dim / 2]: what a pair's place is multiplied by
};

}  // namespace flashinfer
