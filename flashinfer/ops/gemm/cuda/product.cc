// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cuda/product.h"

#include <bit>
#include <initializer_list>
#include <limits>

#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::gemm {
namespace {

inline constexpr jit::Kernel kGemmCuda{"flashinfer/ops/gemm/kernels/cuda/gemm.cuh", "flashinfer::cu::gemm",
                                       "flashinfer::GemmCudaParams"};

bool is_half(GemmFormat f) { return f == GemmFormat::kBF16 || f == GemmFormat::kF16; }
int64_t item_of(GemmFormat f) { return is_half(f) ? 2 : 1; }
/// Numbers in a storage element.
int64_t in_item(GemmFormat f) { return f == GemmFormat::kFp4 || f == GemmFormat::kInt4 ? 2 : 1; }

/// GemmCudaConfig::a_wide: lines can be loaded in pieces of 8 or 16 elements, aligned to their size; GGUF: of two
/// bytes, Q4_K of 16.
unsigned char loads_pieces(const Operand& o, int64_t depth) {
  const auto at = reinterpret_cast<uintptr_t>(o.data);
  const auto aligned = [&](uintptr_t to) {
    return ((at | static_cast<uintptr_t>(o.line * item_of(o.format)) |
             static_cast<uintptr_t>(o.batch * item_of(o.format)) |
             static_cast<uintptr_t>(o.block_stride * item_of(o.format))) &
            (to - 1)) == 0;
  };
  if (o.format == GemmFormat::kQ4_K && aligned(16)) return 16;
  if (is_gguf(o.format)) return aligned(2);
  const bool contiguous = o.step == 1 || o.block_k != 0;
  return contiguous && depth % (is_half(o.format) ? 8 : 16) == 0 && aligned(in_item(o.format) == 2 ? 8 : 16);
}
GemmFactor factor_of(const ScaleFactors& s) {
  return !s.bytes ? GemmFactor::kNone : s.e8m0 ? GemmFactor::kUE8M0 : GemmFactor::kE4M3;
}
/// f16 holds all numbers of 8 and 4 bits, and their products with scales of e4m3, but not powers of two of any size.
bool multiplies_f16(const Product& p) {
  if (p.a.format == GemmFormat::kF16 || p.b.format == GemmFormat::kF16) return true;
  return p.a.format != GemmFormat::kBF16 && p.b.format != GemmFormat::kBF16 && !(p.a.sf.bytes && p.a.sf.e8m0) &&
         !(p.b.sf.bytes && p.b.sf.e8m0);
}

GemmCudaOperand operand_of(const Operand& o, const BlockScales& grid) {
  const int64_t in = in_item(o.format);
  GemmCudaOperand c{.data = o.data,
                    .line = o.block_k ? o.block_k : o.line,
                    .step = o.step,
                    .batch = o.batch,
                    .block_stride = o.block_stride * in,
                    .block_shift = o.block_k ? std::countr_zero(static_cast<uint64_t>(o.block_k * in)) : 31,
                    .interleaved = o.interleaved && !o.sf.bytes};
  if (o.sf.bytes) {
    c.factors = o.sf.bytes;
    c.factor_batch = o.sf.batch;
    c.factor_columns = o.sf.columns;
    c.factor_shift = std::countr_zero(static_cast<uint32_t>(o.sf.block));
    c.factor_quad = static_cast<int32_t>(sf_column_offset(o.sf.layout, 4));
    c.factor_layout = o.sf.layout;
  }
  if (grid.p) {
    c.grid = grid.p;
    c.grid_lines = static_cast<int32_t>(std::min<int64_t>(grid.lines, std::numeric_limits<int32_t>::max()));
    c.grid_line_stride = grid.line_stride;
    c.grid_k_stride = grid.tiles ? 1 : grid.k_stride;
    c.grid_quad = grid.tiles ? sf_column_offset(SfLayout::k128x4, 4) : 4 * grid.k_stride;
    c.grid_batch = grid.batch;
    c.grid_dtype = grid.dtype;
    c.grid_tiles = grid.tiles;
  }
  return c;
}
/// GemmCudaParams::aligned. Four are plain products, and a row has no rest.
unsigned char aligned_neighbours(const Product& p, float beta) {
  const auto at = reinterpret_cast<uintptr_t>(p.out);
  const auto aligned = [&](int64_t count) {
    return at % static_cast<uintptr_t>(count * size_of(p.out_dtype)) == 0 && p.out_row % count == 0 &&
           p.out_batch % count == 0;
  };
  return p.n % 4 == 0 && !p.bias && beta == 0.0f && aligned(4) ? 4 : aligned(2) ? 2 : 1;
}
const void* data_of(const std::optional<TensorView>& t) { return t ? t->data() : nullptr; }
bool is_wide(const std::optional<TensorView>& t) { return t && t->dtype() == DType::kI64; }

std::string refusal(const Product& p, const GroupIndex& g, int64_t depth) {
  if (p.packed) return "b is a packed weight, but kernels for GPUs read the unpacked one";
  if (p.quantize_a) return "quantize_a is True, but kernels for GPUs multiply a as it is";
  if (is_half(p.a.format) && is_half(p.b.format) && p.a.format != p.b.format)
    return "a and b are of different 16-bit types";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 1024;
  if (p.m > kMost || p.n > kMost || depth > kMost || (g.kind == GemmGroups::kLengths && p.m >= int64_t{1} << 26))
    return str("the product of ", p.m, " x ", depth, " by ", depth, " x ", p.n, " has too large extents");
  for (const std::optional<TensorView>* t : {&g.index, &g.weights, &g.gather})
    if (*t && !(*t)->is_contiguous()) return "an index array is not contiguous";
  return {};
}

}  // namespace

