// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::rope {
extern const op::Op quantize_op, mla_quantize_op, quantize_append_op;
}  // namespace flashinfer::ops::rope
