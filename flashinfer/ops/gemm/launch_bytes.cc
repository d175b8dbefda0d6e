// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/launch_bytes.h"

#include <algorithm>

#include "flashinfer/core/context.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/gemm/bytes_params.h"
#include "flashinfer/ops/gemm/gguf_layout.h"

namespace flashinfer::gemm {
namespace {

inline constexpr jit::Kernel kGemmBytes{"flashinfer/ops/gemm/bytes_cpu.h", "flashinfer::cpu::gemm_bytes", "flashinfer::ByteGemmParams"};
inline constexpr jit::Kernel kQuantize{"flashinfer/ops/gemm/bytes_cpu.h", "flashinfer::cpu::quantize_rows", "flashinfer::QuantizeRowsParams"};

ByteGemmConfig config_of(const Product& p) { return {.b = p.b.format, .packed_b = p.packed}; }
QuantizeRowsConfig quantize_config_of(const Product& p) { return {.nibbles = nibble_order(p.b.format)}; }

/// A quantised: integers, then (at a line of 64 bytes) the factors.
struct QuantizedRows {
  Tensor memory;
  int64_t width;
  const int8_t* quads;
  const ByteRow* rows;
};
QuantizedRows quantize(const Product& x) {
  const int64_t width = std::min<int64_t>(x.m, 8), groups = divide_up(x.m, width);
  const auto per_32 = static_cast<int32_t>(32 / x.grid_k);
  const int64_t quads = divide_up(groups * width * x.k, 64) * 64;
  const int64_t factors = groups * width * (x.k / 32) * per_32 * static_cast<int64_t>(sizeof(ByteRow));
  QuantizedRows out{.memory = Tensor::empty({quads + factors}, DType::kU8), .width = width, .quads = nullptr, .rows = nullptr};
  uint8_t* const to = out.memory.data_as<uint8_t>();
  const QuantizeRowsParams p{.from = static_cast<const bf16_t*>(x.a.data),
                             .line = x.a.line,
                             .step = x.a.step,
                             .m = x.m,
                             .k = x.k,
                             .width = width,
                             .to = reinterpret_cast<int8_t*>(to),
                             .rows = reinterpret_cast<ByteRow*>(to + quads),
                             .zero = byte_zero(x.b.format),
                             .groups_per_32 = per_32};
  out.quads = p.to;
  out.rows = p.rows;
  const auto fn = jit::cpu_kernel<kQuantize>(quantize_config_of(x)).fn;
  // A thread is woken for 16384 elements at least (some 4 us).
  const int64_t at_once = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, x.k * width));
  parallel_for(divide_up(groups, at_once), [&](int64_t i) {
    for (int64_t t = i * at_once; t < std::min(groups, (i + 1) * at_once); ++t) fn(&p, t);
  });
  return out;
}

}  // namespace

std::string refuse_bytes(const Product& p) {
  const std::string &product = jit::cpu_kernel<kGemmBytes>(config_of(p)).refusal,
                    &quantize = jit::cpu_kernel<kQuantize>(quantize_config_of(p)).refusal;
  return product.empty() ? quantize : product;
}

void run_bytes(const Product& x) {
  const QuantizedRows a = quantize(x);
  const GgufFormat& f = *gguf_format(x.b.format);
  const Blocks blocks = choose_blocks(1, x.m, x.n, x.k, true, Context::current().executor.threads,
                                      static_cast<double>(f.bytes) / static_cast<double>(f.elements));
  const ByteGemmParams p{.a = a.quads,
                         .a_rows = a.rows,
                         .width = a.width,
                         .b = static_cast<const uint8_t*>(x.b.data),
                         .b_line = x.b.line,
                         .out = x.out,
                         .out_row = x.out_row,
                         .m = x.m,
                         .n = x.n,
                         .k = x.k,
                         .rows_per_task = blocks.rows_per_task,
                         .panels_per_task = blocks.panels_per_task,
                         .out_dtype = x.out_dtype};
  const auto fn = jit::cpu_kernel<kGemmBytes>(config_of(x)).fn;
  parallel_for(divide_up(divide_up(x.n, 16), blocks.panels_per_task) * divide_up(x.m, blocks.rows_per_task), [&](int64_t t) { fn(&p, t); });
}

}  // namespace flashinfer::gemm
