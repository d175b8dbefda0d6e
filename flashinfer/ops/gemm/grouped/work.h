// SPDX-License-Identifier: Apache-2.0
// What the grouped products share: groups out of index arrays, the work as one value that the kernels take. References
// do not take it: grouped/ref.h.
#pragma once
#include <cstring>
#include <vector>

#include "flashinfer/op/device_indices.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/gemm/packed/packed_weight.h"

namespace flashinfer::gemm {

/// A grouped product: a and b as the op has them (leading extents of a are rows), out as 2-D.
struct GroupedWork {
  TensorView a, b, out;  // [m, k], [e, n, k] (4 bits: k / 2), [m, n]
  bool a_fp4 = false, b_fp4 = false;
  bool b_int4 = false;    // two's complement
  bool b_panels = false;  // b is [e, panels, lines, 64] of prepare_quantized_weights
  int64_t b_block_k = 0;  // b is [e, k / b_block_k, n, b_block_k]
  ScaleFactors a_sf{}, b_sf{};
  BlockScales a_grid{}, b_grid{};
  int64_t grid_k = 0;
  const float* alpha = nullptr;  // one factor of all groups
  std::vector<Group> groups{};   // of index arrays in host memory
  GroupIndex index{};            // the same for a GPU

  int64_t depth() const { return a.size(1) * (a_fp4 ? 2 : 1); }
  Product product() const {
    Product p{.k = depth(), .a = rows_of(a), .b = b_panels ? packed_operand(b) : rows_of(b), .packed = b_panels};
    p.set_out(out);
    if (a.dtype() == DType::kF16) p.split_k = p.k, p.k = split_depth(p.k);
    if (b_int4) p.b.format = GemmFormat::kInt4;
    if (b_block_k) p.b.batch = b.stride(0), p.b.block_k = b_block_k, p.b.block_stride = b.stride(1);
    p.a.sf = a_sf;
    p.b.sf = b_sf;
    p.a_grid = a_grid;
    p.b_grid = b_grid;
    p.grid_k = grid_k;
    p.alpha_a = alpha;
    p.grouped = true;
    p.groups = groups;
    return p;
  }
  /// With the groups as the kernel of a GPU finds them: those of kBatch are the matrices of a batch.
  Product product_on_gpu() const {
    Product p = product();
    if (index.kind != GemmGroups::kBatch) return p;
    p.batch = index.matrices;
    p.m = p.batch ? p.m / p.batch : 0;
    p.a.batch = p.m * p.a.line;
    p.out_batch = p.m * p.out_row;
    p.a_grid.batch = p.m / p.a_grid.lines * p.a_grid.line_stride;
    return p;
  }
};

inline int64_t index_at(const TensorView& t, int64_t i) {
  return t.dtype() == DType::kI32 ? t.data_as<int32_t>()[i * t.stride(0)] : t.data_as<int64_t>()[i * t.stride(0)];
}

/// [indptr[e], indptr[e + 1]) of `rows` rows; ValueError when it decreases or leaves the rows.
inline std::vector<Group> groups_of(std::string_view argument, const TensorView& indptr, int64_t rows) {
  std::vector<Group> out;
  for (int64_t e = 0; e + 1 < indptr.size(0); ++e) {
    const int64_t begin = index_at(indptr, e), end = index_at(indptr, e + 1);
    FI_CHECK(0 <= begin && begin <= end && end <= rows, ValueError, argument, "[", e, "] and the next are ", begin,
             " and ", end, ", but must not decrease and must be within ", rows, " rows");
    out.push_back({.row = begin, .rows = end - begin, .weight = e});
  }
  return out;
}

// Groups out of index arrays: read where the host can, checked where it can or FLASHINFER_CUDA_CHECK_INDICES asks for
// it.

/// Groups of rows by offsets.
inline void set_offsets(GroupedWork& w, std::string_view argument, const TensorView& indptr) {
  w.index = {.kind = GemmGroups::kOffsets, .index = indptr, .groups = indptr.size(0) - 1, .matrices = w.b.size(0)};
  const op::HostIndices host(indptr);
  if (!host) return;
  std::vector<Group> groups = groups_of(argument, *host, w.a.size(0));
  if (on_host(indptr)) w.groups = std::move(groups);
}
/// Of a batch of matrices with `rows` rows each, the first count[i]; each matrix of scale factors is padded.
inline void set_counts(GroupedWork& w, const TensorView& count, int64_t rows) {
  w.index = {.kind = GemmGroups::kBatch, .index = count, .matrices = w.b.size(0)};
  const op::HostIndices host(count);
  for (int64_t i = 0; host && i < w.b.size(0); ++i) {
    const int64_t n = index_at(*host, i);
    FI_CHECK(0 <= n && n <= rows, ValueError, "masked_m[", i, "] is ", n, ", but must be in [0, ", rows,
             "] (rows of a matrix)");
    if (!on_host(count)) continue;
    w.groups.push_back(
        {.row = i * rows, .rows = n, .weight = i, .sf_first = i * sf_padded_rows(SfLayout::k128x4, rows)});
  }
}
/// A factor for each group.
inline void set_alpha(GroupedWork& w, const std::optional<TensorView>& alpha) {
  w.index.alpha = alpha;
  if (alpha)
    for (Group& g : w.groups) g.alpha = alpha->data_as<float>()[g.weight * alpha->stride(0)];
}

/// ValueError unless every offset is a multiple of `alignment`.
inline void check_alignment(const TensorView& indptr, int64_t alignment) {
  FI_CHECK(alignment >= 1, ValueError, "segment_alignment is ", alignment, ", but must be at least 1");
  const op::HostIndices host(indptr);
  for (int64_t i = 0; host && i < indptr.size(0); ++i)
    FI_CHECK(index_at(*host, i) % alignment == 0, ValueError, "m_indptr[", i, "] is ", index_at(*host, i),
             ", but must be a multiple of ", alignment);
}

/// Runs of equal indices; -1: rows of no group.
inline std::vector<Group> groups_of_rows(const TensorView& indices, int64_t weights) {
  std::vector<Group> out;
  for (int64_t r = 0; r < indices.size(0); ++r) {
    const int64_t w = index_at(indices, r);
    FI_CHECK(-1 <= w && w < weights, ValueError, "m_indices[", r, "] is ", w, ", but b has ", weights, " matrices");
    if (w < 0) continue;
    if (!out.empty() && out.back().weight == w && out.back().row + out.back().rows == r)
      ++out.back().rows;
    else
      out.push_back({.row = r, .rows = 1, .weight = w});
  }
  return out;
}

/// The matrix of each row. Returns the groups that were checked.
inline std::vector<Group> set_rows(GroupedWork& w, const TensorView& indices) {
  w.index = {.kind = GemmGroups::kRows, .index = indices, .matrices = w.b.size(0)};
  const op::HostIndices host(indices);
  std::vector<Group> groups;
  if (host) groups = groups_of_rows(*host, w.b.size(0));
  if (on_host(indices)) w.groups = groups;
  return groups;
}

/// Rows of no group become 0. Groups are in ascending order of rows.
inline void clear_other_rows(const GroupedWork& w) {
  const auto clear = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::memset(static_cast<char*>(w.out.data()) + r * w.out.stride(0) * w.out.item_size(), 0,
                  static_cast<size_t>(w.out.size(1) * w.out.item_size()));
  };
  int64_t row = 0;
  for (const Group& g : w.groups) {
    if (g.rows == 0) continue;
    clear(row, g.row);
    row = g.row + g.rows;
  }
  clear(row, w.out.size(0));
}

inline void run(const GroupedWork& w, const Kernels& kernels) {
  clear_other_rows(w);
  run(w.product(), kernels);
}
inline op::Prepared prepare_cuda(const GroupedWork& w, Device device) {
  return prepare_cuda(w.product_on_gpu(), w.index, device);
}
inline op::Prepared prepare(GroupedWork w) {
  ops::Lookup lookup;
  const Kernels kernels = find_kernels(w.product(), lookup);
  return lookup.prepared([w = std::move(w), kernels] { run(w, kernels); });
}

}  // namespace flashinfer::gemm
