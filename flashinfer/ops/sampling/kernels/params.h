// SPDX-License-Identifier: Apache-2.0
// Config and Params of softmax, the samplers and the filters. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/select_scratch.h"

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

/// A row may be split into chunks: the tasks of phase 1 (a chunk each) write exponentials relative to their block's
/// maximum to `out` and maxima and sums of blocks to `blocks`; those of phase 2 scale. Phase 0 does both for whole
/// rows. SoftmaxCudaConfig: softmax on a GPU.
struct SoftmaxCudaConfig {
  DType dtype;        // of logits
  DType temperature;  // of the tensor, if there is one
  short aligned;      // every row of logits and out is 16-byte aligned
  int threads;        // of a block, which processes a row

  static constexpr const char* kName = "flashinfer::SoftmaxCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("temperature", temperature);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const SoftmaxCudaConfig&, const SoftmaxCudaConfig&) = default;
};

/// As SoftmaxParams; temperatures are read by the kernel.
struct SoftmaxCudaParams {
  const void* logits;
  float* out;
  const void* temperature;  // [rows], or one when the stride is 0; null: `inverse` for all rows
  int64_t temperature_stride;
  int64_t rows, v, logits_stride, out_stride;
  float inverse;  // 1 / temperature
};

struct SoftmaxParams {
  const void* logits;
  float* out;
  const float* inverse_temperature;  // [rows], or one when the stride is 0
  int64_t inverse_stride;
  int64_t rows, v, rows_per_task;
  int64_t logits_stride, out_stride;
  float* blocks;   // phases 1, 2: 2 * stats_blocks(v) words a row
  float* scratch;  // phase 0: the same for the task's row
  int64_t phase;
};

/// Seeds and offsets; arrays with one element for the whole batch have stride 0.
struct RandomParams {
  const uint64_t *seed, *offset;
  int64_t seed_stride, offset_stride;
  int64_t own_seed;  // each row has its own seed: subsequence 0
};

/// Output row r reads row indices[r] of the input, and the thresholds of that row.
struct SamplingParams {
  const void* probs;
  const void* indices;  // or null
  void* samples;
  bool* valid;                         // or null
  int64_t indices_wide, samples_wide;  // int64
  int64_t rows, v, rows_per_task, probs_stride;
  RandomParams random;
  const int64_t* top_k;  // null: off
  const float* top_p;
  const float* min_p;
  int64_t top_k_stride, top_p_stride, min_p_stride;
  int64_t joint;          // top_k and top_p both apply to the given probabilities
  int64_t logits;         // the input holds logits
  float* stats;           // of all output rows, computed by tasks of a chunk each; null: each row computes its own
  int64_t compute_stats;  // this launch computes the statistics
  float* scratch;         // of this task: sampling_words(v)
};

/// Gumbel noise for sampling_from_logits.
struct GumbelParams {
  const void* logits;
  const void* indices;
  void* samples;
  int64_t indices_wide, samples_wide;
  int64_t rows, v, rows_per_task, logits_stride;
  RandomParams random;
  uint64_t* best;  // a key for each chunk, when rows are split; phase 1 computes them, phase 2 takes the best of a row
  int64_t phase;
};

/// The kept elements: fewer than top_k above them, less than top_p above them.
struct FilterParams {
  const void* input;
  void* out;
  int64_t rows, v, rows_per_task, input_stride, out_stride;
  const int64_t* top_k;  // null: off
  const float* top_p;
  int64_t top_k_stride, top_p_stride;
  int64_t
      mask;  // logits: -inf in place of the others; else probabilities: 0, and the kept ones are divided by their sum
  float* scratch;  // of this task: filter_words(v)
};

// ---- on a GPU ----
/// A block processes a row; the kernel reads values that the CPU's host code would read.
struct SampleCudaConfig {
  DType dtype;         // of the input
  unsigned char zero;  // no padding
  short threads;       // of a block; results do not depend on it

  static constexpr const char* kName = "flashinfer::SampleCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v(nullptr, zero);
    v("threads", threads);
  }
  friend constexpr bool operator==(const SampleCudaConfig&, const SampleCudaConfig&) = default;
};
/// A number, or a tensor of one for each row.
struct Column {
  const void* data;  // null: the number
  int64_t stride;    // 0: one for all rows
  DType dtype;
  uint8_t given;  // otherwise the limit is off
  int64_t whole;  // the number, if an integer
  float real;     // the number, otherwise
};
struct RandomCudaParams {
  Column seed, offset;
  int64_t own_seed;
};
/// As SamplingParams. Rows of `indices` that the input does not have give token 0, not valid.
struct SampleCudaParams {
  const void* input;
  const void* indices;
  void* samples;
  bool* valid;
  int64_t indices_wide, samples_wide;
  int64_t rows, input_rows, v, stride;
  RandomCudaParams random;
  Column top_k, top_p, min_p;
  int64_t joint, logits;
  float* scratch;  // of each block: sample_cuda_words(v, logits)
  uint64_t* best;  // sampling_from_logits: a key for each chunk of each row, when there are several
};
struct FilterCudaParams {
  const void* input;
  void* out;
  int64_t rows, v, input_stride, out_stride;
  Column top_k, top_p;
  int64_t mask;
};

/// Words of global memory a block: collected elements, their positions, and probabilities where the input holds logits.
constexpr int64_t sample_cuda_words(int64_t v, bool logits) { return round_up(v, 64) * (logits ? 3 : 2); }
/// Bytes of shared memory: bins of a selection, 18 slots, 8 numbers for each statistics block.
constexpr int64_t sample_cuda_shared(int64_t v) { return 8192 + 256 + cpu::stats_blocks(v) * 32; }
inline constexpr int64_t kMostCudaTokens = 1 << 20;  // 41 KB of shared memory

struct ChainArguments {
  const void *draft, *target;
  const void* ids;
  int32_t* out;
  void *accepted, *emitted;             // read and written
  int32_t *accepted_now, *emitted_now;  // counts of this call alone
  int64_t ids_wide, accepted_wide, emitted_wide, accepted_given, emitted_given;
  int64_t rows, n, v;
  int64_t draft_row, draft_step, target_row, target_step, ids_row, out_row;
};
struct ChainParams : ChainArguments {
  int64_t rows_per_task;
  RandomParams random;
};
struct ChainCudaParams : ChainArguments {
  RandomCudaParams random;
  float* scratch;  // of each block: chain_cuda_words(v)
};
constexpr int64_t chain_cuda_words(int64_t v) { return round_up(v, 64); }

namespace cpu {
/// 4-byte words of a sampler's task: the statistics, two more rows of block sums, the collected elements, their
/// statistics, and the row as probabilities where the input holds logits.
inline int64_t sampling_words(int64_t v, bool logits) {
  return 2 * stats_words(v) + 4 * stats_blocks(v) + collect_words(v) + (logits ? v + 64 : 0);
}
inline int64_t filter_words(int64_t v) { return stats_words(v) + collect_words(v); }
}  // namespace cpu

}  // namespace flashinfer
