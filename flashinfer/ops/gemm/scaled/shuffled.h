// SPDX-License-Identifier: Apache-2.0
// Products with backend "trtllm", whose weight has shuffled rows: each 32 in the order of shuffle_matrix_a, and their
// scale factors in the same order, then in the layout 128x4 (nvfp4_quantize(do_shuffle=True), shuffle_matrix_sf_a).
#pragma once
#include <array>
#include <memory>

#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/gemm/scaled/tables.h"

namespace flashinfer::gemm {

inline constexpr int64_t kShuffledRows = 32;

/// Packed weights have the rows in their order, whatever the back end.
template <class B>
bool is_shuffled(const B& a) {
  return a.backend == "trtllm" && !is_packed(a.b);
}
/// ValueError unless `n` rows can be shuffled.
template <class B>
void check_shuffled(const B& a, int64_t n) {
  FI_CHECK(!is_shuffled(a) || n % kShuffledRows == 0, ValueError, "b.shape[1] is ", n,
           ", but must be a multiple of 32 with backend 'trtllm', which takes shuffled rows of the weight");
}
/// Columns of 16 bits in the order of shuffled rows to their own: row i of 32 lies at i % 4 * 8 + i / 4.
inline void put_back_columns(const TensorView& from, const TensorView& to) {
  const int64_t rows = to.size(0), n = to.size(1), step = to.stride(1);
  ops::for_rows(rows, ops::rows_per_task(rows, 4 * n), [&](int64_t row) {
    const auto* x = static_cast<const uint16_t*>(from.data()) + row * n;
    auto* y = static_cast<uint16_t*>(to.data()) + row * to.stride(0);
    for (int64_t begin = 0; begin < n; begin += kShuffledRows)
      for (int64_t i = 0; i < kShuffledRows; ++i) y[(begin + i) * step] = x[begin + i % 4 * 8 + i / 4];
  });
}

/// A product of which the columns are put back where the weight's rows are shuffled.
template <class B, Product (*Of)(const B&)>
op::Prepared prepare_shuffled(const B& a) {
  if (!is_shuffled(a)) return prepare_scaled<B, Of>(a);
  struct Call {
    explicit Call(const B& a) : block(a), out(Tensor::empty(a.out->shape(), a.out->dtype())) { block.out = out.view(); }
    B block;
    Tensor out;
  };
  const auto call = std::make_shared<Call>(a);
  const std::shared_ptr<op::Prepared> launch(new op::Prepared(prepare_scaled<B, Of>(call->block)));
  if (!launch->supported()) return op::Unsupported{launch->why_not()};
  return [call, launch, to = *a.out] {
    launch->run();
    put_back_columns(call->out, to);
  };
}
template <class B, Product (*Of)(const B&)>
op::Prepared prepare_shuffled_cuda(const B& a, const op::Call& call) {
  Product p = Of(a);
  p.b.interleaved = is_shuffled(a);
  return prepare_cuda(p, {.matrices = p.batch}, call.device);
}
/// prepare_cublaslt_or_own() of scales of blocks and rows in their order.
template <class B, Product (*Of)(const B&)>
op::Prepared prepare_blocks_cublaslt(const B& a, const LtProduct& scaled, const op::Call& call) {
  if (is_packed(a.b)) return op::Unsupported{"b is a packed weight, but cuBLASLt reads a plain one"};
  if (is_shuffled(a))
    return op::Unsupported{"backend 'trtllm' takes shuffled rows of b, which cuBLASLt would leave where they are"};
  if (a.use_8x4_sf_layout) return op::Unsupported{"the scales of a have the layout 8x4, but cuBLASLt reads 128x4"};
  return prepare_cublaslt_or_own<B, Of>(a, scaled, call);
}
template <class B, Product (*Of)(const B&), op::Prepared (*Lt)(const B&, const op::Call&), void (*Reference)(const B&)>
inline constexpr op::Candidate kShuffledCandidates[] = {op::candidate<Lt>(op::Backend::kCublasLt),
                                                        op::cuda<prepare_shuffled_cuda<B, Of>>(),
                                                        op::cpu<prepare_shuffled<B, Of>>(), op::reference<Reference>()};
template <class B, void (*Validate)(const B&), Product (*Of)(const B&), op::Prepared (*Lt)(const B&, const op::Call&),
          void (*Reference)(const B&)>
constexpr op::Op define_shuffled(const char* name, const char* doc, std::span<const op::Field> fields,
                                 op::CaseTable cases) {
  return op::define<B, Validate, cost_scaled<B, Of>>(name, "flashinfer.gemm", doc, fields,
                                                     kShuffledCandidates<B, Of, Lt, Reference>, cases);
}

namespace ref {
/// Where row j of a weight lies, by the table of shuffle_matrix_a.
inline int64_t shuffled_place(int64_t j) {
  constexpr std::array<int64_t, 32> kPlaces = {0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                                               4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
  return j / 32 * 32 + kPlaces[static_cast<size_t>(j % 32)];
}
}  // namespace ref

}  // namespace flashinfer::gemm
