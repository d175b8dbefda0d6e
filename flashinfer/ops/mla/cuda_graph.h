// SPDX-License-Identifier: Apache-2.0
// Plans of use_cuda_graph=True on GPUs (attention/cuda/graph.h), and the plan as attention's code has it.
#pragma once
#include <memory>

#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/attention/cuda/graph.h"
#include "flashinfer/ops/mla/cuda_launch.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {

/// Made by the first plan() of a wrapper whose buffers are on a device, and shared by its later plans.
struct CapturedPlan {
  std::shared_ptr<attention::GraphArrays> arrays;
  int64_t max_rows = 0, most_tokens = 0;  // of the first plan: query rows, and those of a request
  std::shared_ptr<const Plan> latest;     // whose arrays are on the device
};

/// One KV head, the same arrays.
attention::Plan attention_plan(const Plan& p, DType output);
/// What a plan's calls are computed in, but for scales of each key.
cuda::MlaShape shape_of(const Plan& p);
/// The kernels' Configs for requests of few and of many rows, of which a request has at most `most`.
std::array<MlaCudaConfig, 2> configs_of(const cuda::MlaShape& shape, int64_t most, const jit::Arch& arch);
/// Tiles of the kinds.
std::array<attention::Part, 2> kinds_of(const std::array<MlaCudaConfig, 2>& configs, const MlaCoresConfig& cores,
                                        bool on_cores);

}  // namespace flashinfer::mla
