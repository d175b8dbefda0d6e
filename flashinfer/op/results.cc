// SPDX-License-Identifier: Apache-2.0
// What a call returned, as the Python function returns it.
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"

namespace flashinfer::op {
namespace {
Value number_at(const TensorView& v, int64_t i) {
  switch (v.dtype()) {
    case DType::kF32: return static_cast<double>(v.data_as<float>()[i * v.stride(0)]);
    case DType::kF64: return v.data_as<double>()[i * v.stride(0)];
    default: return index_at(v, i);
  }
}
TupleValue slices(const Tensor& t) {
  TupleValue out;
  for (int64_t i = 0; i < t.size(0); ++i) out.items.emplace_back(TensorValue{t.view().select(0, i), t.owner()});
  return out;
}
}  // namespace

Value Results::value(const std::function<Value(int)>& tensor) const {
  std::vector<Value> items;
  bool open = false;  // the last item is a tuple that `tuple_with_previous` made
  for (int i = 0; i < count_; ++i) {
    const Tensor& t = (*this)[i];
    const Field* f = field(i);
    if (f && f->as_numbers) {
      const Tensor host = host_readable(t.view());
      for (int64_t k = 0; k < t.size(0); ++k) items.push_back(number_at(host.view(), k));
      continue;
    }
    Value v = f && f->unstacked ? Value(slices(t)) : tensor(i);
    if (!f || !f->tuple_with_previous || items.empty()) {
      items.push_back(std::move(v));
      open = false;
      continue;
    }
    if (!open) items.back() = TupleValue{{items.back()}};
    open = true;
    std::get<TupleValue>(static_cast<Value::Base&>(items.back())).items.push_back(std::move(v));
  }
  if (items.empty()) return Value();
  const bool pair = field(0) && field(0)->tuple_with_previous;  // of the first output: its tuple has None for the next
  if (items.size() == 1 && pair && count_ == 1) items.emplace_back();
  return items.size() == 1 ? std::move(items[0]) : Value(TupleValue{std::move(items)});
}
Value Results::value() const {
  return value([&](int i) { return Value((*this)[i]); });
}

}  // namespace flashinfer::op
