// SPDX-License-Identifier: Apache-2.0
// A Value is any argument or result of a call as the log, the recorder, the replayer and other languages see it: a
// Python-like value, with tensors as views.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// Seed and offset of the counter-based random numbers; copies share the state, as torch.Generator does.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0, uint64_t offset = 0) : state_(std::make_shared<State>(seed, offset)) {}
  uint64_t seed() const { return state_->seed; }
  uint64_t offset() const { return state_->offset.load(std::memory_order_relaxed); }
  /// Reserves `n` numbers, rounded up to a multiple of 4 (a Philox counter gives 4); returns the offset after them.
  uint64_t advance(uint64_t n) {
    const uint64_t step = round_up(n, 4);
    return state_->offset.fetch_add(step, std::memory_order_relaxed) + step;
  }

 private:
  struct State {
    State(uint64_t s, uint64_t o) : seed(s), offset(o) {}
    uint64_t seed;
    std::atomic<uint64_t> offset;
  };
  std::shared_ptr<State> state_;
};

struct Object;  // object.h
struct Value;

struct TensorValue {
  TensorView view;
  std::shared_ptr<void> owner;  // may be null: the caller of the op keeps the memory alive
  bool requires_grad = false;
  /// Set for an element type that this library does not support ("complex64"): the view is [..., bytes of an element]
  /// u8.
  std::string bytes_of{};
};
struct EnumValue {
  std::string name;   // "Class.NAME"
  std::string value;  // str() of the value
  bool numeric = true;
  friend bool operator==(const EnumValue&, const EnumValue&) = default;
};
struct ObjectValue {
  Object* object = nullptr;  // an object of ours, or null for a foreign one
  std::string class_name;
  std::string module;
  uint64_t id = 0;
};
/// Anything else: only its class and texts are available.
struct OpaqueValue {
  std::string type;
  std::string repr;
  std::string str{};  // empty: as repr
};
struct ListValue {
  std::vector<Value> items;
};
struct TupleValue {
  std::vector<Value> items;
  std::string type = "tuple";  // or the class of a named tuple
};
struct DictValue {
  std::vector<std::pair<Value, Value>> items;
};
struct Complex {
  double re, im;
};

/// None is std::monostate.
struct Value : std::variant<std::monostate, bool, int64_t, double, std::string, DType, Device, TensorValue, EnumValue,
                            Generator, ObjectValue, ListValue, TupleValue, DictValue, OpaqueValue, Complex> {
  using Base = std::variant<std::monostate, bool, int64_t, double, std::string, DType, Device, TensorValue, EnumValue,
                            Generator, ObjectValue, ListValue, TupleValue, DictValue, OpaqueValue, Complex>;
  using Base::Base;
  Value() = default;
  Value(int v) : Base(static_cast<int64_t>(v)) {}
  Value(const char* s) : Base(std::string(s)) {}
  Value(const TensorView& v) : Base(TensorValue{v, nullptr, false}) {}
  Value(const Tensor& t) : Base(TensorValue{t.view(), t.owner(), false}) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(*this); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(static_cast<const Base*>(this));
  }
  const TensorView* tensor() const {
    const auto* t = as<TensorValue>();
    return t ? &t->view : nullptr;
  }
};

/// The elements of a list or tuple; null for anything else.
const std::vector<Value>* sequence_items(const Value& v);
/// "int", "Tensor", "NoneType", ...: Python's name of the value's type, for messages.
std::string type_name(const Value& v);
/// The text of Python's str(): `None`, `True`, `3`, `1e-05`, `torch.bfloat16`, `cpu`; strings with repr() (quotes).
/// Lists and tensors in one line (messages, signatures); the log has its own layout (record/).
std::string python_repr(const Value& v);
/// Python's repr() of a float: shortest text that reads back the same, `1e-06`, `1.0`, `inf`, `nan`.
std::string python_repr(double v);
std::string python_repr(const std::string& v);
/// Equal in type and value; tensors never (identity of memory is not equality of content).
bool same_value(const Value& a, const Value& b);

/// K and V of a paged cache, either one stacked tensor [pages, 2, ...] or a pair.
struct PagedKv {
  PagedKv() = default;
  PagedKv(const TensorView& stacked) : first(stacked), stacked(true) {}
  PagedKv(const Tensor& stacked) : first(stacked.view()), stacked(true) {}
  PagedKv(Tensor&&) = delete;
  PagedKv(const TensorView& k, const TensorView& v) : first(k), second(v) {}
  TensorView first;   // the stacked tensor, or K
  TensorView second;  // V; undefined when stacked
  bool stacked = false;
};

/// A number for the whole batch or a tensor with one per row (`top_k`, `temperature`, `seed`).
struct ScalarOrTensor {
  ScalarOrTensor() = default;
  ScalarOrTensor(int v) : value(static_cast<int64_t>(v)) {}
  ScalarOrTensor(int64_t v) : value(v) {}
  ScalarOrTensor(double v) : value(v) {}
  ScalarOrTensor(const TensorView& v) : value(v) {}
  ScalarOrTensor(const Tensor& t) : value(t.view()) {}
  ScalarOrTensor(Tensor&&) = delete;
  const TensorView* tensor() const { return std::get_if<TensorView>(&value); }
  /// The scalar as a double or integer; 0 when it is a tensor.
  double number() const {
    if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
    const auto* d = std::get_if<double>(&value);
    return d ? *d : 0.0;
  }
  std::variant<int64_t, double, TensorView> value = int64_t{0};
};

}  // namespace flashinfer::op

#pragma GCC visibility pop
