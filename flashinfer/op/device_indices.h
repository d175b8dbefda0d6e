// SPDX-License-Identifier: Apache-2.0
// Checks of index arrays that only a kernel reads otherwise.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"
#include "flashinfer/op/op.h"

namespace flashinfer::op {

/// Whether FLASHINFER_CUDA_CHECK_INDICES asks for them, and the current stream of `device` allows it: nothing is read
/// while it is captured.
bool checks_device_indices(Device device);
/// The op's own checks once more, with host copies in place of the integer tensors that lie on `device`: what is an
/// error on the CPU is one here, before a kernel follows the index. Waits for the stream.
void check_device_indices(const Op& op, const void* block, Device device);
/// An index array as the host can read it: itself, or a copy of one on a GPU when checks_device_indices asks for it,
/// which waits for the stream; else nothing.
class HostIndices {
 public:
  explicit HostIndices(const TensorView& t);
  explicit operator bool() const { return view_.has_value(); }
  const TensorView& operator*() const { return *view_; }

 private:
  Tensor copy_;
  std::optional<TensorView> view_;
};

}  // namespace flashinfer::op
