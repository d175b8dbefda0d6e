// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/activation/trace_texts.h"

namespace flashinfer::ops::activation {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "silu_and_mul",
     .op_type = "activation",
     .axes = "num_tokens(...) hidden_size(2*d)=h hidden_div_2",
     .inputs = "input",
     .outputs = "output[num_tokens hidden_div_2]@input",
     .prefix = "silu_and_mul",
     .tags = "status:verified fused",
     .constraints = "hidden_size == 2 * hidden_div_2",
     .reference = kSiluReference},
    {.op = "gelu_and_mul",
     .op_type = "activation",
     .axes = "num_tokens(...) hidden_size(2*d)=h hidden_div_2",
     .inputs = "input",
     .outputs = "output[num_tokens hidden_div_2]@input",
     .prefix = "gelu_and_mul",
     .tags = "status:verified fused",
     .constraints = "hidden_size == 2 * hidden_div_2",
     .reference = kGeluReference},
    {.op = "gelu_tanh_and_mul",
     .op_type = "activation",
     .axes = "num_tokens(...) hidden_size(2*d)=h hidden_div_2",
     .inputs = "input",
     .outputs = "output[num_tokens hidden_div_2]@input",
     .prefix = "gelu_tanh_and_mul",
     .tags = "status:verified fused",
     .constraints = "hidden_size == 2 * hidden_div_2",
     .reference = kGeluTanhReference},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::activation
