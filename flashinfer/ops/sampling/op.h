// SPDX-License-Identifier: Apache-2.0
// Softmax and sampling; filters.h and chain.h have filters and speculative sampling. Rows are processed alone and sums
// have one order (blocks of 1024 elements, each over 64 lanes, blocks added in double), so a result depends on its row,
// seed and offset, never on threads or other requests of the batch.
//
// Random numbers: Philox4x32-10, u = bits * 2^-32 + 2^-33 in (0, 1]. One seed for the batch: the subsequence is the
// output row. A seed for each row: the subsequence is 0, so that a request draws the same tokens wherever it is in the
// batch (FlashInfer uses the row). Without `seed` and `offset`, a generator provides them: `generator`, or one of this
// process with seed 0; it advances by 4 * ceil(n / 4) numbers a call, and the offset after that is used; n = rows
// (sampling_from_probs, min_p), 32 * rows (rejection sampling) or rows * v (sampling_from_logits).
//
// Thresholds (top_k, top_p, min_p) are a number or one a row of the input, read at the row drawn from. A row with no
// usable probability (nothing positive, a NaN or infinity anywhere, a sum beyond f32) gives id 0 and valid = false,
// without affecting the other rows. Negative probabilities are treated as 0. Tokens with equal probabilities pass a
// filter together: top_k = 1 is not argmax on ties, the op top_k is.
//
// All throw ValueError for inconsistent shapes or dtypes, an index outside the rows, seed without offset, a number with
// a tensor, a NaN threshold or one for another number of rows, a NaN in the input with check_nan.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/value.h"
#include "flashinfer/ops/sampling/chain.h"
#include "flashinfer/ops/sampling/filters.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct Softmax {
  TensorView logits;                                   // [rows, v] f32|f16|bf16, rows may be strided
  std::optional<op::ScalarOrTensor> temperature = {};  // a number or [rows] f32|f16|bf16|f64; absent: 1
  std::optional<bool> enable_pdl = {};                 // CUDA only
  std::optional<TensorView> out = {};                  // C++ only: memory for the result, [rows, v] f32
};
/// exp(logits / T - max) / sum in f32, where logits / T is logits times 1 / T. T = 0, and -1 for a row, gives equal
/// probabilities (engines mark greedy rows this way and use top_k with k = 1 for them). -inf gives 0; a row of -inf
/// gives zeros; a NaN or +inf makes its row NaN. ValueError: inconsistent shapes or dtypes, another negative
/// temperature.
Tensor softmax(const Softmax& args);

/// Returned by the samplers: samples, and with return_valid also valid.
struct Samples {
  Tensor samples;  // [n] i32, or the dtype of indices
  Tensor valid;    // [n] bool; undefined unless requested
  operator Tensor() const { return samples; }
};

// The last members of every sampler's block. They are macros because designated initialisers name a block's own members
// only, not those of a base class.
//
// deterministic: accepted, results always are. generator: what a call without seed draws from. check_nan: ValueError
// when the input holds a NaN. seed, offset: a number or [1] or [n] i64|u64; both or neither.
#define FI_SAMPLER_OPTIONS                     \
  bool deterministic = true;                   \
  std::optional<op::Generator> generator = {}; \
  bool check_nan = false;                      \
  std::optional<op::ScalarOrTensor> seed = {}; \
  std::optional<op::ScalarOrTensor> offset = {}
// samples: C++ only, memory for the result. implied_generator: set by the library, what a call draws from that has
// neither seed nor generator.
#define FI_SAMPLER_SAMPLES                \
  std::optional<TensorView> samples = {}; \
  std::optional<op::Generator> implied_generator = {}
// return_valid: whether valid is returned. samples, valid: C++ only, memory for the results.
#define FI_SAMPLER_RESULTS                \
  bool return_valid = false;              \
  std::optional<TensorView> samples = {}; \
  std::optional<TensorView> valid = {};   \
  std::optional<op::Generator> implied_generator = {}

