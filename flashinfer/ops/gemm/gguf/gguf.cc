// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/gguf/gguf.h"

#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/check.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/gemm/gguf/ref.h"
#include "flashinfer/ops/gemm/kernels/gguf_cuda_params.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/packed/packed_weight.h"
#include "flashinfer/ops/gemm/packed/ref.h"

namespace flashinfer {
namespace {

namespace family = ops::gemm;
inline constexpr jit::Kernel kKernel{"flashinfer/ops/gemm/kernels/cpu/gemm.h", "flashinfer::cpu::gguf_dequantize",
                                     "flashinfer::GgufParams"};
inline constexpr jit::Kernel kKernelCuda{"flashinfer/ops/gemm/kernels/cuda/gguf_dequantize.cuh",
                                         "flashinfer::cu::gguf_dequantize", "flashinfer::GgufCudaParams"};

const GgufFormat& format_of(const std::string& name) {
  for (const GgufFormat& f : kGgufFormats)
    if (name == f.name) return f;
  throw_error(ErrorKind::kValueError,
              str("format is '", name, "', which is none of GGUF's that are known"));  // choices come first
}
/// Elements of a row of `bytes`.
int64_t elements_of(const char* argument, const TensorView& t, const GgufFormat& f) {
  FI_CHECK(t.size(1) % f.bytes == 0, ValueError, argument, ".shape[1] is ", t.size(1), ", but rows of ", f.name,
           " are blocks of ", f.bytes, " bytes for ", f.elements, " elements");
  return t.size(1) / f.bytes * f.elements;
}

// ---- mm_gguf ----

bool packed(const MmGguf& a) { return a.b_blocks.rank() == 3; }
/// n of a packed weight; ValueError if it is none or is packed for another k or format.
int64_t packed_columns(const MmGguf& a) {
  const GgufFormat& f = format_of(a.format);
  FI_CHECK(f.panels, ValueError, "b_blocks is ", to_string(a.b_blocks), ", but ", f.name,
           " has no packed form: it must be [n, bytes]");
  FI_CHECK(a.b_blocks.size(2) == kPanelLine, ValueError, "b_blocks is ", to_string(a.b_blocks),
           ", but a packed weight is [panels, lines, 64]");
  return gemm::packed_columns("b_blocks", a.b_blocks, f.format, a.a.size(1));
}
int64_t columns_of(const MmGguf& a) {
  if (packed(a)) return packed_columns(a);
  const GgufFormat& f = format_of(a.format);
  FI_CHECK(a.b_blocks.rank() == 2, ValueError, "b_blocks is ", to_string(a.b_blocks),
           ", but must be [n, bytes] or the result of prepare_gguf_weights");
  const int64_t k = elements_of("b_blocks", a.b_blocks, f);
  FI_CHECK(k == a.a.size(1), ValueError, "b_blocks.shape[1] is ", a.b_blocks.size(1), ", which is ", k, " elements of ",
           f.name, ", but k is ", a.a.size(1), " (from a.shape[1])");
  return a.b_blocks.size(0);
}
op::Shape mm_shape(const MmGguf& a) {
  return {2, {a.a.size(0), packed(a) && op::inferring() ? op::kAnyExtent : columns_of(a)}};
}
void validate_mm(const MmGguf& a) {
  const GgufFormat& f = format_of(a.format);
  FI_CHECK(a.a.size(1) % f.elements == 0, ValueError, "a.shape[1] is ", a.a.size(1), ", but k must be a multiple of ",
           f.elements, ", the elements of a block of ", f.name);
  if (!op::inferring()) columns_of(a);
  gemm::check_out_dtype(a.out_dtype, op::floats);
}
gemm::Product product(const MmGguf& a) {
  const GgufFormat& f = format_of(a.format);
  gemm::Product p{.k = a.a.size(1), .a = gemm::rows_of(a.a)};
  p.set_out(*a.out);
  p.b = {.data = a.b_blocks.data(), .format = f.format, .line = a.b_blocks.stride(0)};
  p.packed = packed(a);
  p.grid_k = f.grid;
  p.quantize_a = a.quantize_a;
  return p;
}
void reference_mm(const MmGguf& a) {
  const GemmFormat format = format_of(a.format).format;
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; a.quantize_a && i < a.a.size(0); ++i) rows.push_back(ref::quantized_row(a.a, i));
  ref::nt_product(
      *a.out, 0, a.out->size(0), a.a.size(1),
      [&](int64_t i, int64_t k) {
        return a.quantize_a ? rows[static_cast<size_t>(i)][static_cast<size_t>(k)] : ref::at(a.a, {i, k});
      },
      [&](int64_t j, int64_t k) {
        if (packed(a)) return ref::gguf_panel_at(format, a.b_blocks, a.a.size(1), j, k).value();
        return ref::gguf_at(format, a.b_blocks.data_as<uint8_t>() + j * a.b_blocks.stride(0), k).value();
      },
      1);
}
op::Prepared prepare_mm(const MmGguf& a) { return gemm::prepare(product(a)); }
op::Prepared prepare_mm_cuda(const MmGguf& a, const op::Call& call) {
  return gemm::prepare_cuda(product(a), {}, call.device);
}
op::Cost cost_mm(const MmGguf& a) {
  return {.bytes = static_cast<double>(a.a.nbytes() + a.b_blocks.nbytes() + a.out->nbytes()),
          .flops = 2.0 * static_cast<double>(a.out->numel()) * static_cast<double>(a.a.size(1))};
}

// ---- prepare_gguf_weights ----

op::Shape packed_shape(const PrepareGgufWeights& a) {
  const GgufFormat& f = format_of(a.format);
  return {
      3, {packed_panels(a.b_blocks.size(0)), gguf_lines(f.format, elements_of("b_blocks", a.b_blocks, f)), kPanelLine}};
}
/// The block of column c into its places of the panel's block.
void place_block(GemmFormat format, const uint8_t* block, int64_t c, uint8_t* quants) {
  if (format == GemmFormat::kQ8_0) {
    for (int64_t i = 0; i < 32; ++i) quants[gguf_byte_place(i / 2, c * 2 + i % 2)] = block[2 + i];
    return;
  }
  const uint8_t* nibbles = block + (format == GemmFormat::kQ4_1 ? 4 : 2);
  for (int64_t i = 0; i < 32; ++i) {
    const int q = nibbles[i % 16] >> (i < 16 ? 0 : 4) & 15, nibble = static_cast<int>(i / 2 % 4);
    quants[i / 8 * 64 + (c * 2 + i % 2) * 2 + nibble / 2] |= static_cast<uint8_t>(q << (nibble % 2 * 4));
  }
}
void launch_prepare(const PrepareGgufWeights& a) {
  const GgufFormat& f = format_of(a.format);
  const int64_t n = a.b_blocks.size(0), blocks = a.b_blocks.size(1) / f.bytes, quants = gguf_quant_bytes(f.format);
  parallel_for(a.out->size(0), [&](int64_t p) {
    uint8_t* const panel = a.out->data_as<uint8_t>() + p * a.out->stride(0);
    std::memset(panel, 0, static_cast<size_t>(a.out->size(1) * kPanelLine));
    const int64_t columns = std::min<int64_t>(kPanelWidth, n - p * kPanelWidth);
    write_packed_header(panel, {.columns = columns, .k = blocks * 32, .format = f.format});
    uint8_t* const scales = panel + kPanelLine + blocks * quants;
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t b = 0; b < blocks; ++b) {
        const uint8_t* from =
            a.b_blocks.data_as<uint8_t>() + (p * kPanelWidth + c) * a.b_blocks.stride(0) + b * f.bytes;
        place_block(f.format, from, c, panel + kPanelLine + b * quants);
        std::memcpy(scales + (b * kPanelWidth + c) * 2, from, 2);
        if (f.minimum) std::memcpy(scales + ((blocks + b) * kPanelWidth + c) * 2, from + 2, 2);
      }
  });
}
/// Every byte from what it must hold: nothing is scattered.
void reference_prepare(const PrepareGgufWeights& a) {
  const GgufFormat& f = format_of(a.format);
  const int64_t n = a.b_blocks.size(0), blocks = a.b_blocks.size(1) / f.bytes, quants = gguf_quant_bytes(f.format);
  const auto row = [&](int64_t column) { return a.b_blocks.data_as<uint8_t>() + column * a.b_blocks.stride(0); };
  const auto code = [&](int64_t column, int64_t k) {
    return column < n ? ref::gguf_at(f.format, row(column), k).quant + (f.format == GemmFormat::kQ4_0 ? 8 : 0) : 0;
  };
  for (int64_t p = 0; p < a.out->size(0); ++p) {
    uint8_t* const panel = a.out->data_as<uint8_t>() + p * a.out->stride(0);
    for (int64_t i = 0; i < kPanelLine; ++i)
      panel[i] = ref::packed_header_byte(f.format, std::min<int64_t>(16, n - p * 16), blocks * 32, i);
    for (int64_t i = 0; i < a.out->size(1) * kPanelLine - kPanelLine; ++i) {
      const int64_t block = i / quants, at = i % quants;
      int byte = 0;
      if (block >= blocks) {
        const int64_t s = i - blocks * quants, of = s / 32 % std::max<int64_t>(blocks, 1),
                      part = s / 32 / std::max<int64_t>(blocks, 1);
        const int64_t column = p * 16 + s % 32 / 2;
        if (part <= (f.minimum ? 1 : 0) && column < n) byte = row(column)[of * f.bytes + part * 2 + s % 2];
      } else if (f.format == GemmFormat::kQ8_0) {
        const int64_t pair = at / 64 * 2 + at % 16 / 8, word = at % 64 / 16 * 8 + at % 8;
        byte = code(p * 16 + word / 2, block * 32 + pair * 2 + word % 2) & 255;
      } else {
        const int64_t word = at % 64 / 2, k = block * 32 + at / 64 * 8 + at % 2 * 4 + word % 2,
                      column = p * 16 + word / 2;
        byte = code(column, k) | code(column, k + 2) << 4;
      }
      panel[kPanelLine + i] = static_cast<uint8_t>(byte);
    }
  }
}
op::Cost cost_prepare(const PrepareGgufWeights& a) { return {.bytes = 2.0 * static_cast<double>(a.b_blocks.nbytes())}; }

