// SPDX-License-Identifier: Apache-2.0
// top_k_page_table_transform and top_k_ragged_transform.
#include <bit>

#include "flashinfer/ops/topk/cases.h"
#include "flashinfer/ops/topk/launch.h"
#include "flashinfer/ops/topk/op.h"
#include "flashinfer/ops/topk/ref.h"

namespace flashinfer {
namespace {
using namespace ops::topk;
using Paged = TopKPageTableTransform;
using Ragged = TopKRaggedTransform;
template <class B>
inline constexpr bool kPaged = std::is_same_v<B, Paged>;
template <class B>
constexpr const char* op_name() {
  return kPaged<B> ? "top_k_page_table_transform" : "top_k_ragged_transform";
}

int64_t at(const std::optional<TensorView>& t, int64_t i, int64_t absent) { return t ? op::index_at(*t, i) : absent; }

/// The first page of row r in its table.
int64_t table_start(const Paged& a, int64_t r) {
  return at(a.page_table_row_starts ? a.page_table_row_starts : a.row_starts, r, 0);
}

void validate_table(const Paged& a) {
  const int64_t rows = a.input.size(0), batch = a.src_page_table.size(0), pages = a.src_page_table.size(1);
  FI_CHECK(
      a.page_size >= 1 && a.page_size <= (int64_t{1} << 30) && std::has_single_bit(static_cast<uint64_t>(a.page_size)),
      ValueError, "page_size is ", a.page_size, ", but must be a power of two in [1, 2^30]");
  FI_CHECK(!a.row_starts || a.page_table_row_starts || a.page_size == 1, ValueError, "row_starts with page_size ",
           a.page_size, " needs page_table_row_starts");
  FI_CHECK(a.row_to_batch || batch == rows, ValueError, "src_page_table.shape[0] is ", batch,
           ", but without row_to_batch it must be ", rows, " (from input.shape[0])");
  if (a.src_page_table.device() != kCpu) return;
  if (a.row_to_batch) op::check_index_range("row_to_batch", *a.row_to_batch, 0, batch, "rows of src_page_table");
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = table_start(a, r), n = op::index_at(a.lengths, r);
    const int64_t last = n > 0 ? first + (n - 1) / a.page_size : first;
    FI_CHECK(first >= 0 && (n == 0 || last < pages), ValueError, "row ", r, " needs pages [", first, ", ", last,
             "] of its table, but src_page_table.shape[1] is ", pages);
  }
}

template <class B>
void validate(const B& a) {
  const int64_t d = a.input.size(1);
  FI_CHECK(a.k >= 1, ValueError, "k is ", a.k, ", but must be at least 1");
  FI_CHECK(d <= INT32_MAX, ValueError, "input.shape[1] is ", d, ", but must be below 2^31");
  check_common(a);
  if (a.input.device() != kCpu) return;
  for (int64_t r = 0; r < a.input.size(0); ++r) {
    const int64_t start = at(a.row_starts, r, 0), n = op::index_at(a.lengths, r);
    FI_CHECK(n >= 0 && start >= 0 && start + n <= d, ValueError, "lengths[", r, "] is ", n, " from ", start,
             " on, but a row has ", d, " (from input.shape[1])");
  }
  if constexpr (kPaged<B>) validate_table(a);
}

const TensorView& output_of(const Paged& a) { return *a.out; }
const TensorView& output_of(const Ragged& a) { return *a.output; }

template <class B>
op::Prepared prepare_cpu(const B& a) {
  TopKParams p = params_of(a);
  p.transform = 1;
  p.output = output_of(a).template data_as<int32_t>();
  p.output_stride = output_of(a).stride(0);
  p.lengths = row_indices(a.lengths);
  p.starts = row_indices(a.row_starts);
  if constexpr (kPaged<B>) {
    p.page_table = a.src_page_table.template data_as<int32_t>();
    p.table_stride = a.src_page_table.stride(0);
    p.page_shift = std::countr_zero(static_cast<uint64_t>(a.page_size));
    p.batch = row_indices(a.row_to_batch);
    p.table_starts = row_indices(a.page_table_row_starts ? a.page_table_row_starts : a.row_starts);
    if (a.out_raw_indices) {
      p.raw = a.out_raw_indices->template data_as<int32_t>();
      p.raw_stride = a.out_raw_indices->stride(0);
    }
  } else {
    p.offsets = row_indices(a.offsets);
  }
  return ops::with_kernel<kTopK>(config_of(a), [p](jit::CpuFn kernel) {
    ops::run_rows_with_scratch(kernel, p, p.rows, p.rows_per_task, cpu::top_k_scratch(p.d).words);
  });
}

template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  TopKCudaParams p = cuda_params_of(a.input, a.k, a.tie_break);
  p.output = output_of(a).template data_as<int32_t>(), p.output_stride = output_of(a).stride(0);
  p.lengths = cuda_indices(a.lengths), p.starts = cuda_indices(a.row_starts);
  if constexpr (kPaged<B>) {
    const TensorView& table = a.src_page_table;
    p.page_table = table.template data_as<int32_t>();
    p.table_stride = table.stride(0), p.table_rows = table.size(0), p.table_columns = table.size(1);
    p.page_shift = std::countr_zero(static_cast<uint64_t>(a.page_size));
    p.batch = cuda_indices(a.row_to_batch);
    p.table_starts = cuda_indices(a.page_table_row_starts ? a.page_table_row_starts : a.row_starts);
    if (a.out_raw_indices)
      p.raw = a.out_raw_indices->template data_as<int32_t>(), p.raw_stride = a.out_raw_indices->stride(0);
  } else {
    p.offsets = cuda_indices(a.offsets);
  }
  return prepare_top_k_cuda(a.input, p, call.device);
}

