// SPDX-License-Identifier: Apache-2.0
// What the tables of the scaled products share: an op is a check, a Product of a checked block, and a reference.
#pragma once
#include <functional>

#include "flashinfer/ops/gemm/cublaslt/cublaslt.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/gemm/packed/packed_weight.h"

namespace flashinfer::gemm {

inline Product product_of(const TensorView& a, const TensorView& b, const TensorView& out, bool fp4 = false) {
  Product p{.k = a.size(-1) * (fp4 ? 2 : 1), .a = rows_of(a), .b = columns_of(b)};
  p.set_out(out);
  return p;
}
/// The same with b as rows [n, k], FP4 [n, k / 2], or from prepare_quantized_weights.
inline Product product_with(const TensorView& a, const TensorView& b, const TensorView& out, bool fp4 = false) {
  Product p{.k = a.size(-1) * (fp4 ? 2 : 1), .a = rows_of(a), .packed = is_packed(b)};
  p.b = p.packed ? packed_operand(b) : rows_of(b);
  p.set_out(out);
  return p;
}
template <class B>
const TensorView& first_of(const B& a) {
  if constexpr (requires { a.A; })
    return a.A;
  else
    return a.a;
}
template <class B>
const TensorView& second_of(const B& a) {
  if constexpr (requires { a.B; })
    return a.B;
  else
    return a.b;
}
template <class B, Product (*Of)(const B&)>
op::Cost cost_scaled(const B& a) {
  const TensorView &x = first_of(a), &y = second_of(a);
  return {.bytes = static_cast<double>(x.nbytes() + y.nbytes() + a.out->nbytes()),
          .flops = 2.0 * static_cast<double>(a.out->numel()) * static_cast<double>(Of(a).k)};
}
template <class B, Product (*Of)(const B&)>
op::Prepared prepare_scaled(const B& a) {
  return prepare(Of(a));
}
template <class B, Product (*Of)(const B&)>
op::Prepared prepare_scaled_cuda(const B& a, const op::Call& call) {
  const Product p = Of(a);
  return prepare_cuda(p, {.matrices = p.batch}, call.device);
}
/// cuBLASLt's product of `scaled`, beside the own kernel's in the search.
template <class B, Product (*Of)(const B&)>
op::Prepared prepare_cublaslt_or_own(const B& a, LtProduct scaled, const op::Call& call) {
  const std::function<op::Prepared()> own = [&] { return prepare_scaled_cuda<B, Of>(a, call); };
  scaled.own = &own;
  return prepare_cublaslt(scaled, call.device);
}
template <class B, Product (*Of)(const B&), op::Prepared (*Lt)(const B&, const op::Call&), void (*Reference)(const B&)>
inline constexpr op::Candidate kScaledCandidates[] = {op::candidate<Lt>(op::Backend::kCublasLt),
                                                      op::cuda<prepare_scaled_cuda<B, Of>>(),
                                                      op::cpu<prepare_scaled<B, Of>>(), op::reference<Reference>()};
template <class B, void (*Validate)(const B&), Product (*Of)(const B&), op::Prepared (*Lt)(const B&, const op::Call&),
          void (*Reference)(const B&)>
constexpr op::Op define_scaled(const char* name, const char* doc, std::span<const op::Field> fields,
                               op::CaseTable cases) {
  return op::define<B, Validate, cost_scaled<B, Of>>(name, "flashinfer.gemm", doc, fields,
                                                     kScaledCandidates<B, Of, Lt, Reference>, cases);
}

}  // namespace flashinfer::gemm
