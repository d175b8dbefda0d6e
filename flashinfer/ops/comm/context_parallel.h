// SPDX-License-Identifier: Apache-2.0
// Decode with a context that is spread over ranks: each has attention over its part of the keys for all heads, and
// exchanges it for all parts of its own heads. Slice q of a tensor [..., ranks, d] goes to rank q.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct DecodeCpAlltoall {
  TensorView partial_o;      // [..., cp_size, d] f16|bf16, d * 2 a multiple of 16
  TensorView softmax_stats;  // [..., cp_size, s] f32, s even, at least 2
  TensorView workspace;      // [cp_size, words] int64 of comm::share's or share_on_gpu's memory
  int64_t cp_rank = 0, cp_size = 1;
  std::optional<bool> enable_pdl{};  // CUDA only
  std::optional<TensorView> out_o{}, out_stats{};
  std::string group{};
  int64_t call = -1;  // of a recording: what tells the call from others with this workspace, the same on all ranks
};
/// out[..., p, :] = rank p's input[..., cp_rank, :], of both tensors. Collective. ValueError: shapes that do not fit
/// together or into the workspace; RuntimeError: a rank that calls something else, died or does not arrive in time.
std::pair<Tensor, Tensor> decode_cp_a2a_alltoall(const DecodeCpAlltoall& args);

struct DecodeCpLseReduce {
  TensorView partial_o;    // [..., cp_size, d] f16|bf16
  TensorView partial_lse;  // [..., cp_size] f32
  TensorView workspace;    // [cp_size, bytes] u8 of comm::share or share_on_gpu
  int64_t cp_rank = 0, cp_size = 1;
  std::string lse_mode = "base2";  // or "basee": the base of partial_lse's logarithm
  std::optional<TensorView> out{};
  std::string group{};
  int64_t call = -1;  // as DecodeCpAlltoall::call
};
/// [..., d]: the sum over ranks p of o_p * w_p / sum(w), w_p = base^(lse_p - max(lse)), in f32 in the order of the
/// ranks, rounded once; 0 where all weights are 0. A NaN or +inf in partial_lse counts as -inf; a rank of weight 0 is
/// not read, whatever its row holds. Collective; errors as above.
Tensor decode_cp_a2a_lse_reduce(const DecodeCpLseReduce& args);

}  // namespace flashinfer

#pragma GCC visibility pop
