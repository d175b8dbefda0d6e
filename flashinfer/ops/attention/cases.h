// SPDX-License-Identifier: Apache-2.0
// The case tables of the family (cases.cc).
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::attention {
std::span<const op::Case> single_decode_cases();
std::span<const op::Case> single_prefill_cases();
std::span<const op::Case> batch_decode_cases();
std::span<const op::Case> batch_prefill_cases();
std::span<const op::Case> batch_ragged_cases();
std::span<const op::Case> graph_decode_cases();
std::span<const op::Case> plan_on_device_cases();
std::span<const op::Case> graph_plan_on_device_cases();
std::span<const op::Case> decode_forward_cases();
std::span<const op::Case> graph_forward_cases();
std::span<const op::Case> prefill_forward_cases();
std::span<const op::Case> ragged_forward_cases();
std::span<const op::Case> sink_cases();
std::span<const op::Case> ranges_cases();
std::span<const op::Case> batch_attention_cases();
std::span<const op::Case> dense_decode_cases();
std::span<const op::Case> dense_context_cases();
std::span<const op::Case> xqa_cases();
std::span<const op::Case> xqa_mla_cases();
std::span<const op::Case> xqa_decode_cases();
std::span<const op::Case> cudnn_decode_cases();
std::span<const op::Case> cudnn_prefill_cases();
std::span<const op::Case> ragged_deepseek_cases();
std::span<const op::Case> varlen_cases();
std::span<const op::Case> deepseek_v2_cases();
std::span<const op::Case> sm120_v2_cases();
}  // namespace flashinfer::ops::attention
