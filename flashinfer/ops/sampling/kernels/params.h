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
  int threads;        // of a block; a cluster of blocks processes a row

  constexpr int min_blocks() const { return 1024 / threads; }  // up to 64 registers; left alone, the compiler spills

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
  int64_t part;   // elements of a row that a block processes, a multiple of 4
  int64_t kept;   // of those, the first ones stay in its shared memory (a multiple of 4); others are read again
  float inverse;  // 1 / temperature
};
/// Shared memory in front of the kept elements: sums of warps, (maximum, sum) of each block of the cluster.
inline constexpr int64_t kSoftmaxSlots = 256;

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
  float* scratch;         // of this task: sampling_scratch(v, logits).words
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
  float* scratch;  // of this task: filter_scratch(v).words
};

// ---- on a GPU ----
/// A cluster of blocks processes a row; the kernel reads values that the CPU's host code would read.
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
  float* scratch;  // of each cluster: sample_cuda_scratch(v, logits).words
  uint64_t* best;  // sampling_from_logits: a key for each chunk of each row, when there are several
};
struct FilterCudaParams {
  const void* input;
  void* out;
  int64_t rows, v, input_stride, out_stride;
  Column top_k, top_p;
  int64_t mask;
};

/// Where the parts of a cluster's global memory begin, in 4-byte words: collected elements, their positions, and
/// probabilities where the input holds logits.
struct SampleCudaScratch {
  int64_t values, positions, probs, words;
};
constexpr SampleCudaScratch sample_cuda_scratch(int64_t v, bool logits) {
  const int64_t row = round_up(v, 64);
  return {.values = 0, .positions = row, .probs = 2 * row, .words = row * (logits ? 3 : 2)};
}
/// Shared memory, in bytes: bins of a selection, 64-bit slots, then kSharedSums arrays of a number for each statistics
/// block.
inline constexpr int64_t kSharedBins = 8192, kSharedSlots = 640, kSharedSums = 8;
inline constexpr int kSampleBlocks = 8;  // most blocks of a row: what every GPU with clusters can run
constexpr int64_t sample_cuda_shared(int64_t v) {
  return kSharedBins + kSharedSlots + cpu::stats_blocks(v) * kSharedSums * 4;
}
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
  float* scratch;  // of each cluster: chain_cuda_words(v)
};
constexpr int64_t chain_cuda_words(int64_t v) { return round_up(v, 64); }

namespace cpu {
/// Where the parts of a sampler's scratch begin, in 4-byte words.
struct SamplingScratch {
  int64_t row, sums[2];          // statistics of the row, two more rows of block sums
  int64_t values, positions;     // collected elements
  int64_t inner, inner_sums[2];  // their statistics and block sums
  int64_t probs;                 // the row as probabilities, where the input holds logits
  int64_t words;                 // of all
};
constexpr SamplingScratch sampling_scratch(int64_t v, bool logits) {
  SamplingScratch s{};
  ScratchWords at;
  s.row = at.next(stats_words(v));
  for (int64_t& sums : s.sums) sums = at.next(stats_blocks(v));
  s.values = at.next(collect_words(v) / 2), s.positions = at.next(collect_words(v) / 2);
  s.inner = at.next(stats_words(v));
  for (int64_t& sums : s.inner_sums) sums = at.next(stats_blocks(v));
  s.probs = at.next(logits ? v + 64 : 0);
  s.words = at.words;
  return s;
}
/// The same of a filter.
struct FilterScratch {
  int64_t row, values, positions, words;
};
constexpr FilterScratch filter_scratch(int64_t v) {
  FilterScratch s{};
  ScratchWords at;
  s.row = at.next(stats_words(v));
  s.values = at.next(collect_words(v) / 2), s.positions = at.next(collect_words(v) / 2);
  s.words = at.words;
  return s;
}
}  // namespace cpu

}  // namespace flashinfer
