// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::quantization {
std::span<const op::Case> packbits_cases();
std::span<const op::Case> segment_packbits_cases();
std::span<const op::Case> kv_quantize_cases();
std::span<const op::Case> kv_dequantize_cases();
std::span<const op::Case> kv_dequantize_paged_cases();
std::span<const op::Case> quantize_paged_cases();
// block_cases.cc
std::span<const op::Case> fp4_cases();
std::span<const op::Case> nvfp4_cases();
std::span<const op::Case> global_scale_cases();
std::span<const op::Case> batched_cases();
std::span<const op::Case> mxfp4_cases();
std::span<const op::Case> into_cases();
std::span<const op::Case> mxfp8_cases();
std::span<const op::Case> mxfp8_dequantize_cases();
std::span<const op::Case> fp4_to_float_cases();
std::span<const op::Case> mxfp4_dequantize_cases();
std::span<const op::Case> mxfp4_dequantize_host_cases();
std::span<const op::Case> interleave_cases();
std::span<const op::Case> shuffle_cases();
std::span<const op::Case> shuffle_scales_cases();
std::span<const op::Case> reorder_cases();
std::span<const op::Case> block_layout_cases();
std::span<const op::Case> silu_fp4_cases();
std::span<const op::Case> grouped_fp4_cases();
std::span<const op::Case> silu_experts_fp4_cases();
std::span<const op::Case> group8_cases();
std::span<const op::Case> sage_cases();
std::span<const op::Case> tensor8_cases();
}  // namespace flashinfer::ops::quantization
