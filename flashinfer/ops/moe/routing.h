// SPDX-License-Identifier: Apache-2.0
// The routing methods, for the ops that route on their way.
#pragma once
#include <vector>

#include "flashinfer/ops/moe/kernels/cuda_params.h"
#include "flashinfer/ops/moe/op.h"

namespace flashinfer::moe {

/// Experts and weights of all tokens, [t * top_k].
struct Routed {
  std::vector<int32_t> ids;
  std::vector<double> weights;  // of the kernel: f32 numbers
};
/// routing.cc
/// `a` as the trtllm family takes it: as in FlashInfer, a bias and a factor are ignored by methods that have none.
MoeRouting without_unused(MoeRouting a);
void check_routing(const MoeRouting& a);
MoeRouteParams route_params(const MoeRouting& a);  // for a GPU, without its results
Routed route(const MoeRouting& a);                 // f32, in parallel
Routed route_reference(const MoeRouting& a);       // f64

}  // namespace flashinfer::moe
