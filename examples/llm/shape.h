// SPDX-License-Identifier: Apache-2.0
// The sizes and constants of a Llama-type model, from its file.
#pragma once
#include <cstdint>

#include "gguf.h"

namespace llm {

struct ModelShape {
  int64_t layers, width, heads, kv_heads, head_dim, hidden, vocabulary, context;
  int64_t rotary_dim;
  double eps, rope_scale, rope_theta;

  /// UserError: another architecture, missing keys, extents that do not fit together.
  explicit ModelShape(const Gguf& file);
  int64_t kv_bytes_per_token() const { return layers * 2 * kv_heads * head_dim * 2; }
};

}  // namespace llm
