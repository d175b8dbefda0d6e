// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/topk/varlen.h"

#include <algorithm>

#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/topk/cases.h"
#include "flashinfer/ops/topk/launch.h"
#include "flashinfer/ops/topk/ref.h"

namespace flashinfer {
namespace {
using namespace ops::topk;
using V = TopKVarlen;

/// How many logits row r ranks.
int64_t length_of(const V& a, int64_t r) {
  const int64_t tokens = op::index_at(a.seq_lens, r / a.next_n) - a.next_n + r % a.next_n + 1;
  return tokens <= 0 ? 0 : std::min(tokens / a.compress_ratio, a.logits.size(1));
}
void validate(const V& a) {
  const int64_t rows = a.logits.size(0), d = a.logits.size(1);
  for (const auto& [name, x] :
       {std::pair("top_k", a.top_k), std::pair("compress_ratio", a.compress_ratio), std::pair("next_n", a.next_n)})
    FI_CHECK(x >= 1, ValueError, name, " is ", x, ", but must be at least 1");
  FI_CHECK(d <= INT32_MAX, ValueError, "logits.shape[1] is ", d, ", but must be below 2^31");
  FI_CHECK(rows % a.next_n == 0 && a.seq_lens.size(0) == rows / a.next_n, ValueError, "seq_lens.shape[0] is ",
           a.seq_lens.size(0), ", but logits has ", rows, " rows, ", a.next_n, " (next_n) for each request");
}
template <class T>
void gather(const V& a) {
  ops::for_rows(a.logits.size(0), ops::rows_per_task(a.logits.size(0), a.top_k * 8), [&](int64_t r) {
    const T* from = a.logits.data_as<T>() + r * a.logits.stride(0);
    const int32_t* at = a.out_indices->data_as<int32_t>() + r * a.out_indices->stride(0);
    T* to = a.out_values->data_as<T>() + r * a.out_values->stride(0);
    for (int64_t i = 0; i < a.top_k; ++i) to[i] = at[i] < 0 ? T(0.0f) : from[at[i]];
  });
}
void gather_values(const V& a) {
  switch (a.logits.dtype()) {
    case DType::kF16: return gather<f16_t>(a);
    case DType::kBF16: return gather<bf16_t>(a);
    default: return gather<float>(a);
  }
}
op::Prepared prepare(const V& a) {
  TopKParams p{};
  p.input = a.logits.data(), p.rows = a.logits.size(0), p.d = a.logits.size(1), p.k = a.top_k;
  p.input_stride = a.logits.stride(0);
  p.rows_per_task = ops::rows_per_task(p.rows, p.d * a.logits.item_size());
  p.transform = 1;
  p.output = a.out_indices->data_as<int32_t>(), p.output_stride = a.out_indices->stride(0);
  const Tensor lengths = Tensor::empty({p.rows}, DType::kI32);
  for (int64_t r = 0; r < p.rows; ++r) lengths.data_as<int32_t>()[r] = static_cast<int32_t>(length_of(a, r));
  p.lengths = {lengths.data(), 1, 0};
  return ops::with_kernel<kTopK>(TopKConfig{a.logits.dtype()}, [&a, p, lengths](jit::CpuFn kernel) {
    ops::run_rows_with_scratch(kernel, p, p.rows, p.rows_per_task, cpu::top_k_scratch(p.d).words);
    if (a.return_values) gather_values(a);
  });
}
op::Prepared prepare_cuda(const V& a, const op::Call& call) {
  TopKCudaParams p = cuda_params_of(a.logits, a.top_k, 0);
  p.output = a.out_indices->data_as<int32_t>(), p.output_stride = a.out_indices->stride(0);
  if (a.return_values) p.values = a.out_values->data(), p.values_stride = a.out_values->stride(0);
  p.lengths = cuda_indices(a.seq_lens);
  p.next_n = a.next_n, p.ratio = a.compress_ratio;
  return prepare_top_k_cuda(a.logits, p, call.device);
}
void reference(const V& a) {
  for (int64_t r = 0; r < a.logits.size(0); ++r) {
    const std::vector<int64_t> chosen = ref::top_k_window(a.logits, r, 0, length_of(a, r), a.top_k, false);
    for (int64_t i = 0; i < a.top_k; ++i) {
      const bool any = i < static_cast<int64_t>(chosen.size());
      const int64_t at = any ? chosen[static_cast<size_t>(i)] : -1;
      ref::put(*a.out_indices, {r, i}, static_cast<double>(at));
      if (a.return_values) ref::put(*a.out_values, {r, i}, any ? ref::at(a.logits, {r, at}) : 0.0);
    }
  }
}
op::Shape chosen_shape(const V& a) { return {2, {a.logits.size(0), a.top_k}}; }
op::Cost cost(const V& a) {
  return {.bytes = static_cast<double>(a.logits.nbytes()), .flops = static_cast<double>(a.logits.numel())};
}

constexpr op::Field fields[] = {
    op::in<&V::logits>("logits", "n d", op::floats),
    op::in<&V::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::attr<&V::top_k>("top_k", op::required),
    op::in<&V::pre_idx>("pre_idx", nullptr, op::indices),
    op::attr<&V::compress_ratio>("compress_ratio"),
    op::attr<&V::next_n>("next_n"),
    op::attr<&V::return_values>("return_values"),
    op::out<&V::out_indices>("out_indices", nullptr, DType::kI32, op::shape<chosen_shape>, op::tuple_with_previous),
    op::out<&V::out_values>("out_values", nullptr, op::same_as("logits"), op::shape<chosen_shape>,
                            op::when<&V::return_values>),
    op::attr<&V::backend>("backend",
                          op::backends("auto|radix:cuda|gvr:cuda|gvr_2:cuda|radix_cutlass:cuda|radix_filter:cuda")),
    op::attr<&V::load_balance>("load_balance"),
    op::attr<&V::workspace>("workspace"),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(), op::reference<reference>()};
}  // namespace

namespace ops::topk {
constinit const op::Op varlen_op = op::define<V, validate, cost>(
    "top_k_varlen", "flashinfer",
    "The positions of the top_k largest logits of each row, of those that count; then -1.", fields, candidates,
    varlen_cases);
}  // namespace ops::topk

op::Results top_k_varlen(const V& a) { return op::call(varlen_op, a); }
}  // namespace flashinfer
