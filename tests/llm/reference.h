// SPDX-License-Identifier: Apache-2.0
// The model again, from nothing but the file format's description and the formulas: own reader, own dequantisation,
// plain loops, double precision, no cache. Shares no code with examples/llm.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace llm_reference {

/// Logits after the last token of `tokens`, [vocabulary]. One token takes about two operations per weight.
std::vector<double> last_logits(const std::string& gguf_path, const std::vector<int32_t>& tokens);

}  // namespace llm_reference
