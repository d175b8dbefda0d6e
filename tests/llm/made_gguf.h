// SPDX-License-Identifier: Apache-2.0
// Small GGUF models made on the spot: random weights, a vocabulary of single bytes, some merges and the chat tokens.
// Enough to run every path of examples/llm in a second, with no download.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "flashinfer/core/int_math.h"

namespace llm_test {

class GgufWriter {
 public:
  void text(const std::string& key, const std::string& v) { head(key, 8), string(v, &keys_); }
  void u32(const std::string& key, uint32_t v) { head(key, 4), raw(v, &keys_); }
  void f32(const std::string& key, float v) { head(key, 6), raw(v, &keys_); }
  void texts(const std::string& key, const std::vector<std::string>& v) {
    head(key, 9), raw(uint32_t{8}, &keys_), raw(uint64_t{v.size()}, &keys_);
    for (const auto& s : v) string(s, &keys_);
  }
  void i32s(const std::string& key, const std::vector<int32_t>& v) {
    head(key, 9), raw(uint32_t{5}, &keys_), raw(uint64_t{v.size()}, &keys_);
    for (int32_t i : v) raw(i, &keys_);
  }
  void tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type, const std::string& bytes) {
    string(name, &infos_), raw(static_cast<uint32_t>(dims.size()), &infos_);
    for (uint64_t d : dims) raw(d, &infos_);
    raw(type, &infos_), raw(uint64_t{data_.size()}, &infos_);
    data_ += bytes;
    data_.resize(flashinfer::round_up(data_.size(), size_t{32}));
    ++tensor_count_;
  }
  std::string file(uint32_t version = 3) const {
    std::string out = "GGUF";
    raw(version, &out), raw(tensor_count_, &out), raw(key_count_, &out);
    out += keys_ + infos_;
    out.resize(flashinfer::round_up(out.size(), size_t{32}));
    return out + data_;
  }

 private:
  template <class T>
  static void raw(const T& v, std::string* to) {
    to->append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  static void string(const std::string& s, std::string* to) { raw(uint64_t{s.size()}, to), *to += s; }
  void head(const std::string& key, uint32_t type) { string(key, &keys_), raw(type, &keys_), ++key_count_; }
  std::string keys_, infos_, data_;
  uint64_t key_count_ = 0, tensor_count_ = 0;
};

struct MadeModel {
  uint32_t layers = 2, heads = 4, kv_heads = 2, head_dim = 64, hidden = 192, context = 2048;
  uint32_t linear_type = 3;  // Q4_1
  std::string architecture = "llama";
  std::string leave_out;  // a tensor or key that is missing
};

/// The text of byte `b` in a byte-level vocabulary.
inline std::string byte_symbol(int b) {
  int next = 256, code = 0;
  for (int i = 0; i <= b; ++i) code = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174 ? i : next++;
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

inline std::string made_gguf(const MadeModel& m) {
  GgufWriter w;
  const uint32_t width = m.heads * m.head_dim;
  const auto u32 = [&](const std::string& key, uint32_t v) {
    if (key != m.leave_out) w.u32(key, v);
  };
  w.text("general.architecture", m.architecture);
  u32("llama.block_count", m.layers);
  u32("llama.context_length", m.context);
  u32("llama.embedding_length", width);
  u32("llama.feed_forward_length", m.hidden);
  u32("llama.attention.head_count", m.heads);
  u32("llama.attention.head_count_kv", m.kv_heads);
  w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  w.f32("llama.rope.freq_base", 10000.0f);
  w.text("tokenizer.ggml.model", "gpt2");
  w.text("tokenizer.ggml.pre", "smollm");
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
                           merges = {"h e", "l l", "he ll", "hell o", "o w"};
  std::vector<int32_t> types(3, 3);
  for (int b = 0; b < 256; ++b) tokens.push_back(byte_symbol(b));
  for (const char* t : {"he", "ll", "hell", "hello", "ow"}) tokens.push_back(t);
  types.resize(tokens.size(), 1);
  w.texts("tokenizer.ggml.tokens", tokens);
  w.i32s("tokenizer.ggml.token_type", types);
  w.texts("tokenizer.ggml.merges", merges);
  w.u32("tokenizer.ggml.eos_token_id", 2);
  w.text("tokenizer.chat_template", "{{ '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}");

  std::mt19937 random(7);
  const auto half = [](float x) {  // positive normal numbers only
    uint32_t u;
    std::memcpy(&u, &x, 4);
    return static_cast<uint16_t>(((u >> 23) - 112) << 10 | ((u >> 13) & 1023));
  };
  const auto blocks = [&](uint64_t elements, uint32_t type) {
    std::string out;
    const auto put = [&](uint16_t h) { out.append(reinterpret_cast<const char*>(&h), 2); };
    for (uint64_t i = 0; i < elements; i += 32) {
      const float step = 0.004f + 0.004f * static_cast<float>(random() % 1000) / 1000.0f;
      if (type == 8) {
        put(half(step / 8));
        for (int k = 0; k < 32; ++k) out.push_back(static_cast<char>(random()));
        continue;
      }
      put(half(step));
      if (type == 3) put(static_cast<uint16_t>(half(step * 7.5f) | 0x8000));
      for (int k = 0; k < 16; ++k) out.push_back(static_cast<char>(random()));
    }
    return out;
  };
  const auto matrix = [&](const std::string& name, uint64_t inputs, uint64_t outputs, uint32_t type) {
    const std::string bytes = blocks(inputs * outputs, type);
    if (name != m.leave_out) w.tensor(name, {inputs, outputs}, type, bytes);
  };
  const auto vector = [&](const std::string& name) {
    std::string out;
    for (uint32_t i = 0; i < width; ++i) {
      const float x = 1.0f + 0.25f * static_cast<float>(static_cast<int>(random() % 9) - 4) / 4.0f;  // exact in bf16
      out.append(reinterpret_cast<const char*>(&x), 4);
    }
    w.tensor(name, {width}, 0, out);
  };
  matrix("token_embd.weight", width, tokens.size(), 8);
  for (uint32_t l = 0; l < m.layers; ++l) {
    const std::string p = "blk." + std::to_string(l) + ".";
    vector(p + "attn_norm.weight");
    vector(p + "ffn_norm.weight");
    matrix(p + "attn_q.weight", width, width, m.linear_type);
    matrix(p + "attn_k.weight", width, m.kv_heads * m.head_dim, m.linear_type);
    matrix(p + "attn_v.weight", width, m.kv_heads * m.head_dim, m.linear_type);
    matrix(p + "attn_output.weight", width, width, m.linear_type);
    matrix(p + "ffn_gate.weight", width, m.hidden, m.linear_type);
    matrix(p + "ffn_up.weight", width, m.hidden, m.linear_type);
    matrix(p + "ffn_down.weight", m.hidden, width, m.linear_type);
  }
  vector("output_norm.weight");
  return w.file();
}

inline std::string write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace llm_test
