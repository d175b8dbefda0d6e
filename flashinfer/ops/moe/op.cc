// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/op.h"

#include "flashinfer/ops/moe/ops.h"

namespace flashinfer::ops::moe {
namespace {
constexpr const op::Op* kOps[] = {&routing_op, &deepseek_op, &fused_op};
}  // namespace
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace flashinfer::ops::moe
