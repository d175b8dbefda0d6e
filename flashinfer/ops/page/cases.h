// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::page {
std::span<const op::Case> append_cases();
std::span<const op::Case> batch_indices_cases();
std::span<const op::Case> seq_lens_cases();
std::span<const op::Case> nvfp4_append_cases();  // nvfp4_cases.cc
std::span<const op::Case> nvfp4_append_slots_cases();
std::span<const op::Case> nvfp4_append_mla_cases();
std::span<const op::Case> gather_rows_cases();  // step_cases.cc
std::span<const op::Case> advance_cases();
}  // namespace flashinfer::ops::page
