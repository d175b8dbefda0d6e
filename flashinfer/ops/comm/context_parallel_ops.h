// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::comm {
extern const op::Op decode_cp_alltoall_op, decode_cp_reduce_op;
}  // namespace flashinfer::ops::comm
