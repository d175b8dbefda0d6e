// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::pod {
std::span<const op::Case> pod_cases();
std::span<const op::Case> batch_pod_cases();
}  // namespace flashinfer::ops::pod
