// SPDX-License-Identifier: Apache-2.0
// The gated delta rule over packed sequences. q [T, Hq, K], k [T, Hk, K], v [T, Hv, V] of f16, bf16 or f32; sequence n
// is tokens cu_seqlens[n] .. cu_seqlens[n + 1]. There are H = max(Hq, Hv) heads; tensors with fewer heads share each
// with neighbours. States are [N, H, V, K], K innermost; without initial_state they begin as zeros. The result is [T,
// H, V] of q's type. All sums are in f32, and a state is rounded where it is stored.
//
// scale None or 0 is K^-0.5. use_qk_l2norm_in_kernel divides q and k by sqrt(sum of squares + 1e-6) and rounds them to
// their type. output_final_state: (output, output_state) is returned; output_state is made (f32, unless said otherwise)
// when it is None. The state of an empty sequence is its initial state; in a caller's output_state it is left as it is.
// AssertionError: cu_seqlens of chunk_gated_delta_rule is None. ValueError: cu_seqlens of the others is; what does not
// fit together, an unknown backend; on the CPU also NaN in g, beta or w, and a g below 0 that is a factor. On a GPU
// these are data.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/core/tensor.h"
#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// S <- g S;  S <- S + beta (v - S k) k^T;  o = S (scale q), with g the factor itself (not its logarithm): 0 clears the
/// state exactly. Computed by chunks of 64 tokens from each sequence's first.
///
/// Checkpoints: row checkpoint_cu_starts[n] + j of state_checkpoints [C, H, V, K] is the state of sequence n after (j +
/// 1) checkpoint_every_n_tokens tokens, byte for byte the final state of a call that ends there. With state_indices [N]
/// the states are slots of pools, initial_state and an output_state of the caller's, which may be the same tensor.
struct ChunkGatedDeltaRule {
  TensorView q, k, v;
  std::optional<TensorView> g{}, beta{};  // [T, H] f32; None: 1
  std::optional<double> scale{};
  std::optional<TensorView> initial_state{};  // f32, bf16, f16, e4m3, e5m2
  bool output_final_state = false;
  std::optional<TensorView> cu_seqlens{};  // [N + 1] int32 or int64
  bool use_qk_l2norm_in_kernel = false;
  std::optional<TensorView> output{}, output_state{};
  std::optional<TensorView> state_checkpoints{}, checkpoint_cu_starts{};  // [N + 1]
  int64_t checkpoint_every_n_tokens = 0;                                  // a multiple of 64; 0: none
  op::Value use_cp{"auto"};                                               // without effect
  std::optional<TensorView> state_indices{};
  std::optional<int64_t> _cp_chunk_len{};  // without effect
  std::string backend = "auto";
  std::optional<int64_t> max_seqlen{};   // at least the mean length, at most T; without effect
  bool output_state_is_callers = false;  // set by the call
};
/// (output, output_state); the second is undefined unless output_final_state.
std::pair<Tensor, Tensor> chunk_gated_delta_rule(const ChunkGatedDeltaRule& args);

/// S <- S diag(e^g);  S <- S + (w o v - S (beta o k)) k^T;  o = S (scale q): a decay, given as its logarithm, and a
/// gate for each key channel and a gate for each value channel. output_state may not share memory with initial_state.
struct ChunkGatedDeltaRule2 {
  TensorView q, k, v;
  std::optional<TensorView> g{};          // [T, H, K] f32, bf16 or f16; None: 0
  std::optional<TensorView> beta{}, w{};  // [T, H, K], [T, H, V] of q's type; None: 1
  std::optional<double> scale{};
  std::optional<TensorView> initial_state{};  // f32 or bf16, the type of an output_state that is made
  bool output_final_state = false;
  std::optional<TensorView> cu_seqlens{};
  bool use_qk_l2norm_in_kernel = false;
  std::optional<TensorView> output{}, output_state{};
  std::string backend = "auto";
  bool output_state_is_callers = false;  // set by the call
};
std::pair<Tensor, Tensor> chunk_gated_delta_rule2(const ChunkGatedDeltaRule2& args);

/// A product of num_householder = n updates a token: the state decays once by g [T, H], then takes the updates of rows
/// t n .. t n + n - 1 of k [T n, Hk, K], v [T n, Hv, V] and beta [T n, H], then is read. n = 1 is
/// chunk_gated_delta_rule.
struct ChunkGatedDeltaProduct {
  TensorView q, k, v;
  std::optional<TensorView> g{}, beta{};
  int64_t num_householder = 1;
  std::optional<double> scale{};
  std::optional<TensorView> initial_state{};
  bool output_final_state = false;
  std::optional<TensorView> cu_seqlens{};  // of tokens
  bool use_qk_l2norm_in_kernel = false;
  std::optional<TensorView> output{}, output_state{};
  std::string backend = "auto";
  bool output_state_is_callers = false;  // set by the call
};
std::pair<Tensor, Tensor> chunk_gated_delta_product(const ChunkGatedDeltaProduct& args);

}  // namespace flashinfer

#pragma GCC visibility pop
