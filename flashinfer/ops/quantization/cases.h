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
}  // namespace flashinfer::ops::quantization
