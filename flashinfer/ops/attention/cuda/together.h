// SPDX-License-Identifier: Apache-2.0
// Runs of several plans in as few launches as they can be.
#pragma once
#include <span>

#include "flashinfer/ops/attention/run.h"

namespace flashinfer::attention {

struct PlannedCall {
  PlanRef plan;
  Call call;
};
/// All of `calls`, in no order among each other. On tensor cores requests of few rows and of many are in one launch
/// (kernels/cuda/pair.cuh), also those of one plan; without tensor cores and with custom variants each has its own.
/// Results are those of prepare_cuda(), to the bit.
op::Prepared prepare_together_cuda(std::span<const PlannedCall> calls);

}  // namespace flashinfer::attention
