// SPDX-License-Identifier: Apache-2.0
// Values as a flat row of arguments, the fastest way to pass them from Python: one letter of `codes` for each, followed
// by the arguments of that letter.
//
//   v  a self-describing value (None, bool, int, float, str, tensor)           g  a tensor that requires grad
//   b  a tensor [..., item size] of bytes, the name of its element type, does it require grad
//   d  the name of an element type                 D  the name of a device
//   e  an enum: "Class.NAME", str() of the value, is it a number               c  real and imaginary part
//   o  anything: type, repr(), str()               G  a generator: seed, offset
//   [  a list: how many items follow               (  a tuple: its type, how many items follow
//   {  a dict: how many pairs follow
#pragma once
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flashinfer/ffi/tvm/convert.h"

namespace flashinfer::ffi {

/// Reads values off a row of arguments.
class Row {
 public:
  Row(tvm::PackedArgs args, int begin, std::string_view codes) : args_(args), at_(begin), codes_(codes) {}

  op::Value next() {
    switch (code()) {
      case 'v': return from_tvm(take(), false);
      case 'g': return with_grad(from_tvm(take(), false));
      case 'b': return as_bytes();
      case 'd': return dtype();
      case 'D': return device();
      case 'e': {
        std::string name = text(), value = text();
        return op::EnumValue{std::move(name), std::move(value), take().cast<bool>()};
      }
      case 'c': {
        const double re = take().cast<double>();
        return op::Complex{re, take().cast<double>()};
      }
      case 'o': {
        std::string type = text(), repr = text();
        return op::OpaqueValue{std::move(type), std::move(repr), text()};
      }
      case 'G': {
        const auto seed = static_cast<uint64_t>(take().cast<int64_t>());
        return op::Generator(seed, static_cast<uint64_t>(take().cast<int64_t>()));
      }
      case '[': return op::ListValue{items()};
      case '(': {
        std::string type = text();
        return op::TupleValue{items(), std::move(type)};
      }
      case '{': return dict();
      default: throw ValueError(str("record: unknown code in \"", codes_, "\""));
    }
  }

 private:
  char code() {
    FI_CHECK(codes_at_ < codes_.size(), ValueError, "record: \"", codes_, "\" has too few codes");
    return codes_[codes_at_++];
  }
  tvm::AnyView take() {
    FI_CHECK(at_ < args_.size(), ValueError, "record: too few values for \"", codes_, "\"");
    return args_[at_++];
  }
  std::string text() { return std::string(take().cast<tvm::String>()); }

  std::vector<op::Value> items() {
    std::vector<op::Value> out;
    for (int64_t n = take().cast<int64_t>(); n > 0; --n) out.push_back(next());
    return out;
  }
  op::Value dict() {
    op::DictValue d;
    for (int64_t n = take().cast<int64_t>(); n > 0; --n) {
      op::Value key = next();
      d.items.emplace_back(std::move(key), next());
    }
    return d;
  }
  static op::Value with_grad(op::Value v) {
    if (auto* t = std::get_if<op::TensorValue>(&v)) t->requires_grad = true;
    return v;
  }
  op::Value as_bytes() {
    op::Value v = from_tvm(take(), false);
    if (auto* t = std::get_if<op::TensorValue>(&v)) {
      t->bytes_of = text();
      t->requires_grad = take().cast<bool>();
    }
    return v;
  }
  op::Value dtype() {
    std::string name = text();
    if (const auto t = parse_dtype(name)) return *t;
    return op::OpaqueValue{"torch.dtype", name, name};
  }
  op::Value device() {
    std::string name = text(), repr = text();
    const auto d = parse_device(name);
    if (d && to_string(*d) == name) return *d;
    return op::OpaqueValue{"device", std::move(repr), std::move(name)};
  }

  tvm::PackedArgs args_;
  int at_;
  std::string_view codes_;
  size_t codes_at_ = 0;
};

}  // namespace flashinfer::ffi
