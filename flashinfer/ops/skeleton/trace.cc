// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::skeleton {
namespace {
constexpr op::TraceEntry kTraces[] = {
    {.op = "skeleton", .op_type = "skeleton", .axes = "num_tokens(n) hidden_size(d)=h"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::skeleton
