// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::quantization {
extern const op::Op kv_quantize_op, kv_dequantize_op, kv_dequantize_paged_op, quantize_paged_op;
}  // namespace flashinfer::ops::quantization
