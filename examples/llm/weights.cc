// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <flashinfer/core/int_math.h>

namespace llm {

using flashinfer::Device;
using flashinfer::DeviceType;
using flashinfer::DType;
using flashinfer::Tensor;
using flashinfer::TensorView;

namespace {

Tensor vector_bf16(const Gguf& file, const std::string& name, int64_t n, Device device) {
  const GgufTensor& t = file.tensor(name, {n});
  Tensor out = Tensor::empty({n}, DType::kBF16);
  dequantize(t, 0, out.view().unsqueeze(0));
  return device == flashinfer::kCpu ? out : flashinfer::to_device(out, device);
}

/// Linear layers that become one weight, one below the other: of each some of its outputs.
struct Part {
  Part(std::string n, int64_t outputs_of_all, const Columns& c)
      : name(std::move(n)), all(outputs_of_all), first(c.first), outputs(c.own) {}
  std::string name;
  int64_t all, first, outputs;
};
using Parts = std::vector<Part>;

struct LayerParts {
  Parts qkv, output, gate_up, down;
};
LayerParts layer_parts(const ModelShape& s, const Split& own, int64_t layer) {
  const std::string p = "blk." + std::to_string(layer) + ".";
  const int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  return {{{p + "attn_q.weight", q, own.query}, {p + "attn_k.weight", kv, own.key}, {p + "attn_v.weight", kv, own.key}},
          {{p + "attn_output.weight", s.width, own.width}},
          {{p + "ffn_gate.weight", s.hidden, own.hidden}, {p + "ffn_up.weight", s.hidden, own.hidden}},
          {{p + "ffn_down.weight", s.width, own.width}}};
}

/// Throws for a file that lacks a layer or has one of another size before any time is spent on the others.
void check_layers(const Gguf& file, const ModelShape& s, const Split& own) {
  const auto check = [&](const Parts& parts, int64_t inputs) {
    for (const Part& p : parts) file.tensor(p.name, {inputs, p.all});
  };
  for (int64_t i = 0; i < s.layers; ++i) {
    const LayerParts l = layer_parts(s, own, i);
    check(l.qkv, s.width);
    check(l.output, s.heads * s.head_dim);
    check(l.gate_up, s.width);
    check(l.down, s.hidden);
  }
}

int64_t outputs_of(const Parts& parts) {
  int64_t n = 0;
  for (const Part& p : parts) n += p.outputs;
  return n;
}
/// The format that all parts share and mm_gguf supports; empty when they must be converted to bf16.
std::string common_format(const Gguf& file, int64_t inputs, const Parts& parts) {
  const GgmlType type = file.tensor(parts.front().name, {inputs, parts.front().all}).type;
  for (const Part& p : parts)
    if (file.tensor(p.name, {inputs, p.all}).type != type) return "";
  return type == GgmlType::kQ4_0 || type == GgmlType::kQ4_1 || type == GgmlType::kQ8_0 ? block_size(type).name : "";
}
std::array<int64_t, 3> packed_shape(const Gguf& file, int64_t inputs, const Parts& parts) {
  const int64_t panels = flashinfer::ceil_div(outputs_of(parts), 16);
  const std::string format = common_format(file, inputs, parts);
  if (format.empty()) return {panels, 1 + flashinfer::ceil_div(inputs, 2), 32};  // of prepare_mm_weights
  const int64_t block = 16 * block_size(file.tensor(parts.front().name, {inputs, parts.front().all}).type).bytes;
  return {panels, 1 + flashinfer::ceil_div(inputs / 32 * block, 64), 64};  // of prepare_gguf_weights
}
int64_t packed_bytes(const Gguf& file, int64_t inputs, const Parts& parts) {
  const auto [panels, lines, width] = packed_shape(file, inputs, parts);
  return panels * lines * 64;
}

/// All packed weights in one allocation: the allocator gives huge pages to blocks of 2 MB or more, and most weights of
/// a small model are smaller (one row times a weight: 23-30 GB/s on small pages, 30-34 GB/s on huge ones).
class Slab {
 public:
  explicit Slab(int64_t bytes) : memory_(Tensor::empty({bytes}, DType::kU8)) {}
  Tensor take(DType type, const std::array<int64_t, 3>& shape) {  // of lines of 64 bytes
    const std::array strides{shape[1] * shape[2], shape[2], int64_t{1}};
    const Tensor out(TensorView(memory_.data_as<uint8_t>() + used_, type, shape, strides), memory_.owner());
    used_ += shape[0] * shape[1] * 64;
    return out;
  }

