// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::quantization {
extern const op::Op kv_quantize_op, kv_dequantize_op, kv_dequantize_paged_op, quantize_paged_op;
extern const op::Op fp4_op, nvfp4_op, batched_op, mxfp4_op;                                     // fp4.cc
extern const op::Op into_op;                                                                    // into.cc
extern const op::Op global_scale_op;                                                            // global_scale.cc
extern const op::Op mxfp8_op, mxfp8_dequantize_op;                                              // mxfp8.cc
extern const op::Op fp4_to_float_op, mxfp4_dequantize_op, mxfp4_dequantize_host_op;             // dequantize.cc
extern const op::Op interleave_op, shuffle_op, shuffle_scales_op, reorder_op, block_layout_op;  // layout.cc
extern const op::Op silu_fp4_op, grouped_fp4_op, silu_experts_fp4_op;                           // grouped.cc
extern const op::Op group8_op, tensor8_op;                                                      // group8.cc
extern const op::Op sage_op;                                                                    // sage.cc
extern const op::Op grouped_mxfp8_op;                                                           // grouped_mxfp8.cc
extern const op::Op swiglu_mxfp8_op, swiglu_mxfp8_backward_op, smooth_op;                       // swiglu.cc
}  // namespace flashinfer::ops::quantization
