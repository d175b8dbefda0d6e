// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions.
#pragma once

namespace flashinfer::ops::activation {

#define FI_TRACE_GATED(function)                                                          \
  "import torch\n\n\ndef reference(input):\n    gate, up = input.double().chunk(2, -1)\n" \
  "    return (torch.nn.functional." function " * up).to(input.dtype)\n"

inline constexpr char kSiluReference[] = FI_TRACE_GATED("silu(gate)");
inline constexpr char kGeluReference[] = FI_TRACE_GATED("gelu(gate)");
inline constexpr char kGeluTanhReference[] = FI_TRACE_GATED("gelu(gate, approximate=\"tanh\")");

}  // namespace flashinfer::ops::activation
