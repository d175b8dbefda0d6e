// SPDX-License-Identifier: Apache-2.0
// The CPU's exponential and logarithm for sampling_test.cc; exact_probe.cuh has the GPU's.
#pragma once
#include "flashinfer/ops/sampling/kernels/cpu/gumbel.h"
#include "tests/device/exact_params.h"

namespace probe {

template <ExactConfig C>
void exact_host(const ExactParams& p, int64_t) {
  using namespace flashinfer::cpu;
  for (int64_t i = 0; i < p.n; i += kGumbelTokens) {
    for (int64_t j = 0; j < kGumbelTokens; j += Vec::kLanes) store(p.exp + i + j, exp(load(p.x + i + j)));
    memcpy(p.log2 + i, p.positive + i, kGumbelTokens * 4);
    log2_lanes(p.log2 + i);
  }
}

}  // namespace probe
