// SPDX-License-Identifier: Apache-2.0
// The case tables of the family, one for each op (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::skeleton {
std::span<const op::Case> skeleton_cases();
}  // namespace flashinfer::ops::skeleton