template <class B>
void launch_reference(const B& a) {
  for (int64_t r = 0; r < a.input.size(0); ++r) {
    const std::vector<int64_t> chosen =
        ref::top_k_window(a.input, r, at(a.row_starts, r, 0), op::index_at(a.lengths, r), a.k, a.tie_break == 2);
    for (int64_t i = 0; i < a.k; ++i) {
      const int64_t p = i < static_cast<int64_t>(chosen.size()) ? chosen[static_cast<size_t>(i)] : -1;
      int64_t y = p;
      if constexpr (kPaged<B>) {
        const int64_t b = at(a.row_to_batch, r, r);
        if (p >= 0)
          y = static_cast<int64_t>(ref::at(a.src_page_table, {b, table_start(a, r) + p / a.page_size})) * a.page_size +
              p % a.page_size;
        if (a.out_raw_indices) ref::put(*a.out_raw_indices, {r, i}, static_cast<double>(p));
      } else if (p >= 0) {
        y = p + op::index_at(a.offsets, r);
      }
      ref::put(output_of(a), {r, i}, static_cast<double>(y));
    }
  }
}

template <class B>
op::Cost cost(const B& a) {
  return {.bytes = static_cast<double>(a.input.nbytes()), .flops = static_cast<double>(a.input.numel())};
}
template <class B>
op::Shape output_shape(const B& a) {
  return {.rank = 2, .size = {a.input.size(0), a.k}};
}

bool raw_wanted(const Paged& a) { return a.out_raw_indices.has_value(); }

#define FI_TOPK_OPTIONS(B)                                                              \
  op::attr<&B::deterministic>("deterministic"),                                         \
      op::attr<&B::tie_break>("tie_break", op::literal("TopKTieBreak.NONE"),            \
                              op::enumeration("TopKTieBreak: NONE=0|SMALL=1|LARGE=2")), \
      op::attr<&B::dsa_graph_safe>("dsa_graph_safe"),                                   \
      op::in<&B::row_starts>("row_starts", "n", op::indices, op::any_layout)
constexpr op::Field paged_fields[] = {
    op::in<&Paged::input>("input", "n d", op::floats),
    op::in<&Paged::src_page_table>("src_page_table", "b pages", DType::kI32),
    op::in<&Paged::lengths>("lengths", "n", op::indices, op::any_layout),
    op::attr<&Paged::k>("k", op::required),
    op::in<&Paged::row_to_batch>("row_to_batch", "n", op::indices, op::any_layout),
    FI_TOPK_OPTIONS(Paged),
    op::in<&Paged::page_table_row_starts>("page_table_row_starts", "n", op::indices, op::any_layout),
    op::attr<&Paged::page_size>("page_size", op::keyword_only),
    op::out<&Paged::out>("out", nullptr, DType::kI32, op::shape<output_shape<Paged>>),
    op::out<&Paged::out_raw_indices>("out_raw_indices", "n k", DType::kI32, op::when<raw_wanted>, op::not_returned)};
constexpr op::Field ragged_fields[] = {
    op::in<&Ragged::input>("input", "n d", op::floats),
    op::in<&Ragged::offsets>("offsets", "n", op::indices, op::any_layout),
    op::in<&Ragged::lengths>("lengths", "n", op::indices, op::any_layout),
    op::attr<&Ragged::k>("k", op::required),
    FI_TOPK_OPTIONS(Ragged),
    op::result<&Ragged::output>("output", nullptr, DType::kI32, op::shape<output_shape<Ragged>>)};
constexpr op::Candidate paged_candidates[] = {op::cuda<prepare_cuda<Paged>>(), op::cpu<prepare_cpu<Paged>>(),
                                              op::reference<launch_reference<Paged>>()};
constexpr op::Candidate ragged_candidates[] = {op::cuda<prepare_cuda<Ragged>>(), op::cpu<prepare_cpu<Ragged>>(),
                                               op::reference<launch_reference<Ragged>>()};
}  // namespace

namespace ops::topk {
constinit const op::Op page_table_op = op::define<Paged, validate<Paged>, cost<Paged>>(
    "top_k_page_table_transform", "flashinfer.topk",
    "The positions of the k largest scores of each row, looked up in its page table, padded with -1.", paged_fields,
    paged_candidates, page_table_cases);
constinit const op::Op ragged_op = op::define<Ragged, validate<Ragged>, cost<Ragged>>(
    "top_k_ragged_transform", "flashinfer.topk",
    "The positions of the k largest scores of each row plus its offset, padded with -1.", ragged_fields,
    ragged_candidates, ragged_cases);
}  // namespace ops::topk

Tensor top_k_page_table_transform(const Paged& a) { return op::call(page_table_op, a); }
Tensor top_k_ragged_transform(const Ragged& a) { return op::call(ragged_op, a); }

}  // namespace flashinfer
