// SPDX-License-Identifier: Apache-2.0
// Calls with the values of oracle_test.py, so that its log and dumps can be compared with those of the Python library.
// The two lists of calls must be kept in the same order.
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

#include "flashinfer/op/observer.h"

namespace {

using namespace flashinfer;
using op::Arg;
using op::Value;

struct Call {
  std::string name, signature;
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword, defaults;
  Value result;
  bool fails = false;
  uint64_t self_id = 0;
};

void make(const Call& c) {
  op::Observer* o = op::detail::resolve_observer(op::observer());
  if (!o) return;
  op::Invocation call;
  call.name = c.name;
  call.module = "__main__";
  call.foreign_signature = c.signature;
  call.self_id = c.self_id;
  for (const Value& v : c.positional) call.foreign_args.push_back({"", Arg::kPositional, v, nullptr, nullptr});
  for (const auto& [n, v] : c.keyword) call.foreign_args.push_back({n, Arg::kKeyword, v, nullptr, nullptr});
  for (const auto& [n, v] : c.defaults) call.foreign_args.push_back({n, Arg::kDefault, v, nullptr, nullptr});
  op::detail::ObservedCall observed(*o, call);
  if (c.fails)
    observed.failed(ValueError("no"));
  else
    observed.after(c.result);
}

template <class T>
Tensor tensor(std::vector<T> values, std::initializer_list<int64_t> shape) {
  return Tensor::copy_of(std::span<const T>(values), shape);
}
Value list(std::vector<Value> v) { return op::ListValue{std::move(v)}; }
Value tuple(std::vector<Value> v, std::string type = "tuple") { return op::TupleValue{std::move(v), std::move(type)}; }

}  // namespace

int main() {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor t = tensor<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  const TensorView transposed = t.view().transpose(0, 1);
  const std::string f = "(a, b, *, c=1e-05, d=None, e='NHD', g=True)", any = "(*xs, **kw)", one = "(x)";
  make({.name = "f",
        .signature = f,
        .positional = {t, transposed},
        .keyword = {{"c", 2.0}},
        .defaults = {{"d", Value()}, {"e", "NHD"}, {"g", true}},
        .result = t});
  const std::vector<Value> values = {Value(),
                                     1,
                                     2.5,
                                     true,
                                     "it's",
                                     "q\"",
                                     op::EnumValue{"Color.RED", "r", false},
                                     op::EnumValue{"Lev.A", "4", true},
                                     list({}),
                                     tuple({}),
                                     op::DictValue{},
                                     list({1, list({2})}),
                                     tuple({1}),
                                     tuple({1, 2}, "P"),
                                     op::DictValue{{{"k", t}, {3, list({t})}}},
                                     DType::kF16,
                                     kCpu,
                                     op::Complex{1, 2},
                                     inf,
                                     nan,
                                     -inf,
                                     op::OpaqueValue{"type", "<class 'object'>"},
                                     op::OpaqueValue{"bytes", "b'x'"}};
  make({.name = "rt", .signature = any, .positional = values, .keyword = {}, .defaults = {}, .result = tuple(values)});
  const Tensor empty = Tensor::zeros({0, 3}, DType::kF32);
  const Tensor integers = tensor<int32_t>({1, 2, 3}, {3}), flag = tensor<uint8_t>({1}, {1});
  const Tensor special = tensor<bf16_t>({bf16_t(1.5f), bf16_t(NAN), bf16_t(INFINITY)}, {3});
  make({.name = "rt",
        .signature = any,
        .positional = {},
        .keyword = {{"k", empty}, {"g", integers}, {"h", TensorView(flag.data(), DType::kBool, {1})}, {"b", special}},
        .defaults = {},
        .result = tuple({})});
  const auto same = [&](const Value& v) {
    make({.name = "one", .signature = one, .positional = {v}, .keyword = {}, .defaults = {}, .result = v});
  };
  const Tensor ones = tensor<float>({1, 1, 1, 1}, {2, 2});
  same(ones);
  make({.name = "none", .signature = "()", .positional = {}, .keyword = {}, .defaults = {}, .result = Value()});
  make({.name = "lst", .signature = one, .positional = {t}, .keyword = {}, .defaults = {}, .result = list({t, 1})});
  same(tuple({t, 2, tuple({t})}));
  same(op::DictValue{{{"a", t}, {"b", 1}}});
  make({.name = "fail",
        .signature = one,
        .positional = {t},
        .keyword = {},
        .defaults = {},
        .result = {},
        .fails = true});
  const Value self = op::ObjectValue{nullptr, "FooWrapper", "__main__", 0x1234};
  const Tensor bytes = Tensor::zeros({4}, DType::kU8);
  make({.name = "FooWrapper.__init__",
        .signature = "(self, ws, layout='NHD')",
        .positional = {self, bytes},
        .keyword = {},
        .defaults = {{"layout", "NHD"}},
        .result = Value(),
        .fails = false,
        .self_id = 0x1234});
  make({.name = "FooWrapper.run",
        .signature = "(self, q, *, out=None)",
        .positional = {self, t},
        .keyword = {},
        .defaults = {{"out", Value()}},
        .result = t,
        .fails = false,
        .self_id = 0x1234});
  same(tensor<float>({3.5f}, {}));
  same(Tensor::zeros({3}, DType::kF8E4M3));
  const Tensor wide = Tensor::zeros({4, 8}, DType::kF32);
  same(wide.view().slice(1, 0, 2));
  same(tensor<int64_t>({int64_t{1} << 40, -1}, {2}));
  const Tensor doubles = tensor<double>({1, 2}, {2});
  same(op::TensorValue{doubles.view(), doubles.owner(), true});
  same(tensor<uint16_t>({1, 2}, {2}));
  same("n\u00e9\n\x01\u4e2d");
  same(1e22);
  same(-0.0);
  same(1.1444091796875e-05);
  const Value device = Device{DeviceType::kCUDA, 1};
  same(device);
  Value deep = 1;
  for (int i = 0; i < 10; ++i) deep = list({deep});
  same(deep);
  // Numbers of many magnitudes: the sums are in another order than torch's, so the test allows the mean a few units.
  std::vector<float> many(100003);
  uint32_t state = 1;
  for (float& x : many) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) / 16777216.0f - 0.25f;
  }
  same(tensor<float>(many, {100003}));
  std::vector<f16_t> halves;
  std::vector<e5m2_t> eighths;
  for (float x : many) halves.emplace_back(x), eighths.emplace_back(x);
  same(tensor<f16_t>(halves, {100003}));
  same(tensor<e5m2_t>(eighths, {100003}));
  return 0;
}
