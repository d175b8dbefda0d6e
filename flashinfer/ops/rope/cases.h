// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::rope {
std::span<const op::Case> rope_cases();  // by request
std::span<const op::Case> pos_ids_cases();
std::span<const op::Case> llama31_cases();  // by request
std::span<const op::Case> llama31_pos_ids_cases();
std::span<const op::Case> cache_cases();
std::span<const op::Case> quantize_cases();  // quantize_cases.cc
std::span<const op::Case> mla_quantize_cases();
std::span<const op::Case> quantize_append_cases();
}  // namespace flashinfer::ops::rope