// ---- gguf_dequantize ----

op::Shape dequantized_shape(const GgufDequantize& a) {
  return {2, {a.blocks.size(0), elements_of("blocks", a.blocks, format_of(a.format))}};
}
void validate_dequantize(const GgufDequantize& a) { gemm::check_out_dtype(a.out_dtype, op::floats); }
op::Prepared prepare_dequantize(const GgufDequantize& a) {
  const GgufConfig config{.from = format_of(a.format).format, .to = a.out_dtype};
  const GgufParams p{.blocks = a.blocks.data_as<uint8_t>(),
                     .row = a.blocks.stride(0),
                     .to = a.out->data(),
                     .to_row = a.out->stride(0),
                     .k = a.out->size(1)};
  const int64_t rows = a.blocks.size(0), at_once = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.k));
  return ops::with_kernel<kKernel>(config, [p, rows, at_once](jit::CpuFn fn) {
    parallel_for(ceil_div(rows, at_once), [&](int64_t i) {
      for (int64_t r = i * at_once; r < std::min(rows, (i + 1) * at_once); ++r) fn(&p, r);
    });
  });
}
op::Prepared prepare_dequantize_cuda(const GgufDequantize& a, const op::Call& call) {
  const GgufFormat& f = format_of(a.format);
  int64_t rows = a.blocks.size(0), bytes = a.blocks.size(1);
  if (rows > 1 && a.blocks.stride(0) == bytes && a.out->stride(0) == a.out->size(1)) bytes *= rows, rows = 1;
  const int64_t row = rows > 1 ? a.blocks.stride(0) : 0, to_row = rows > 1 ? a.out->stride(0) : 0;
  if (bytes / f.bytes >= int64_t{1} << 31) return op::Unsupported{"a row has 2^31 or more blocks"};
  const int64_t spans = ceil_div(bytes / f.bytes, kGgufSpan / f.elements);
  const GgufCudaParams p{.from = a.blocks.data_as<uint8_t>(),
                         .row = row,
                         .to = a.out->data(),
                         .to_row = to_row,
                         .blocks = static_cast<uint32_t>(bytes / f.bytes),
                         .spans = static_cast<uint32_t>(spans)};
  const auto at = [](const void* data, int64_t stride) {
    return reinterpret_cast<uintptr_t>(data) | static_cast<uint64_t>(stride);
  };
  const auto pair = static_cast<uint64_t>(2 * a.out->item_size());
  const GgufCudaConfig config{.from = f.format,
                              .to = a.out_dtype,
                              .even = at(p.from, row) % 2 == 0,
                              .aligned = at(p.to, to_row * a.out->item_size()) % pair == 0,
                              .threads = 256};
  const cuda::Launch l{.grid = {cuda::grid_size(spans * rows), 1, 1},
                       .block = {256, 1, 1},
                       .shared_bytes = static_cast<unsigned>(gguf_shared_bytes(f)),
                       .pdl = true};
  return ops::prepare_cuda<kKernelCuda>(config, p, call.device, l);
}
void reference_dequantize(const GgufDequantize& a) {
  const GemmFormat format = format_of(a.format).format;
  for (int64_t i = 0; i < a.out->size(0); ++i)
    for (int64_t k = 0; k < a.out->size(1); ++k)
      ref::put(*a.out, {i, k}, ref::gguf_at(format, a.blocks.data_as<uint8_t>() + i * a.blocks.stride(0), k).value());
}
op::Cost cost_dequantize(const GgufDequantize& a) {
  return {.bytes = static_cast<double>(a.blocks.nbytes() + a.out->nbytes())};
}

