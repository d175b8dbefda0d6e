// SPDX-License-Identifier: Apache-2.0
// pad_indptr_to_multiple_of_4.
#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/scaled_batches.h"
#include "flashinfer/ops/gemm/kernels/pad_indptr_params.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {
using Pad = PadIndptr;
inline constexpr jit::Kernel kPadCuda{"flashinfer/ops/gemm/kernels/cuda/pad_indptr.cuh", "flashinfer::cu::pad_indptr",
                                      "flashinfer::PadIndptrParams"};

void validate(const Pad& a) {
  FI_CHECK(a.m_indptr.size(0) >= 1, ValueError,
           "m_indptr is empty, but must have an offset more than there are groups");
  if (a.m_indptr.device() == kCpu) op::check_indptr("m_indptr", a.m_indptr);
}
op::Shape ranks(const Pad& a) {
  if (op::inferring() || (a.padded_m_rank && !host_can_read(a.m_indptr.device()))) return {1, {op::kAnyExtent}};
  const Tensor last = host_readable(a.m_indptr.slice(0, a.m_indptr.size(0) - 1, a.m_indptr.size(0)));
  return {1, {op::index_at(last, 0)}};  // of a GPU: waits for its stream
}
template <class T>
void pad(const Pad& a) {
  const T* from = a.m_indptr.data_as<T>();
  T *to = a.padded_m_indptr->data_as<T>(), *rank = a.padded_m_rank->data_as<T>();
  const int64_t step = a.m_indptr.stride(0), to_step = a.padded_m_indptr->stride(0),
                rank_step = a.padded_m_rank->stride(0);
  T next = 0;
  to[0] = 0;
  for (int64_t q = 0; q + 1 < a.m_indptr.size(0); ++q) {
    const T begin = from[q * step], end = from[(q + 1) * step];
    for (T r = begin; r < end; ++r) rank[r * rank_step] = next + (r - begin);
    next += round_up(end - begin, 4);
    to[(q + 1) * to_step] = next;
  }
}
void launch(const Pad& a) { a.m_indptr.dtype() == DType::kI32 ? pad<int32_t>(a) : pad<int64_t>(a); }
op::Prepared prepare_cuda(const Pad& a, const op::Call& call) {
  const int64_t groups = a.m_indptr.size(0) - 1, rows = a.padded_m_rank->size(0);
  if (rows + 4 * groups >= int64_t{1} << 31)
    return op::Unsupported{str("there are ", rows, " rows, about 2^31 or more")};
  const PadIndptrParams p{.from = ops::strided_indices(a.m_indptr),
                          .to = a.padded_m_indptr->data(),
                          .place = a.padded_m_rank->data(),
                          .to_stride = a.padded_m_indptr->stride(0),
                          .place_stride = a.padded_m_rank->stride(0),
                          .rows = rows,
                          .groups = static_cast<uint32_t>(groups)};
  const PadIndptrConfig config{a.m_indptr.dtype() == DType::kI64, 256};
  const cuda::Launch l{.grid = {cuda::grid_size(std::max<int64_t>(groups, 1)), 1, 1},
                       .block = {256, 1, 1},
                       .shared_bytes = 32,
                       .pdl = true};
  return ops::prepare_cuda<kPadCuda>(config, p, call.device, l);
}
/// Row by row: a new group starts at the next multiple of 4 that is free.
void reference(const Pad& a) {
  int64_t place = 0, group = 0;
  ref::put(*a.padded_m_indptr, {0}, 0);
  const auto close_until = [&](int64_t row) {
    while (group + 1 < a.m_indptr.size(0) && op::index_at(a.m_indptr, group + 1) <= row) {
      while (place % 4) ++place;
      ref::put(*a.padded_m_indptr, {++group}, static_cast<double>(place));
    }
  };
  const int64_t rows = a.padded_m_rank->size(0);
  for (int64_t row = 0; row < rows; ++row) {
    close_until(row);
    ref::put(*a.padded_m_rank, {row}, static_cast<double>(place++));
  }
  close_until(rows);
}

constexpr op::Field fields[] = {
    op::in<&Pad::m_indptr>("m_indptr", "n", op::indices),
    op::result<&Pad::padded_m_indptr>("padded_m_indptr", "n", op::same_as("m_indptr")),
    op::result<&Pad::padded_m_rank>("padded_m_rank", nullptr, op::same_as("m_indptr"), op::shape<ranks>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<launch>(), op::reference<reference>()};
constexpr op::Case kCases[] = {
    {"groups", "m_indptr=i32:[0,3,3,7,15,16]"},
    {"none", "m_indptr=i64:[0]"},
    {"empty", "m_indptr=i64:[0,0,0]"},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::gemm {
constinit const op::Op pad_indptr_op = op::define<Pad, validate>(
    "pad_indptr_to_multiple_of_4", "flashinfer.gemm",
    "Offsets of groups of rows, each rounded up to a multiple of 4 rows, and the new place of each row.", fields,
    candidates, cases);
}  // namespace ops::gemm

std::pair<Tensor, Tensor> pad_indptr_to_multiple_of_4(const Pad& a) { return op::call(ops::gemm::pad_indptr_op, a); }

}  // namespace flashinfer
