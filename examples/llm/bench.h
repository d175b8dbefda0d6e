// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "engine.h"

namespace llm {

/// Tokens per second, medians of three: prefill of 512 tokens, decode of one request, decode of eight at once, each
/// decode 64 tokens after a prompt of 16. One line each, or a JSON document.
std::string bench(Model* model, bool as_json);

}  // namespace llm
