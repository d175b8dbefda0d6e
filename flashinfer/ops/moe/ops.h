// SPDX-License-Identifier: Apache-2.0
// The family's ops.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::moe {
extern const op::Op routing_op, deepseek_op;  // routing.cc
extern const op::Op fused_op;                 // fused.cc
}  // namespace flashinfer::ops::moe