struct SamplingFromProbs {
  TensorView probs;                        // [rows, v] f32|f16|bf16; need not sum to 1
  std::optional<TensorView> indices = {};  // [n] i32|i64: output i draws from row indices[i]; absent: n = rows
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_RESULTS;
};
/// The first token whose inclusive running sum of probabilities exceeds u; the last one with a probability if rounding
/// leaves none.
Samples sampling_from_probs(const SamplingFromProbs& args);

struct TopKSamplingFromProbs {
  TensorView probs;          // [rows, v] f32|f16|bf16
  op::ScalarOrTensor top_k;  // a number or [rows] i32|i64; 0, -1 or >= v: off; below: ValueError
  std::optional<TensorView> indices = {};
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_RESULTS;
};
/// Draws from the tokens with fewer than k larger ones.
Samples top_k_sampling_from_probs(const TopKSamplingFromProbs& args);

struct TopPSamplingFromProbs {
  TensorView probs;          // [rows, v] f32|f16|bf16
  op::ScalarOrTensor top_p;  // a number or [rows] f32|f16|bf16|f64; >= 1: off; <= 0: the likeliest token
  std::optional<TensorView> indices = {};
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_RESULTS;
};
/// Draws from the tokens with less than top_p of probability above them.
Samples top_p_sampling_from_probs(const TopPSamplingFromProbs& args);

struct MinPSamplingFromProbs {
  TensorView probs;          // [rows, v] f32|f16|bf16
  op::ScalarOrTensor min_p;  // a number or [rows] f32|f16|bf16|f64, at most 1; <= 0: off
  std::optional<TensorView> indices = {};
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_RESULTS;
};
/// Draws from the tokens whose probability is at least min_p times the largest one. ValueError also: min_p above 1.
Samples min_p_sampling_from_probs(const MinPSamplingFromProbs& args);

struct TopKTopPSamplingFromProbs {
  TensorView probs;          // [rows, v] f32|f16|bf16
  op::ScalarOrTensor top_k;  // as above
  op::ScalarOrTensor top_p;
  std::optional<TensorView> indices = {};
  std::string filter_apply_order = "top_k_first";  // or "joint"
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_RESULTS;
};
/// Draws from the tokens with fewer than k larger ones and less than top_p of probability above them. "top_k_first":
/// the k largest (and their ties) are renormalised, then filtered by top_p; "joint": both conditions on the given
/// probabilities. top_p <= 0: the likeliest token, the smallest index. ValueError also: another order.
Samples top_k_top_p_sampling_from_probs(const TopKTopPSamplingFromProbs& args);

struct SamplingFromLogits {
  TensorView logits;  // [rows, v] f32|f16|bf16
  std::optional<TensorView> indices = {};
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_SAMPLES;
};
/// The token with the largest logit + Gumbel noise, -ln 2 * log2(-log2(u (1 - 2^-23))): a draw from softmax(logits).
/// NaN and -inf are never drawn; a row with nothing else gives 0.
Tensor sampling_from_logits(const SamplingFromLogits& args);

struct TopKTopPSamplingFromLogits {
  TensorView logits;         // [rows, v] f32|f16|bf16
  op::ScalarOrTensor top_k;  // as above
  op::ScalarOrTensor top_p;
  std::optional<TensorView> indices = {};
  std::string filter_apply_order = "top_k_first";  // or "joint"
  FI_SAMPLER_OPTIONS;
  FI_SAMPLER_SAMPLES;
};
/// top_k_top_p_sampling_from_probs of softmax(logits). "top_k_first" keeps the k largest logits (and their ties) before
/// the softmax. A row with a NaN, +inf or nothing above -inf gives 0.
Tensor top_k_top_p_sampling_from_logits(const TopKTopPSamplingFromLogits& args);

#undef FI_SAMPLER_OPTIONS
#undef FI_SAMPLER_SAMPLES
#undef FI_SAMPLER_RESULTS

}  // namespace flashinfer

#pragma GCC visibility pop
