// SPDX-License-Identifier: Apache-2.0
// Plans on GPUs and the emulator (run.cc has the CPU's way).
#pragma once
#include <memory>
#include <vector>

#include "flashinfer/ops/attention/plan/plan.h"
#include "flashinfer/ops/attention/plan/rope_table.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::attention {

// Of run.cc, for both ways.
AttentionConfig config_of(const Plan& p, const Call& c = {});
/// ALiBi's slopes, or nothing.
std::vector<float> slopes_of(const Plan& p);
/// ROPE_LLAMA's table for all positions of a plan.
std::shared_ptr<const RopeTable> rope_table_of(const Plan& p);
/// Everything but works, partial results and the rotation; pointers of the plan's arrays are the host's.
AttentionParams params_of(const Plan& p, const Call& c, const std::vector<float>& slopes);

/// Why neither kernel (tensor cores, or CUDA cores for other element types) serves `c`, whose tensors are those of the
/// block; empty when they do.
op::Refusal refuse_cuda(const op::Op& op, const void* block, const Plan& p, const Call& c);
/// The plan's arrays and its list of tiles go to the device at the first run and stay there until the next plan().
void run_cuda(const Plan& p, const Call& c);

}  // namespace flashinfer::attention
