// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/layout/layout.h"

#include <cstring>

#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/strided_copy.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/kernels/layout_params.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;
using op::Shape;
constexpr const char *kInterleave = "nvfp4_block_scale_interleave", *kShuffle = "shuffle_matrix_a",
                     *kShuffleScales = "shuffle_matrix_sf_a", *kReorder = "reorder_rows_for_gated_act_gemm",
                     *kBlocks = "convert_to_block_layout";

// ---- rows that move ----
/// Row r of `to` is row source(r) of `from`.
template <class Source>
void move_rows(const TensorView& from, const TensorView& to, Source source) {
  const int64_t bytes = from.size(1) * from.item_size();
  ops::for_rows(to.size(0), ops::rows_per_task(to.size(0), 2 * bytes), [&](int64_t r) {
    std::memcpy(to.data_as<char>() + r * to.stride(0) * to.item_size(),
                from.data_as<char>() + source(r) * from.stride(0) * from.item_size(), static_cast<size_t>(bytes));
  });
}
int64_t shuffle_block(int64_t epilogue_tile_m) { return epilogue_tile_m % 128 == 0 ? 32 : 16; }
int64_t shuffled_from(int64_t to, int64_t block) {
  const int64_t inside = to % block, parts = block / 8;
  return to - inside + inside % 8 * parts + inside / 8;
}

/// Row source(r) of a linear matrix (r < rows) to row r of 128x4 tiles, with its padding; further rows are 0.
template <class Source>
void interleave(const TensorView& from, char* to, Source source) {
  const int64_t rows = from.size(0), columns = from.size(1), item = from.item_size();
  const int64_t all = sf_padded_rows(SfLayout::k128x4, rows), padded = sf_padded_columns(SfLayout::k128x4, columns);
  ops::for_rows(all, round_up(ops::rows_per_task(all, 2 * padded * item), 128), [&](int64_t r) {
    char* row = to + sf_row_offset(SfLayout::k128x4, r, columns) * item;
    const char* x = r < rows ? from.data_as<char>() + source(r) * from.stride(0) * item : nullptr;
    for (int64_t c = 0; c < padded; c += 4) {
      char* four = row + sf_column_offset(SfLayout::k128x4, c) * item;
      const int64_t n = x ? std::min<int64_t>(4, columns - c) : 0;
      std::memset(four, 0, static_cast<size_t>(4 * item));
      if (n > 0) std::memcpy(four, x + c * item, static_cast<size_t>(n * item));
    }
  });
}

void check_tile(int64_t tile, int64_t m, int64_t block) {
  FI_CHECK(tile > 0, ValueError, "epilogue_tile_m is ", tile, ", but must be positive");
  FI_CHECK(m % block == 0, ValueError, "input_tensor.shape[0] is ", m, ", but must be a multiple of ", block);
}

// ---- nvfp4_block_scale_interleave ----
using I = BlockScaleInterleave;
Shape interleaved(const I& a) {
  const TensorView& x = a.unswizzled_sf;
  return {1, {(x.rank() == 3 ? x.size(0) : 1) * sf_bytes(SfLayout::k128x4, x.size(-2), x.size(-1))}};
}
void validate_interleave(const I& a) {
  FI_CHECK(a.unswizzled_sf.rank() == 2 || a.unswizzled_sf.rank() == 3, ValueError, "unswizzled_sf is ",
           to_string(a.unswizzled_sf), ", but must be [rows, columns] or [experts, rows, columns]");
}
template <class F>
void each_matrix(const I& a, F f) {
  if (a.unswizzled_sf.rank() == 2) return f(a.unswizzled_sf, a.out->data_as<char>());
  const int64_t n = a.unswizzled_sf.size(0), bytes = n ? a.out->nbytes() / n : 0;
  for (int64_t e = 0; e < n; ++e) f(a.unswizzled_sf.select(0, e), a.out->data_as<char>() + e * bytes);
}
void launch_interleave(const I& a) {
  each_matrix(a, [](const TensorView& from, char* to) { interleave(from, to, [](int64_t r) { return r; }); });
}
void place_scales(const TensorView& from, char* to, int64_t block) {
  const int64_t item = from.item_size();
  for (int64_t r = 0; r < from.size(0); ++r)
    for (int64_t c = 0; c < from.size(1); ++c) {
      const int64_t source = block ? ref::shuffle_source(r, block) : r;
      std::memcpy(to + ref::scale_place(SfLayout::k128x4, r, c, from.size(1)) * item,
                  from.data_as<char>() + (source * from.stride(0) + c * from.stride(1)) * item,
                  static_cast<size_t>(item));
    }
}
void reference_interleave(const I& a) {
  std::memset(a.out->data(), 0, static_cast<size_t>(a.out->nbytes()));
  each_matrix(a, [](const TensorView& from, char* to) { place_scales(from, to, 0); });
}

