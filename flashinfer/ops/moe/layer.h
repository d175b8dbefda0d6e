// SPDX-License-Identifier: Apache-2.0
// A mixture of experts as one value: what the kernels of all ops take. The reference takes the elements of the weights
// and of an input with scales from the tensors of the call (Elements).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/gemm/grouped/work.h"
#include "flashinfer/ops/moe/kernels/params.h"
#include "flashinfer/ops/quantization/kernels/block_params.h"

namespace flashinfer::moe {

/// What the products read as rows; activations come in it or are brought into it.
enum class RowFormat {
  kPlain,      // bf16 (the reference: also f16, f32)
  kFp8,        // e4m3; the factor is part of the weights' factors
  kFp8Blocks,  // e4m3 with an f32 scale for 128 columns: amax / 448
  kMxFp8,      // e4m3 with a ue8m0 scale for 32
  kNvfp4,      // e2m1 with an e4m3 scale for 16, and a scale of the whole tensor
};
constexpr int64_t scale_block(RowFormat f) {
  return f == RowFormat::kFp8Blocks ? 128 : f == RowFormat::kMxFp8 ? 32 : 16;
}
constexpr bool has_scales(RowFormat f) { return f >= RowFormat::kFp8Blocks; }

/// Experts' weights of one product. Stored row n of an expert is the logical row that `shuffle` and `interleaved` say.
struct Weights {
  TensorView
      data;  // [E, n, k], FP4 and int4: bytes [E, n, k / 2]; with block_k: [E, k / block_k, n, block_k]; or panels
  bool fp4 = false, int4 = false;
  bool panels = false;  // of prepare_quantized_weights: [E, panels, lines, 64]
  int64_t block_k = 0;
  ScaleFactors sf{};   // scales of a byte
  BlockScales grid{};  // f32 scales of blocks, grid_k along k
  int64_t grid_k = 0;
  std::optional<TensorView> factor{};         // f32 [E] or one: behind the product
  std::optional<TensorView> column_factor{};  // [E, n]: of each stored row
  std::optional<TensorView> bias{};           // [E, n], of each stored row
  int shuffle = 0;                            // rows are interleaved in blocks of 16 or 32 (columns_of); 0: none
  bool interleaved = false;                   // pairs of (linear, gate) rows, before the shuffle
};

struct Layer {
  // `hidden`: columns of x that product 1 reads, and of the result; `width`: rows of `first`
  int64_t tokens = 0, top_k = 0, experts = 0, hidden = 0, inter = 0, width = 0;
  int64_t second_rows = 0, second_depth = 0;  // rows of `second`, and columns of `inter` that it reads; 0: all
  TensorView x;                               // [tokens, hidden or more]; FP4: bytes
  Tensor x_scales;                            // of an x that comes with them: u8 or f32 [tokens, hidden / scale_block]
  RowFormat format = RowFormat::kPlain;
  ScaleFactors x_sf{};  // the same scales where they are, for a GPU
  BlockScales x_grid{};
  std::optional<TensorView> x_encode{},
      inter_encode{};                        // NVFP4: global scales of x and of the activations; 1 when absent
  std::optional<TensorView> inter_factor{};  // kFp8, kNvfp4: of activations before they are quantised; f32 [E] or one
  std::optional<TensorView> x_cast{},
      inter_cast{};  // kFp8: rows of 16 bits are multiplied by this, one or one a column, then cast
  std::optional<TensorView> row_factor{};  // f32 [tokens]: of product 1
  std::optional<TensorView>
      delta{};                    // [tokens, choices, width], logical columns: added to product 1 of the first choices
  bool weights_on_input = false;  // the token's weight multiplies product 1 instead of product 2
  Weights first, second;
  MoeActivation kind = MoeActivation::kSwiglu;
  std::optional<TensorView> alpha{}, beta{}, limit{}, situ_beta{}, situ_linear{};  // f32 [E]
  std::optional<TensorView> relu2_limit{};                                         // one f32
  bool add_second_bias = true;
  std::vector<int32_t> ids;    // [tokens * top_k], -1: not here; on a GPU its kernels find both
  std::vector<float> weights;  // [tokens * top_k]
  TensorView out;              // [tokens, hidden]
  TensorView rows_out;         // instead of out: bf16 [tokens * top_k, hidden], product 2 by expert; and
  TensorView row_of;           // i32 [tokens * top_k], the row of each entry of ids, or -1; also beside out
  TensorView
      inter_out;  // bf16 [tokens * top_k, inter]: activations before they are quantised, rows as row_of; or absent
};

/// The kernels of a layer; null where it needs none.
struct Kernels {
  gemm::Kernels first, second;
  jit::CpuFn activate, sum;
  jit::CpuFn convert_x, convert_inter;  // quantise or cast
};
/// Reads no ids and no values.
Kernels find_kernels(const Layer& l, ops::Lookup& lookup);
void run(const Layer& l, const Kernels& kernels);
/// What the reference multiplies: elements with all their scales, each op's own reading of its tensors.
struct Elements {
  using Weight = std::function<double(int64_t expert, int64_t row, int64_t k)>;  // of a stored row
  Weight first, second;
  std::function<double(int64_t token, int64_t k)> x{};  // of an input that has scale factors
};
/// A token and an expert at a time, in double precision. Of the layer's weights it reads column_factor, bias and the
/// order of rows alone.
void reference(const Layer& l, const Elements& elements);
/// Two products of what the ids name; bytes include each named expert once.
op::Cost cost(const Layer& l);

// ---- shared by the two ----
/// Rows of activations in the format of the products.
struct Rows {
  TensorView data;
  Tensor scales, keep;
};
/// How rows of type `t` become kMxFp8 or kNvfp4. The ops have no argument for the recipe 4 over 6: the environment's
/// (FLASHINFER_NVFP4_4OVER6*) counts.
BlockQuantConfig quant_config(RowFormat f, DType t);
/// Of the shape and types that x [rows, k] has in the layer's format; not filled.
Rows empty_rows(const Layer& l, const TensorView& x);
inline int64_t rows_of_second(const Layer& l) { return l.second_rows ? l.second_rows : l.hidden; }
inline int64_t depth_of(const Layer& l, int which) {
  return which == 1 ? l.hidden : l.second_depth ? l.second_depth : l.inter;
}
/// Product `which` of rows sorted into groups.
gemm::GroupedWork product(const Layer& l, int which, const Rows& rows, const TensorView& out,
                          std::vector<gemm::Group> groups);
inline float number(const TensorView& t, int64_t i = 0) {
  return t.data_as<float>()[t.numel() == 1 || t.rank() == 0 ? 0 : i * t.stride(0)];
}
inline float number_or(const std::optional<TensorView>& t, float otherwise) { return t ? number(*t) : otherwise; }
inline bool is_narrow(const TensorView& x) {
  return x.dtype() == DType::kF8E4M3 || x.dtype() == DType::kU8 || x.dtype() == DType::kF4E2M1x2;
}
inline DType inter_dtype(const Layer& l) {
  if (l.format == RowFormat::kFp8 && !l.inter_cast) return DType::kF8E4M3;
  return l.format == RowFormat::kPlain ? l.x.dtype() : DType::kBF16;
}

}  // namespace flashinfer::moe
