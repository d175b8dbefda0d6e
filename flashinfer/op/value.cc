// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/value.h"

#include <bit>
#include <charconv>
#include <cmath>
#include "flashinfer/core/hex.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/op/object.h"

namespace flashinfer::op {

std::string python_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  char buf[40];
  const auto end = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::scientific).ptr;
  const std::string text(buf, end);  // "-1.25e-07": shortest digits that read back the same
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  const bool negative = text[0] == '-';
  std::string digits;
  for (char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  std::string out = negative ? "-" : "";
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {  // Python's repr switches to exponents there
    out += digits[0];
    if (n > 1) out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    const int a = std::abs(exponent);
    return out + (a < 10 ? "0" : "") + std::to_string(a);
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent + 1)) + "." +
         digits.substr(static_cast<size_t>(exponent + 1));
}

std::string python_repr(const std::string& s) {
  const bool use_double = s.find('\'') != std::string::npos && s.find('"') == std::string::npos;
  const char quote = use_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < s.size();) {
    const Character c = character_at(s, i);
    if (c.code == static_cast<unsigned char>(quote) || c.code == '\\') out += '\\';
    out += c.valid && is_printable(c.code) ? s.substr(i, c.bytes) : escaped(c.code);
    i += c.bytes;
  }
  return out + quote;
}

namespace {
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

std::string join(const std::vector<Value>& items) {
  std::string s;
  for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + python_repr(items[i]);
  return s;
}
}  // namespace

const std::vector<Value>* sequence_items(const Value& v) {
  if (const auto* l = v.as<ListValue>()) return &l->items;
  if (const auto* t = v.as<TupleValue>()) return &t->items;
  return nullptr;
}

std::string type_name(const Value& v) {
  return std::visit(
      Overload{
          [](std::monostate) -> std::string { return "NoneType"; }, [](bool) -> std::string { return "bool"; },
          [](int64_t) -> std::string { return "int"; }, [](double) -> std::string { return "float"; },
          [](const std::string&) -> std::string { return "str"; }, [](DType) -> std::string { return "dtype"; },
          [](Device) -> std::string { return "device"; }, [](const TensorValue&) -> std::string { return "Tensor"; },
          [](const EnumValue& e) { return e.name.substr(0, e.name.find('.')); },
          [](const Generator&) -> std::string { return "Generator"; },
          [](const ObjectValue& o) { return o.class_name; }, [](const ListValue&) -> std::string { return "list"; },
          [](const TupleValue& t) { return t.type; }, [](const DictValue&) -> std::string { return "dict"; },
          [](const OpaqueValue& o) { return o.type; }, [](const Complex&) -> std::string { return "complex"; }},
      static_cast<const Value::Base&>(v));
}

std::string python_repr(const Value& v) {
  return std::visit(
      Overload{
          [](std::monostate) -> std::string { return "None"; },
          [](bool b) -> std::string { return b ? "True" : "False"; }, [](int64_t i) { return std::to_string(i); },
          [](double d) { return python_repr(d); }, [](const std::string& s) { return python_repr(s); },
          [](DType t) { return "torch." + std::string(name(t)); }, [](Device d) { return to_string(d); },
          [](const TensorValue& t) { return "Tensor(" + to_string(t.view) + ")"; },
          [](const EnumValue& e) { return "<" + e.name + ": " + (e.numeric ? e.value : python_repr(e.value)) + ">"; },
          [](const Generator& g) { return str("Generator(seed=", g.seed(), ", offset=", g.offset(), ")"); },
          [](const ObjectValue& o) { return "<" + o.module + "." + o.class_name + " object at " + hex(o.id) + ">"; },
          [](const ListValue& l) { return "[" + join(l.items) + "]"; },
          [](const TupleValue& t) { return "(" + join(t.items) + (t.items.size() == 1 ? ",)" : ")"); },
          [](const DictValue& d) {
            std::string s = "{";
            for (size_t i = 0; i < d.items.size(); ++i)
              s += (i ? ", " : "") + python_repr(d.items[i].first) + ": " + python_repr(d.items[i].second);
            return s + "}";
          },
          [](const OpaqueValue& o) { return o.repr; },
          [](const Complex& c) {
            auto part = [](double x) {  // complex parts drop the ".0"
              std::string s = python_repr(x);
              return s.size() > 2 && s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
            };
            if (c.re == 0 && !std::signbit(c.re)) return part(c.im) + "j";
            const std::string im = part(c.im);
            return "(" + part(c.re) + (im[0] == '-' ? "" : "+") + im + "j)";
          }},
      static_cast<const Value::Base&>(v));
}

bool same_value(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (a.tensor() || a.as<ListValue>() || a.as<TupleValue>() || a.as<DictValue>() || a.as<Generator>()) return false;
  if (const auto* x = a.as<double>())  // NaN is the same value as NaN, and -0 another than 0
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*b.as<double>());
  return python_repr(a) == python_repr(b);
}

}  // namespace flashinfer::op