// ---- shuffles ----
using S = ShuffleMatrixA;
void validate_shuffle(const S& a) {
  check_tile(a.epilogue_tile_m, a.input_tensor.size(0), shuffle_block(a.epilogue_tile_m));
}
void launch_shuffle(const S& a) {
  const int64_t block = shuffle_block(a.epilogue_tile_m);
  move_rows(a.input_tensor, *a.output, [block](int64_t r) { return shuffled_from(r, block); });
}
template <class Source>
void reference_rows(const TensorView& from, const TensorView& to, Source source) {
  for (int64_t r = 0; r < from.size(0); ++r)
    for (int64_t c = 0; c < from.size(1); ++c)
      std::memcpy(to.data_as<char>() + (r * to.stride(0) + c * to.stride(1)) * to.item_size(),
                  from.data_as<char>() + (source(r) * from.stride(0) + c * from.stride(1)) * from.item_size(),
                  static_cast<size_t>(from.item_size()));
}
void reference_shuffle(const S& a) {
  const int64_t block = shuffle_block(a.epilogue_tile_m);
  reference_rows(a.input_tensor, *a.output, [block](int64_t r) { return ref::shuffle_source(r, block); });
}

using F = ShuffleMatrixSfA;
Shape shuffled_scales(const F& a) {
  return {1, {sf_bytes(SfLayout::k128x4, a.input_tensor.size(0), a.input_tensor.size(1))}};
}
void validate_shuffle_scales(const F& a) {
  check_tile(a.epilogue_tile_m, a.input_tensor.size(0), 128);
  FI_CHECK(a.num_elts_per_sf == 16 || a.num_elts_per_sf == 32, ValueError, "num_elts_per_sf is ", a.num_elts_per_sf,
           ", but must be 16 or 32");
}
void launch_shuffle_scales(const F& a) {
  const int64_t block = shuffle_block(a.epilogue_tile_m);
  interleave(a.input_tensor, a.output->data_as<char>(), [block](int64_t r) { return shuffled_from(r, block); });
}
void reference_shuffle_scales(const F& a) {
  std::memset(a.output->data(), 0, static_cast<size_t>(a.output->nbytes()));
  place_scales(a.input_tensor, a.output->data_as<char>(), shuffle_block(a.epilogue_tile_m));
}

// ---- weights of gated experts ----
using R = ReorderRowsForGatedActGemm;
void validate_reorder(const R& a) {
  FI_CHECK(a.x.size(0) % 2 == 0, ValueError, "x.shape[0] is ", a.x.size(0), ", but must be even");
}
int64_t reordered_from(int64_t r, int64_t m) { return r % 2 ? m / 2 + r / 2 : r / 2; }
void launch_reorder(const R& a) {
  const int64_t m = a.x.size(0);
  move_rows(a.x, *a.output, [m](int64_t r) { return reordered_from(r, m); });
}
void reference_reorder(const R& a) {
  for (int64_t i = 0; i < a.x.size(0) / 2; ++i) {
    reference_rows(a.x.slice(0, i, i + 1), a.output->slice(0, 2 * i, 2 * i + 1), [](int64_t r) { return r; });
    const int64_t up = a.x.size(0) / 2 + i;
    reference_rows(a.x.slice(0, up, up + 1), a.output->slice(0, 2 * i + 1, 2 * i + 2), [](int64_t r) { return r; });
  }
}
using C = ConvertToBlockLayout;
Shape block_shape(const C& a) { return {3, {a.input_tensor.size(1) / a.blockK, a.input_tensor.size(0), a.blockK}}; }
void validate_blocks(const C& a) {
  FI_CHECK(a.blockK > 0 && a.input_tensor.size(1) % a.blockK == 0, ValueError, "blockK is ", a.blockK,
           ", but must divide input_tensor.shape[1] = ", a.input_tensor.size(1));
}
void launch_blocks(const C& a) {
  for (int64_t b = 0; b < a.output->size(0); ++b)
    move_rows(a.input_tensor.slice(1, b * a.blockK, (b + 1) * a.blockK), a.output->select(0, b),
              [](int64_t r) { return r; });
}
void reference_blocks(const C& a) {
  for (int64_t b = 0; b < a.output->size(0); ++b)
    reference_rows(a.input_tensor.slice(1, b * a.blockK, (b + 1) * a.blockK), a.output->select(0, b),
                   [](int64_t r) { return r; });
}

