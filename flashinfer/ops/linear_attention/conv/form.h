// SPDX-License-Identifier: Apache-2.0
// The two ops of the causal convolution as one: what their launch and their reference read.
#pragma once
#include <vector>

#include "flashinfer/ops/linear_attention/conv/causal_conv1d.h"
#include "flashinfer/ops/linear_attention/kernels/conv/params.h"

namespace flashinfer::ops::linear_attention {

struct ConvForm {
  TensorView x, out, weight, bias, state;  // x, out: [sequences or 1, channels, tokens]; undefined: absent
  bool packed = false, silu = false;
  ConvParams::States mode = ConvParams::kShift;
  int64_t sequences = 0, channels = 0, width = 0;
  std::vector<ConvRow> rows;  // without first_unit; empty where array values are not asked for
};
/// `values`: read the index arrays.
ConvForm conv_form(const CausalConv1dFn& a, bool values);
ConvForm conv_form(const CausalConv1dUpdate& a, bool values);

}  // namespace flashinfer::ops::linear_attention
