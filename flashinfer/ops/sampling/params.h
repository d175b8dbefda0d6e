// SPDX-License-Identifier: Apache-2.0
// What softmax and the samplers need to know. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct SamplingConfig {
  DType dtype;  // of logits or probs

  static constexpr const char* kName = "flashinfer::SamplingConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const SamplingConfig&, const SamplingConfig&) = default;
};

struct SoftmaxParams {
  const void* logits;
  float* out;
  const float* inverse_temperature;  // [rows], or one when the stride is 0
  int64_t inverse_stride;
  int64_t rows, v, rows_per_task;
  int64_t logits_stride, out_stride;
};

/// Arrays with one element for the whole batch have stride 0.
struct SamplingParams {
  const void* probs;
  const void* indices;  // or null
  void* samples;
  bool* valid;                         // or null
  int64_t indices_wide, samples_wide;  // int64
  int64_t rows, v, rows_per_task, probs_stride;
  const uint64_t *seed, *offset;
  int64_t seed_stride, offset_stride;
  const int64_t* top_k;  // at the mapped row; null: plain sampling
  const float* top_p;
  int64_t top_k_stride, top_p_stride;
  int64_t joint;
  int64_t own_seed;   // every row has its seed: subsequence 0
  uint64_t* scratch;  // top_k_first: scratch_words for each task
  int64_t scratch_words;
};

}  // namespace flashinfer