// ---- on a GPU ----
inline constexpr jit::Kernel kInterleaveCuda{"flashinfer/ops/quantization/kernels/cuda/layout.cuh",
                                             "flashinfer::cu::interleave_scales", "flashinfer::InterleaveParams"};
/// `x`: [rows, columns] or [matrices, rows, columns].
op::Prepared interleave_cuda(const TensorView& x, const TensorView& out, int64_t shuffle, Device device) {
  InterleaveParams p{};
  const bool many = x.rank() == 3;
  const int64_t item = x.item_size(), rows = x.size(-2), columns = x.size(-1), tiles = ceil_div(columns, int64_t{4}),
                row_units = sf_padded_rows(SfLayout::k128x4, rows) / 8, matrices = many ? x.size(0) : 1;
  p.from = static_cast<const char*>(x.data()), p.to = static_cast<char*>(out.data());
  p.matrices = static_cast<uint32_t>(matrices), p.rows = static_cast<uint32_t>(rows),
  p.columns = static_cast<uint32_t>(columns), p.tiles = static_cast<uint32_t>(tiles),
  p.row_units = static_cast<uint32_t>(row_units), p.shuffle = static_cast<uint32_t>(shuffle);
  p.matrix_stride = many ? x.stride(0) : 0, p.row_stride = x.stride(-2);
  p.to_matrix_stride = sf_bytes(SfLayout::k128x4, rows, columns) * item;
  const uint64_t bits = reinterpret_cast<uintptr_t>(p.from) | static_cast<uint64_t>(p.row_stride * item) |
                        static_cast<uint64_t>(p.matrix_stride * item);
  const int64_t turns = matrices * row_units * ceil_div(tiles, int64_t{8});
  if (turns >= int64_t{1} << 32) return op::Unsupported{"the matrices have 2^40 scale factors or more"};
  const InterleaveCudaConfig c{static_cast<short>(item), bits % static_cast<uint64_t>(8 * item) == 0, 256};
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(c.threads);
  l.grid[0] = cuda::grid_size(ceil_div(turns, c.threads / 32));
  l.pdl = true;
  return ops::prepare_cuda<kInterleaveCuda>(c, p, device, l);
}
op::Prepared prepare_interleave_cuda(const I& a, const op::Call& call) {
  return interleave_cuda(a.unswizzled_sf, *a.out, 0, call.device);
}
op::Prepared prepare_shuffle_scales_cuda(const F& a, const op::Call& call) {
  return interleave_cuda(a.input_tensor, *a.output, shuffle_block(a.epilogue_tile_m), call.device);
}
/// Row i * parts + j of each block of the input is row j * 8 + i of the output.
op::Prepared prepare_shuffle_cuda(const S& a, const op::Call& call) {
  const int64_t block = shuffle_block(a.epilogue_tile_m), parts = block / 8, from = a.input_tensor.stride(0),
                to = a.output->stride(0);
  const ops::CopyAxis axes[] = {{a.input_tensor.size(0) / block, block * from, block * to},
                                {8, parts * from, to},
                                {parts, from, 8 * to},
                                {a.input_tensor.size(1), 1, 1}};
  return ops::prepare_strided_copy(a.input_tensor.data(), a.output->data(), axes, a.input_tensor.item_size(),
                                   call.device);
}
op::Prepared prepare_reorder_cuda(const R& a, const op::Call& call) {
  const int64_t half = a.x.size(0) / 2;
  const ops::CopyAxis axes[] = {{2, half * a.x.stride(0), a.output->stride(0)},
                                {half, a.x.stride(0), 2 * a.output->stride(0)},
                                {a.x.size(1), 1, 1}};
  return ops::prepare_strided_copy(a.x.data(), a.output->data(), axes, a.x.item_size(), call.device);
}
op::Prepared prepare_blocks_cuda(const C& a, const op::Call& call) {
  const ops::CopyAxis axes[] = {{a.output->size(0), a.blockK, a.output->stride(0)},
                                {a.output->size(1), a.input_tensor.stride(0), a.output->stride(1)},
                                {a.blockK, 1, 1}};
  return ops::prepare_strided_copy(a.input_tensor.data(), a.output->data(), axes, a.input_tensor.item_size(),
                                   call.device);
}

const TensorView& input_of(const I& a) { return a.unswizzled_sf; }
const TensorView& input_of(const R& a) { return a.x; }
template <class B>
const TensorView& input_of(const B& a) {
  return a.input_tensor;
}
template <class B>
op::Cost cost(const B& a) {
  return {.bytes = 2 * static_cast<double>(input_of(a).nbytes())};
}