std::optional<GemmTile> choose_tile(int64_t rows, int64_t groups, int64_t n, int64_t grid, bool tensor_cores,
                                    bool gguf) {
  if (grid > 16384) return std::nullopt;
  const auto divides = [grid](int64_t depth) { return grid == 0 || depth % grid == 0 || grid % depth == 0; };
  const int64_t of_group = ceil_div(rows, std::max<int64_t>(1, groups));
  // One to 16 rows: bound by reading B, so four warps divide k and there are as many blocks as n gives.
  if (of_group <= 16 && tensor_cores && divides(128)) return GemmTile{16, 32, 128, 1, 1, 4};
  const int64_t large = ceil_div(of_group, int64_t{128}) * std::max<int64_t>(1, groups) * ceil_div(n, int64_t{128});
  if (of_group > 64 && large >= 64 && tensor_cores && divides(64) && !gguf) return GemmTile{128, 128, 64, 2, 4, 1};
  // GGUF blocks need more registers for addresses: a step of 64 spills on some GPUs.
  for (const short depth : {short{64}, short{32}, short{16}})
    if (divides(depth) && !(gguf && depth == 64)) return GemmTile{64, 64, depth, 2, 2, 1};
  return std::nullopt;
}

op::Prepared prepare_cuda(const Product& p, const GroupIndex& g, Device device) {
  const int64_t depth = p.split_k ? p.split_k : p.k;
  if (const std::string why = refusal(p, g, depth); !why.empty()) return op::Unsupported{why};
  if (p.m == 0 || p.n == 0 || p.batch == 0) return [] {};
  const bool tensor = jit::arch_number(device) >= 80, batched = g.kind == GemmGroups::kBatch;
  const std::optional<GemmTile> tile = choose_tile(p.m * (batched ? p.batch : 1), batched ? p.batch : g.matrices, p.n,
                                                   p.grid_k, tensor, is_gguf(p.b.format));
  if (!tile)
    return op::Unsupported{
        str("scales are for ", p.grid_k, " elements along k, but kernels for GPUs take multiples of 16 up to 16384")};

  GemmCudaConfig c{.a = p.a.format,
                   .b = p.b.format,
                   .half = multiplies_f16(p),
                   .a_wide = loads_pieces(p.a, depth),
                   .b_wide = loads_pieces(p.b, depth),
                   .a_factor = factor_of(p.a.sf),
                   .b_factor = factor_of(p.b.sf),
                   .tensor = tensor,
                   .groups = g.kind,
                   .gather = g.gather.has_value(),
                   .warps_m = tile->warps_m,
                   .warps_n = tile->warps_n,
                   .warps_k = tile->warps_k,
                   .spread = p.b.sf.bytes && p.b.sf.layout == SfLayout::k128x4 && tile->columns == 32,
                   .shuffled = static_cast<short>(p.b.interleaved && p.b.sf.bytes),
                   .grid = static_cast<short>(p.grid_k),
                   .rows = tile->rows,
                   .columns = tile->columns,
                   .depth = tile->depth,
                   .threads = static_cast<short>(32 * tile->warps_m * tile->warps_n * tile->warps_k)};
  GemmCudaParams q{.a = operand_of(p.a, p.a_grid),
                   .b = operand_of(p.b, p.b_grid),
                   .m = static_cast<int32_t>(p.m),
                   .n = static_cast<int32_t>(p.n),
                   .k = static_cast<int32_t>(depth),
                   .matrices = static_cast<int32_t>(g.matrices),
                   .groups = static_cast<int32_t>(g.groups),
                   .gather_last = static_cast<int32_t>(g.lines - 1),
                   .index = data_of(g.index),
                   .weights = data_of(g.weights),
                   .gather = g.gather ? g.gather->data_as<int32_t>() : nullptr,
                   .index_wide = is_wide(g.index),
                   .weights_wide = is_wide(g.weights),
                   .factor_pad = g.factor_pad,
                   .aligned = aligned_neighbours(p, g.beta),
                   .out_dtype = p.out_dtype,
                   .alpha_a = p.alpha_a,
                   .alpha_b = p.alpha_b,
                   .alpha_group = g.alpha ? g.alpha->data_as<float>() : nullptr,
                   .alpha_stride = g.alpha ? g.alpha->stride(0) : 0,
                   .scale = p.scale_a * p.scale_b,
                   .beta = g.beta,
                   .bias = static_cast<const bf16_t*>(p.bias),
                   .out = p.out,
                   .out_row = p.out_row,
                   .out_batch = p.out_batch};
  const bool offsets = g.kind == GemmGroups::kOffsets || g.kind == GemmGroups::kLengths;
  const int64_t tiles = ceil_div(p.m, int64_t{c.rows}) + (offsets ? g.groups + 2 : 0);
  const int64_t columns = c.spread ? ceil_div(p.n, int64_t{128}) * 4 : ceil_div(p.n, int64_t{c.columns});
  const cuda::Launch launch{.grid = {cuda::grid_size(tiles), cuda::grid_size(columns), cuda::grid_size(p.batch)},
                            .block = {static_cast<unsigned>(c.threads), 1, 1},
                            .shared_bytes = static_cast<unsigned>(c.shared_bytes())};
  return ops::prepare_cuda<kGemmCuda>(c, q, device, launch);
}

}  // namespace flashinfer::gemm
