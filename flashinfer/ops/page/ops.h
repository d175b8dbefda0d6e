// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::page {
extern const op::Op nvfp4_append_op, nvfp4_append_slots_op, nvfp4_append_mla_op;  // nvfp4.cc
extern const op::Op gather_rows_op, advance_op;                                   // step.cc
}  // namespace flashinfer::ops::page
