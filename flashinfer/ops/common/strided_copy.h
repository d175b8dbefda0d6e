// SPDX-License-Identifier: Apache-2.0
// Copies on a GPU between tensors of any strides: layouts that a kernel does not write itself, and ops that only move.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/kernels/strided_copy_params.h"

namespace flashinfer::ops {

inline constexpr jit::Kernel kStridedCopy{"flashinfer/ops/common/kernels/cuda/strided_copy.cuh",
                                          "flashinfer::cu::strided_copy", "flashinfer::StridedCopyParams"};

/// An axis of both sides; strides in elements.
struct CopyAxis {
  int64_t size, from_stride, to_stride;
};
struct StridedCopy {
  StridedCopyConfig config;
  StridedCopyParams params;  // pointers are the caller's
  cuda::Launch launch;
};
/// How elements of `item` bytes, the slowest axis first, are copied. Pointers that the launch gets must have the
/// alignment of `addresses`. Unsupported (empty): more than 6 axes that do not merge, 2^32 or more elements.
std::optional<StridedCopy> strided_copy(std::span<const CopyAxis> axes, int64_t item, uint64_t addresses);

/// One launch.
op::Prepared prepare_strided_copy(const void* from, void* to, std::span<const CopyAxis> axes, int64_t item,
                                  Device device);

}  // namespace flashinfer::ops
