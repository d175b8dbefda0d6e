// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/empty_params.h"
#include "flashinfer/kernels/cuda/cu.h"

namespace bench_empty {

template <Config C>
FI_GLOBAL_FN void empty(const Params&) {}

}  // namespace bench_empty
