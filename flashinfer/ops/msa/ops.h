// SPDX-License-Identifier: Apache-2.0
// The family's ops, for its list (op.cc).
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::msa {
extern const op::Op score_op, score_fp4_op, select_op, attention_op, decode_op;
}  // namespace flashinfer::ops::msa
