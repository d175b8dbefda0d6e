// SPDX-License-Identifier: Apache-2.0
// Plans that a kernel makes on the GPU, from lengths and pages that the host does not read.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/attention/cuda/arrays.h"
#include "flashinfer/ops/attention/kernels/cuda/plan_params.h"

namespace flashinfer::attention {

/// The kernel that makes a plan.
const jit::CudaLoaded& plan_kernel(Device device);
void launch_plan(const jit::CudaLoaded& kernel, const AttentionPlanParams& params);
/// The kernel that writes the bits of a mask, and its launch; no request has more than params.stride bytes.
const jit::CudaLoaded& mask_kernel(Device device);
void launch_mask(const jit::CudaLoaded& kernel, const AttentionMaskParams& params, int64_t requests);
/// Of `spans`, but for arrays and the mask.
AttentionMaskParams mask_params_of(const Spans& spans);

/// What a call with CallTables enqueues before its attention kernels: memory for the plan's arrays and the kernels
/// that write them.
class TablePlan {
 public:
  /// `plan`: without arrays. `c`: for the scales that are on the device.
  TablePlan(const Plan& plan, const AttentionParams& a, const Call& c, const CallTables& tables, bool cores);
  const std::vector<Part>& parts() const { return parts_; }
  /// Of the first kernel that cannot be compiled; empty when all can.
  const std::string& why_not() const { return why_not_; }
  /// Allocates the arrays in the order of the current stream, and enqueues the kernels. `all`: gets the pointers that
  /// are not in `d`.
  void make(OnDevice& d, AttentionCudaParams& all) const;

 private:
  void send_mask(const OnDevice& d, const AttentionParams& a) const;

  CallTables tables_;
  Device device_;
  bool cores_;
  AttentionPlanParams params_{};  // but for the addresses
  std::vector<Part> parts_;
  int64_t bytes_ = 0, qo_indptr_ = -1, kv_indptr_ = -1, kv_len_ = -1, pages_ = -1, scales_ = -1, v_scales_ = -1,
          mask_indptr_ = -1, mask_ = -1;
  const jit::CudaLoaded *kernel_ = nullptr, *mask_kernel_ = nullptr;
  std::string why_not_;
};

}  // namespace flashinfer::attention
