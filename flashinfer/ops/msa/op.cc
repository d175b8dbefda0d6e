// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/msa/op.h"

#include <span>

#include "flashinfer/ops/msa/ops.h"

namespace flashinfer::ops::msa {
namespace {
constexpr const op::Op* kOps[] = {&score_op, &score_fp4_op, &select_op, &attention_op, &decode_op};
}  // namespace
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace flashinfer::ops::msa