// ---- tables ----

constexpr op::Choices kFormats = op::choices("Q4_0|Q4_1|Q8_0|Q4_K|Q6_K"), kPanelFormats = op::choices("Q4_0|Q4_1|Q8_0");
constexpr op::Field mm_fields[] = {
    op::in<&MmGguf::a>("a", "m k", DType::kBF16, op::any_layout),
    op::in<&MmGguf::b_blocks>("b_blocks", nullptr, DType::kU8),
    op::attr<&MmGguf::format>("format", op::required, kFormats),
    op::out<&MmGguf::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<mm_shape>),
    op::attr<&MmGguf::out_dtype>("out_dtype"),
    op::attr<&MmGguf::quantize_a>("quantize_a"),
};
constexpr op::Field prepare_fields[] = {
    op::in<&PrepareGgufWeights::b_blocks>("b_blocks", "n bytes", DType::kU8),
    op::attr<&PrepareGgufWeights::format>("format", op::required, kPanelFormats),
    op::out<&PrepareGgufWeights::out>("out", nullptr, DType::kU8, op::contiguous, op::shape<packed_shape>),
};
constexpr op::Field dequantize_fields[] = {
    op::in<&GgufDequantize::blocks>("blocks", "n bytes", DType::kU8),
    op::attr<&GgufDequantize::format>("format", op::required, kFormats),
    op::attr<&GgufDequantize::out_dtype>("out_dtype"),
    op::out<&GgufDequantize::out>("out", nullptr, op::dtype_from("out_dtype"), op::shape<dequantized_shape>),
};
constexpr op::Candidate mm_candidates[] = {op::cuda<prepare_mm_cuda>(), op::cpu<prepare_mm>(),
                                           op::reference<reference_mm>()};
