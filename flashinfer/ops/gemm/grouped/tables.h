// SPDX-License-Identifier: Apache-2.0
// What the tables of the grouped products share: an op is a function that checks a block and makes a GroupedWork of it,
// and a reference.
#pragma once
#include <algorithm>

#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/gemm/grouped/work.h"

namespace flashinfer::gemm {

// ---- arguments ----
template <class B>
DType out_dtype_of(const B& a) {
  return a.out_dtype ? *a.out_dtype : a.out ? a.out->dtype() : DType::kBF16;
}
/// Groups by m_indptr, no scales.
template <class B>
GroupedWork plain_work(const B& a) {
  GroupedWork w{.a = a.a, .b = a.b, .out = *a.out};
  set_offsets(w, "m_indptr", a.m_indptr);
  return w;
}

// ---- candidates ----
template <class B, GroupedWork (*Work)(const B&)>
op::Cost cost_grouped(const B& a) {
  const GroupedWork w = Work(a);
  double rows = 0, weights = 0;
  for (const Group& g : w.groups) rows += static_cast<double>(g.rows), weights += g.rows > 0;
  if (w.index.index && !on_host(*w.index.index))  // contents of a GPU are not read: all of them
    rows = static_cast<double>(w.a.size(0)), weights = static_cast<double>(w.b.size(0));
  const double weight = static_cast<double>(w.b.nbytes()) / std::max<double>(1, static_cast<double>(w.b.size(0)));
  return {.bytes = static_cast<double>(w.a.nbytes() + w.out.nbytes()) + weights * weight,
          .flops = 2 * rows * static_cast<double>(w.out.size(1)) * static_cast<double>(w.depth())};
}
/// Work checks as it reads offsets: not in `validate`, which also sees arrays of a GPU.
template <class B, GroupedWork (*Work)(const B&)>
op::Prepared prepare_grouped(const B& a) {
  return prepare(Work(a));
}
template <class B, GroupedWork (*Work)(const B&)>
op::Prepared prepare_grouped_cuda(const B& a, const op::Call& call) {
  return prepare_cuda(Work(a), call.device);
}
/// Work for its checks alone: what the reference computes, it reads from the tensors.
template <class B, GroupedWork (*Work)(const B&), void (*Reference)(const B&)>
void reference_grouped(const B& a) {
  Work(a);
  Reference(a);
}
template <class B, GroupedWork (*Work)(const B&), void (*Reference)(const B&),
          op::Prepared (*Prepare)(const B&) = prepare_grouped<B, Work>,
          op::Prepared (*PrepareCuda)(const B&, const op::Call&) = prepare_grouped_cuda<B, Work>>
inline constexpr op::Candidate kGroupedCandidates[] = {op::cuda<PrepareCuda>(), op::cpu<Prepare>(),
                                                       op::reference<reference_grouped<B, Work, Reference>>()};
/// `Prepare`: of an op with types that the kernels do not multiply.
template <class B, GroupedWork (*Work)(const B&), void (*Reference)(const B&),
          op::Prepared (*Prepare)(const B&) = prepare_grouped<B, Work>,
          op::Prepared (*PrepareCuda)(const B&, const op::Call&) = prepare_grouped_cuda<B, Work>>
constexpr op::Op define_grouped(const char* name, const char* module, const char* doc,
                                std::span<const op::Field> fields, op::CaseTable cases,
                                const op::StateType* state = nullptr) {
  return op::define<B, nullptr, cost_grouped<B, Work>>(
      name, module, doc, fields, kGroupedCandidates<B, Work, Reference, Prepare, PrepareCuda>, cases, {}, state);
}

// ---- members ----
inline constexpr auto kByte = DTypeSet(DType::kU8), kSfBytes = DTypeSet(DType::kU8) | DType::kF8E4M3;
template <class B>
inline constexpr op::Field m_indptr = op::in<&B::m_indptr>("m_indptr", "e+1", DType::kI32);
template <class B>
inline constexpr op::Field out_of_dtype = op::out<&B::out>("out", "m n", op::dtype_from("out_dtype"));
template <class B>
inline constexpr op::Field out_maybe = op::out<&B::out>("out", "m n", op::dtype<out_dtype_of<B>>);

}  // namespace flashinfer::gemm
