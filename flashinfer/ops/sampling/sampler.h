// SPDX-License-Identifier: Apache-2.0
// What is read off a sampler's argument block (op.h), whichever members it has: its input, its rows, its table.
#pragma once
#include "flashinfer/ops/sampling/launch.h"

namespace flashinfer::ops::sampling {

/// Which members the block has.
template <class B>
struct Is {
  static constexpr bool top_k = requires(const B& a) { a.top_k; };
  static constexpr bool top_p = requires(const B& a) { a.top_p; };
  static constexpr bool min_p = requires(const B& a) { a.min_p; };
  static constexpr bool ordered = requires(const B& a) { a.filter_apply_order; };
  static constexpr bool logits = requires(const B& a) { a.logits; };
  static constexpr bool valid = requires(const B& a) { a.valid; };
  static constexpr bool filtered = top_k || top_p;  // draws by rejection: 32 numbers a row
};

template <class B>
const TensorView& input_of(const B& a) {
  if constexpr (Is<B>::logits)
    return a.logits;
  else
    return a.probs;
}
template <class B>
int64_t rows_of(const B& a) {
  return outputs_of(a, input_of(a));
}
template <class B>
op::Shape sample_shape(const B& a) {
  return {.rank = 1, .size = {rows_of(a)}};
}

struct FieldList {
  op::Field fields[15];
  size_t size = 0;
  constexpr void add(const op::Field& f) { fields[size++] = f; }
  constexpr std::span<const op::Field> span() const { return {fields, size}; }
};
/// The table of a sampler's members, in the order of its signature.
template <class B>
constexpr FieldList sampler_fields() {
  using M = Is<B>;
  FieldList f;
  if constexpr (M::logits)
    f.add(op::in<&B::logits>("logits", "n v", op::floats));
  else
    f.add(op::in<&B::probs>("probs", "n v", op::floats));
  if constexpr (M::top_k) f.add(op::in<&B::top_k>("top_k", nullptr, op::required));
  if constexpr (M::top_p) f.add(op::in<&B::top_p>("top_p", nullptr, kReals, op::required));
  if constexpr (M::min_p) f.add(op::in<&B::min_p>("min_p", nullptr, kReals, op::required));
  f.add(op::in<&B::indices>("indices", "b", op::indices));
  if constexpr (M::ordered)
    f.add(op::attr<&B::filter_apply_order>("filter_apply_order", op::choices("top_k_first|joint")));
  f.add(op::attr<&B::deterministic>("deterministic"));
  f.add(op::attr<&B::generator>("generator"));
  f.add(op::attr<&B::check_nan>("check_nan"));
  f.add(op::in<&B::seed>("seed", nullptr, kSeeds));
  f.add(op::in<&B::offset>("offset", nullptr, kSeeds));
  if constexpr (M::valid) f.add(op::attr<&B::return_valid>("return_valid"));
  f.add(op::result<&B::samples>("samples", nullptr, op::indices, op::contiguous, op::shape<sample_shape<B>>,
                                op::dtype<sample_dtype<B>>));
  if constexpr (M::valid)
    f.add(op::result<&B::valid>("valid", nullptr, DType::kBool, op::contiguous, op::shape<sample_shape<B>>,
                                op::when<&B::return_valid>));
  f.add(op::attr<&B::implied_generator>("implied_generator", op::internal));
  return f;
}
template <class B>
inline constexpr FieldList kSamplerFields = sampler_fields<B>();

}  // namespace flashinfer::ops::sampling
