// SPDX-License-Identifier: Apache-2.0
// Kernels of products that no case row needs, for lists to precompile.
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/gemm/cublaslt/grids.h"

namespace flashinfer::ops::gemm {
namespace {
constexpr op::LookUp kLookUps[] = {flashinfer::gemm::look_up_grid_layout};
}  // namespace

extern constinit const std::span<const op::LookUp> lookups;
constinit const std::span<const op::LookUp> lookups = kLookUps;

}  // namespace flashinfer::ops::gemm
