// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "flashinfer/kernels/cuda/exact.h"
#include "tests/device/exact_params.h"

namespace probe {

template <ExactConfig C>
FI_GLOBAL_FN void exact_device(const ExactParams& p) {
  for (int64_t i = flashinfer::cu::thread_x(); i < p.n; i += C.threads) {
    p.exp[i] = flashinfer::cu::exp_exact(p.x[i]);
    p.log2[i] = flashinfer::cu::log2_exact(p.positive[i]);
  }
}

}  // namespace probe
