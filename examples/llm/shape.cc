// SPDX-License-Identifier: Apache-2.0
#include "shape.h"

#include <algorithm>
#include <string>

namespace llm {

ModelShape::ModelShape(const Gguf& file) {
  const auto fail = [&](const std::string& what) { throw UserError(file.path() + ": " + what); };
  const std::string architecture(file.text("general.architecture"));
  if (architecture != "llama") fail("general.architecture is " + architecture + ", but this program runs llama");
  const auto positive = [&](const char* key, int64_t otherwise) {
    const std::string name = std::string("llama.") + key;
    const int64_t v = otherwise > 0 ? file.integer_or(name, otherwise) : file.integer(name);
    if (v < 1 || v > (int64_t{1} << 24)) fail(name + " is " + std::to_string(v) + ", not a sensible size");
    return v;
  };
  layers = positive("block_count", 0);
  width = positive("embedding_length", 0);
  hidden = positive("feed_forward_length", 0);
  heads = positive("attention.head_count", 0);
  kv_heads = positive("attention.head_count_kv", heads);
  head_dim = positive("attention.key_length", std::max<int64_t>(width / heads, 1));
  rotary_dim = positive("rope.dimension_count", head_dim);
  context = positive("context_length", 0);
  vocabulary = static_cast<int64_t>(file.array("tokenizer.ggml.tokens").size());
  if (heads % kv_heads != 0)
    fail(std::to_string(heads) + " query heads cannot share " + std::to_string(kv_heads) + " key-value heads");
  if (file.integer_or("llama.attention.value_length", head_dim) != head_dim)
    fail("keys and values of different length are not supported");
  if (file.integer_or("llama.expert_count", 0) > 0) fail("mixture-of-experts models are not supported");
  if (rotary_dim > head_dim || rotary_dim % 2 != 0) fail("llama.rope.dimension_count is " + std::to_string(rotary_dim));
  eps = file.number("llama.attention.layer_norm_rms_epsilon");
  rope_theta = file.number_or("llama.rope.freq_base", 10000.0);
  const std::string scaling(file.text_or("llama.rope.scaling.type", "none"));
  if (scaling != "none" && scaling != "linear") fail("RoPE scaling of type " + scaling + " is not supported");
  rope_scale = scaling == "linear" ? file.number_or("llama.rope.scaling.factor", 1.0) : 1.0;
  for (const char* tensor : {"rope_freqs.weight", "blk.0.attn_q.bias", "blk.0.attn_output.bias"})
    if (file.has_tensor(tensor)) fail(std::string("tensor ") + tensor + " is not supported");
}

}  // namespace llm