 private:
  Tensor memory_;
  int64_t used_ = 0;
};

/// fn(part, first of its rows, rows to take) in parallel, 64 rows a task.
template <class F>
void each_rows(const Gguf& file, int64_t inputs, const Parts& parts, const F& fn) {
  int64_t first = 0;
  for (const Part& p : parts) {
    const GgufTensor& t = file.tensor(p.name, {inputs, p.all});
    constexpr int64_t kRows = 64;  // a task's share
    flashinfer::parallel_for(flashinfer::ceil_div(p.outputs, kRows), [&](int64_t task) {
      for (int64_t r = task * kRows; r < std::min((task + 1) * kRows, p.outputs); ++r) fn(t, p.first + r, first + r);
    });
    first += p.outputs;
  }
}

/// The parts as one matrix, bf16 [outputs, inputs].
Tensor decoded(const Gguf& file, int64_t inputs, const Parts& parts) {
  const Tensor weight = Tensor::empty({outputs_of(parts), inputs}, DType::kBF16);
  int64_t first = 0;
  for (const Part& p : parts) {
    dequantize(file.tensor(p.name, {inputs, p.all}), p.first, weight.view().slice(0, first, first + p.outputs));
    first += p.outputs;
  }
  return weight;
}

/// The parts as one weight, packed.
Weight packed(const Gguf& file, int64_t inputs, const Parts& parts, Slab& slab) {
  const std::string format = common_format(file, inputs, parts);
  Weight out{slab.take(format.empty() ? DType::kBF16 : DType::kU8, packed_shape(file, inputs, parts)), format};
  if (format.empty()) {
    const Tensor weight = decoded(file, inputs, parts);
    flashinfer::prepare_mm_weights({.b = weight.view().transpose(0, 1), .out = out.data});
    return out;
  }
  const int64_t bytes = file.tensor(parts.front().name, {inputs, parts.front().all}).row_bytes;
  const Tensor weight = Tensor::empty({outputs_of(parts), bytes}, DType::kU8);
  each_rows(file, inputs, parts, [&](const GgufTensor& t, int64_t from, int64_t to) {
    std::memcpy(weight.data_as<uint8_t>() + to * bytes, t.data + from * bytes, static_cast<size_t>(bytes));
  });
  flashinfer::prepare_gguf_weights({.b_blocks = weight, .format = format, .out = out.data});
  return out;
}

}  // namespace

ModelWeights load_weights(const Gguf& file, const ModelShape& s, const Split& own, Device device,
                          const OnProgress& progress) {
  const int64_t q = s.heads * s.head_dim;
  check_layers(file, s, own);
  ModelWeights out;
  out.final_norm = vector_bf16(file, "output_norm.weight", s.width, device);
  const Parts head{
      {file.has_tensor("output.weight") ? "output.weight" : "token_embd.weight", s.vocabulary, own.vocabulary}};
  int64_t bytes = packed_bytes(file, s.width, head);
  for (int64_t i = 0; i < s.layers; ++i) {
    const LayerParts parts = layer_parts(s, own, i);
    bytes += packed_bytes(file, s.width, parts.qkv) + packed_bytes(file, q, parts.output) +
             packed_bytes(file, s.width, parts.gate_up) + packed_bytes(file, s.hidden, parts.down);
  }
  const bool gpu = device.type == DeviceType::kCUDA;
  Slab slab(gpu ? 0 : bytes);
  const auto weight = [&](int64_t inputs, const Parts& parts) {
    if (!gpu) return packed(file, inputs, parts, slab);
    const Tensor plain = decoded(file, inputs, parts);
    return Weight{flashinfer::to_device(plain, device), ""};
  };
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    const LayerParts parts = layer_parts(s, own, i);
    out.layers.push_back({.attention_norm = vector_bf16(file, prefix + "attn_norm.weight", s.width, device),
                          .mlp_norm = vector_bf16(file, prefix + "ffn_norm.weight", s.width, device),
                          .qkv = weight(s.width, parts.qkv),
                          .output = weight(q, parts.output),
                          .gate_up = weight(s.width, parts.gate_up),
                          .down = weight(s.hidden, parts.down)});
    progress(static_cast<double>(i + 1) / static_cast<double>(s.layers + 8));
  }
  out.lm_head = weight(s.width, head);
  progress(1.0);
  return out;
}

Tensor embedding_on(const Gguf& file, const ModelShape& s, const ModelWeights& weights, Device device) {
  if (device.type == DeviceType::kCUDA && !file.has_tensor("output.weight")) return weights.lm_head.data;
  const Columns all{.of = {s.vocabulary}, .first = 0, .own = s.vocabulary};
  const Tensor rows = decoded(file, s.width, {{"token_embd.weight", s.vocabulary, all}});
  return flashinfer::to_device(rows, device);
}

}  // namespace llm
