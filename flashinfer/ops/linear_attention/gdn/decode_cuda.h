// SPDX-License-Identifier: Apache-2.0
// The decode kernel on a GPU, for the ops that launch it.
#pragma once
#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/linear_attention/gdn/decode_call.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/decode_params.h"

namespace flashinfer::ops::linear_attention {

/// States with K innermost.
inline constexpr jit::Kernel kGdnDecodeCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_decode.cuh",
                                            "flashinfer::cu::gdn_decode", "flashinfer::GdnDecodeParams"};
/// Reads no indices.
GdnDecodeParams decode_cuda_params(const DecodeCall& c);

}  // namespace flashinfer::ops::linear_attention
