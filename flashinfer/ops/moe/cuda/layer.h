// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts on a GPU: which rows each expert has, both products and what is between and after them, without
// the host.
#pragma once
#include <optional>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/moe/kernels/cuda_params.h"
#include "flashinfer/ops/moe/layer.h"

namespace flashinfer::moe {

MoeNumbers numbers_of(const TensorView& t);  // rank 0: one; rank 1: [n, 1]; rank 2
inline MoeNumbers numbers_of(const std::optional<TensorView>& t) { return t ? numbers_of(*t) : MoeNumbers{}; }
/// The same for one row of [n].
MoeNumbers row_of_numbers(const TensorView& t);
/// One number for each of several, or one for all: element (i, 0) is that of i.
MoeNumbers factors_of(const std::optional<TensorView>& t);
MoeResults results_of(const TensorView& t);

/// What a GPU's kernels read where the host would compute a Layer's values first.
struct GpuCall {
  MoeChoicesParams choices{};                  // the experts of the tokens, without the arrays that it fills; made of
  std::optional<MoeRouteParams> route{};       // the routing of logits, where there are some
  std::optional<TensorView> inter_divisor{};   // of Layer::inter_factor
  std::optional<TensorView> limit_factor{};    // of Layer::limit
  std::optional<TensorView> sm90_scales[2]{};  // of weights in the order of SM90 (sm90_order.h): of either product
  float situ_beta = 4, situ_linear = 25;       // of Layer::situ_beta and situ_linear when these are absent
};
inline constexpr jit::Kernel kPermuteCuda{"flashinfer/ops/moe/kernels/cuda/permute.cuh", "flashinfer::cu::moe_permute",
                                          "flashinfer::MoePermuteParams"};
/// Of moe_permute: a block an expert, and one for the entries of none.
cuda::Launch permute_launch(int64_t experts);

/// Shared memory and grid of a routing; Unsupported: more than kMostRoutedExperts experts.
op::Prepared prepare_route(const MoeRouteParams& p, Device device);
/// y[r] = act(x[r]) of rows [rows, 2 * inter] of f32, as they are.
op::Prepared prepare_activation(MoeActivation kind, const TensorView& x, const TensorView& y, Device device);
/// Unsupported: packed weights, and what the products do not support.
op::Prepared prepare_cuda(const Layer& l, const GpuCall& call, Device device);

}  // namespace flashinfer::moe