constexpr op::Candidate prepare_candidates[] = {op::cpu<launch_prepare>(), op::reference<reference_prepare>()};
constexpr op::Candidate dequantize_candidates[] = {op::cuda<prepare_dequantize_cuda>(), op::cpu<prepare_dequantize>(),
                                                   op::reference<reference_dequantize>()};
constexpr const char* kModule = "flashinfer.gemm";

}  // namespace

namespace ops::gemm {
constinit const op::Op mm_gguf_op = op::define<MmGguf, validate_mm, cost_mm>(
    "mm_gguf", kModule,
    "a[m, k] times a weight in GGUF blocks, exact quants, f32 scales and sums; a as bf16 or in 8-bit blocks.",
    mm_fields, mm_candidates, mm_gguf_cases);
constinit const op::Op prepare_gguf_op = op::define<PrepareGgufWeights, nullptr, cost_prepare>(
    "prepare_gguf_weights", kModule, "Packs rows of GGUF blocks into panels, which mm_gguf reads at memory speed.",
    prepare_fields, prepare_candidates, prepare_gguf_weights_cases);
constinit const op::Op gguf_dequantize_op = op::define<GgufDequantize, validate_dequantize, cost_dequantize>(
    "gguf_dequantize", kModule, "The values of GGUF blocks, rounded once.", dequantize_fields, dequantize_candidates,
    gguf_dequantize_cases);
}  // namespace ops::gemm

Tensor mm_gguf(const MmGguf& a) { return op::call(family::mm_gguf_op, a); }
Tensor prepare_gguf_weights(const PrepareGgufWeights& a) { return op::call(family::prepare_gguf_op, a); }
Tensor gguf_dequantize(const GgufDequantize& a) { return op::call(family::gguf_dequantize_op, a); }

}  // namespace flashinfer
