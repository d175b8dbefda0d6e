// SPDX-License-Identifier: Apache-2.0
// The list of the family's ops.
#include "flashinfer/ops/attention/api/no_plan.h"

namespace flashinfer {
namespace {
using namespace attention;
constexpr const op::Op* kOps[] = {&single_decode_op,   &single_prefill_op,   &decode_init_op,   &decode_plan_op,
                                  &decode_run_op,      &decode_forward_op,   &decode_size_op,   &decode_reset_op,
                                  &decode_prewarm_op,  &fast_decode_plan_op, &graph_init_op,    &graph_plan_op,
                                  &graph_run_op,       &graph_forward_op,    &graph_size_op,    &graph_reset_op,
                                  &graph_prewarm_op,   &prefill_init_op,     &prefill_plan_op,  &prefill_run_op,
                                  &prefill_forward_op, &prefill_size_op,     &prefill_reset_op, &prefill_prewarm_op,
                                  &sink_init_op,       &sink_plan_op,        &sink_run_op,      &sink_size_op,
                                  &sink_reset_op,      &sink_prewarm_op,     &ranges_init_op,   &ranges_plan_op,
                                  &ranges_run_op,      &ranges_forward_op,   &ranges_size_op,   &ranges_reset_op,
                                  &ranges_prewarm_op,  &ragged_init_op,      &ragged_plan_op,   &ragged_run_op,
                                  &ragged_forward_op,  &ragged_reset_op,     &batch_init_op,    &batch_plan_op,
                                  &batch_run_op,       &batch_prewarm_op,    &dense_decode_op,  &dense_context_op,
                                  &custom_decode_op,   &custom_prefill_op,   &xqa_op,           &xqa_mla_op,
                                  &xqa_decode_op,      &cudnn_decode_op,     &cudnn_prefill_op, &ragged_deepseek_op,
                                  &varlen_op,          &deepseek_v2_op,      &sm120_v2_op,      &decode_on_device_op,
                                  &graph_on_device_op};
}  // namespace

namespace ops::attention {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::attention

}  // namespace flashinfer
