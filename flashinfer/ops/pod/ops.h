// SPDX-License-Identifier: Apache-2.0
// The ops of the family's files. Internal to the family.
#pragma once
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/api/methods.h"
#include "flashinfer/ops/pod/cases.h"
#include "flashinfer/ops/pod/op.h"

namespace flashinfer::pod {
inline constexpr const char* kModule = "flashinfer.pod";
extern const op::Op pod_init_op, pod_plan_op, pod_run_op, pod_reset_op;
extern const op::Op batch_pod_init_op, batch_pod_plan_op, batch_pod_run_op;
}  // namespace flashinfer::pod
