// SPDX-License-Identifier: Apache-2.0
// Kernels of calls between GPUs, which no case row makes, for lists to precompile.
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/comm/gpu.h"

namespace flashinfer::ops::comm {
namespace {
constexpr op::LookUp kLookUps[] = {look_up_all_reduce_kernels, look_up_columns_kernels,
                                   look_up_context_parallel_kernels, look_up_moe_a2a_kernels, look_up_sums_kernels};
}  // namespace

extern constinit const std::span<const op::LookUp> lookups;
constinit const std::span<const op::LookUp> lookups = kLookUps;

}  // namespace flashinfer::ops::comm
