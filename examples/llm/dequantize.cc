// SPDX-License-Identifier: Apache-2.0
// Tensors of a GGUF file as bf16: blocks by the op, plain types here.
#include <cstring>

#include <flashinfer/flashinfer.h>

#include "gguf.h"

namespace llm {
namespace {

using flashinfer::bf16_t, flashinfer::DType, flashinfer::TensorView;

template <class T>
void convert(const std::byte* from, const TensorView& out) {
  flashinfer::parallel_for(out.size(0), [&](int64_t row) {
    const std::byte* p = from + row * out.size(1) * static_cast<int64_t>(sizeof(T));
    bf16_t* to = out.data_as<bf16_t>() + row * out.stride(0);
    for (int64_t i = 0; i < out.size(1); ++i, p += sizeof(T)) {
      T x;
      std::memcpy(&x, p, sizeof x);
      to[i] = bf16_t(static_cast<float>(x));
    }
  });
}

struct Format {
  GgmlType type;
  int64_t elements, bytes;
  const char* name;
  void (*convert)(const std::byte* from, const TensorView& out);  // null: gguf_dequantize
};
constexpr Format kFormats[] = {
    {GgmlType::kF32, 1, 4, "F32", convert<float>},    {GgmlType::kF16, 1, 2, "F16", convert<flashinfer::f16_t>},
    {GgmlType::kBF16, 1, 2, "BF16", convert<bf16_t>}, {GgmlType::kQ4_0, 32, 18, "Q4_0", nullptr},
    {GgmlType::kQ4_1, 32, 20, "Q4_1", nullptr},       {GgmlType::kQ8_0, 32, 34, "Q8_0", nullptr},
    {GgmlType::kQ4_K, 256, 144, "Q4_K", nullptr},     {GgmlType::kQ6_K, 256, 210, "Q6_K", nullptr},
};

}  // namespace

BlockSize block_size(GgmlType type) {
  for (const Format& f : kFormats)
    if (f.type == type) return {f.elements, f.bytes, f.name};
  return {0, 0, "type " + std::to_string(static_cast<uint32_t>(type))};
}

void dequantize(const GgufTensor& t, int64_t first, const TensorView& out) {
  const std::byte* from = t.data + first * t.row_bytes;
  for (const Format& f : kFormats) {
    if (f.type != t.type) continue;
    if (f.convert) return f.convert(from, out);
    const TensorView blocks(from, DType::kU8, {out.size(0), t.row_bytes});
    flashinfer::gguf_dequantize({.blocks = blocks, .format = f.name, .out_dtype = DType::kBF16, .out = out});
  }
}

}  // namespace llm
