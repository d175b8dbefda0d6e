// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::linear_attention {
extern const op::Op selective_state_update_op;  // mamba/
}  // namespace flashinfer::ops::linear_attention