// ---- tables ----
constexpr op::Field interleave_fields[] = {
    op::in<&I::unswizzled_sf>("unswizzled_sf", nullptr, DTypeSet(DType::kU8) | DType::kBF16),
    op::out<&I::out>("out", nullptr, op::same_as("unswizzled_sf"), op::shape<interleaved>, op::contiguous,
                     op::keyword_only)};
constexpr op::Field shuffle_fields[] = {op::in<&S::input_tensor>("input_tensor", "m k"),
                                        op::attr<&S::epilogue_tile_m>("epilogue_tile_m", op::required),
                                        op::result<&S::output>("output", "m k", op::same_as("input_tensor"))};
constexpr op::Field shuffle_scales_fields[] = {
    op::in<&F::input_tensor>("input_tensor", "m c", DTypeSet(DType::kU8) | DType::kF8E4M3),
    op::attr<&F::epilogue_tile_m>("epilogue_tile_m", op::required), op::attr<&F::num_elts_per_sf>("num_elts_per_sf"),
    op::result<&F::output>("output", nullptr, op::same_as("input_tensor"), op::shape<shuffled_scales>, op::contiguous)};
constexpr op::Field reorder_fields[] = {op::in<&R::x>("x", "m k"),
                                        op::result<&R::output>("output", "m k", op::same_as("x"))};
constexpr op::Field blocks_fields[] = {
    op::in<&C::input_tensor>("input_tensor", "m k"), op::attr<&C::blockK>("blockK", op::required),
    op::result<&C::output>("output", nullptr, op::same_as("input_tensor"), op::shape<block_shape>)};
constexpr op::Candidate interleave_candidates[] = {op::cuda<prepare_interleave_cuda>(), op::cpu<launch_interleave>(),
                                                   op::reference<reference_interleave>()};
constexpr op::Candidate shuffle_candidates[] = {op::cuda<prepare_shuffle_cuda>(), op::cpu<launch_shuffle>(),
                                                op::reference<reference_shuffle>()};
constexpr op::Candidate shuffle_scales_candidates[] = {op::cuda<prepare_shuffle_scales_cuda>(),
                                                       op::cpu<launch_shuffle_scales>(),
                                                       op::reference<reference_shuffle_scales>()};
constexpr op::Candidate reorder_candidates[] = {op::cuda<prepare_reorder_cuda>(), op::cpu<launch_reorder>(),
                                                op::reference<reference_reorder>()};
constexpr op::Candidate blocks_candidates[] = {op::cuda<prepare_blocks_cuda>(), op::cpu<launch_blocks>(),
                                               op::reference<reference_blocks>()};
constexpr const char *kModule = "flashinfer.quantization", *kMoe = "flashinfer.fused_moe";
}  // namespace

namespace ops::quantization {
constinit const op::Op interleave_op =
    op::also_named(op::define<I, validate_interleave, cost<I>>(
                       kInterleave, kModule, "Linear block scales to tiles of 128 rows x 4 columns.", interleave_fields,
                       interleave_candidates, interleave_cases),
                   "block_scale_interleave");
constinit const op::Op shuffle_op = op::define<S, validate_shuffle, cost<S>>(
    kShuffle, kModule, "Rows of a weight in the order that tile-programmed kernels read.", shuffle_fields,
    shuffle_candidates, shuffle_cases);
constinit const op::Op shuffle_scales_op = op::define<F, validate_shuffle_scales, cost<F>>(
    kShuffleScales, kModule, "Linear block scales shuffled as shuffle_matrix_a does, then in tiles of 128x4.",
    shuffle_scales_fields, shuffle_scales_candidates, shuffle_scales_cases);
constinit const op::Op reorder_op = op::define<R, validate_reorder, cost<R>>(
    kReorder, kMoe, "Interleaves the rows of both halves: out[2i] = x[i], out[2i+1] = x[m/2 + i].", reorder_fields,
    reorder_candidates, reorder_cases);
constinit const op::Op block_layout_op = op::define<C, validate_blocks, cost<C>>(
    kBlocks, kMoe, "[m, k] to [k / blockK, m, blockK].", blocks_fields, blocks_candidates, block_layout_cases);
}  // namespace ops::quantization

Tensor nvfp4_block_scale_interleave(const I& a) { return op::call(family::interleave_op, a); }
Tensor shuffle_matrix_a(const S& a) { return op::call(family::shuffle_op, a); }
Tensor shuffle_matrix_sf_a(const F& a) { return op::call(family::shuffle_scales_op, a); }
Tensor reorder_rows_for_gated_act_gemm(const R& a) { return op::call(family::reorder_op, a); }
Tensor convert_to_block_layout(const C& a) { return op::call(family::block_layout_op, a); }

}  // namespace flashinfer
