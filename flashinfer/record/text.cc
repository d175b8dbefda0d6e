// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/text.h"

#include <charconv>
#include <cmath>

#include "flashinfer/core/hex.h"
#include "flashinfer/record/format.h"
#include "flashinfer/record/sink.h"
#include "flashinfer/record/stats.h"

namespace flashinfer::record {
namespace {

using op::Value;

struct Printer {
  std::string& out;
  bool statistics;

  void blanks(int indent) { out.append(static_cast<size_t>(2 * indent), ' '); }

  void extents(std::span<const int64_t> v) {
    out += '(';
    for (size_t i = 0; i < v.size(); ++i) {
      if (i) out += ", ";
      append_integer(out, v[i]);
    }
    out += v.size() == 1 ? ",)" : ")";
  }

  void tensor(const op::TensorValue& t, int indent) {
    out += "Tensor(\n";
    const Extents of(t);
    const auto line = [&](std::string_view label) {
      blanks(indent + 1);
      out += label;
    };
    line("shape="), extents(of.shape()), out += '\n';
    line("stride="), extents(of.strides()), out += '\n';
    line("dtype=torch."), out += of.dtype, out += '\n';
    line("device=");
    if (t.view.device() == kCpu)
      out += "cpu\n";
    else
      out += to_string(t.view.device()) + '\n';
    line(t.requires_grad ? "requires_grad=True\n" : "requires_grad=False\n");
    line(t.view.is_contiguous() ? "is_contiguous=True\n" : "is_contiguous=False\n");
    if (statistics && t.bytes_of.empty()) append_statistics(out, t.view, indent + 1);
    blanks(indent);
    out += ')';
  }

  void sequence(const std::vector<Value>& items, const char* brackets, int indent) {
    out += brackets[0];
    if (items.empty()) {
      out += brackets[1];
      return;
    }
    out += '\n';
    for (size_t i = 0; i < items.size(); ++i) {
      blanks(indent + 1);
      out += '[';
      append_integer(out, static_cast<int64_t>(i));
      out += "]: ";
      value(items[i], indent + 1);  // with its own indent, directly after the label
      out += '\n';
    }
    blanks(indent);
    out += brackets[1];
  }

  /// A tensor of a type that the library does not support: prints the recorded properties.
  void described_tensor(const op::TupleValue& t, int indent) {
    out += "Tensor(\n";
    constexpr const char* kLabels[] = {"shape=",  "stride=",        "dtype=torch.",
                                       "device=", "requires_grad=", "is_contiguous="};
    for (size_t i = 0; i < 6; ++i) {
      blanks(indent + 1);
      const auto* text = t.items[i].as<std::string>();
      out += kLabels[i] + (text ? *text : repr(t.items[i])) + '\n';
    }
    blanks(indent);
    out += ')';
  }

  void tuple(const op::TupleValue& t, int indent) {
    if (t.type == kTypeFp4Tensor) return fp4_tensor(t, indent);
    if (t.type == kTypeTensor && t.items.size() == 6) return described_tensor(t, indent);
    if (t.type == kTypeTorchGenerator && !t.items.empty())
      out += repr(t.items[0]);
    else
      sequence(t.items, "()", indent);
  }

  void dict(const op::DictValue& d, int indent) {
    out += '{';
    if (!d.items.empty()) {
      out += '\n';
      for (const auto& [key, item] : d.items) {
        blanks(indent + 1);
        out += repr(key);
        out += ": ";
        value(item, indent + 1);
        out += '\n';
      }
      blanks(indent);
    }
    out += '}';
  }

  /// data, scale, scale_start_index, original_shape.
  void fp4_tensor(const op::TupleValue& t, int indent) {
    out += "FP4Tensor(\n";
    constexpr const char* kLabels[] = {"data=", "scale=", "scale_start_index=", "original_shape="};
    for (size_t i = 0; i < t.items.size() && i < 4; ++i) {
      if (i == 3 && t.items[i].is_none()) continue;
      blanks(indent + 1);
      out += kLabels[i];
      if (i < 2)
        value(t.items[i], indent + 1);
      else
        out += repr(t.items[i]);
      out += '\n';
    }
    blanks(indent);
    out += ')';
  }

  static std::string repr(const Value& v) {
    if (const auto* d = v.as<Device>()) {
      const std::string text = to_string(*d);
      const size_t colon = text.find(':');
      if (colon == text.npos) return "device(type='" + text + "')";
      return "device(type='" + text.substr(0, colon) + "', index=" + text.substr(colon + 1) + ")";
    }
    if (const auto* o = v.as<op::ObjectValue>()) return object_text(*o);
    return op::python_repr(v);
  }

  void value(const Value& v, int indent) {
    blanks(indent);
    if (v.is_none())
      out += "None";
    else if (const auto* e = v.as<op::EnumValue>())
      out += e->name + " (value=" + e->value + ")";
    else if (const auto* t = v.as<op::TensorValue>())
      tensor(*t, indent);
    else if (const auto* l = v.as<op::ListValue>())
      sequence(l->items, "[]", indent);
    else if (const auto* u = v.as<op::TupleValue>())
      tuple(*u, indent);
    else if (const auto* d = v.as<op::DictValue>())
      dict(*d, indent);
    else if (const auto* b = v.as<bool>())
      out += *b ? "True" : "False";
    else if (const auto* i = v.as<int64_t>())
      append_integer(out, *i);
    else
      out += repr(v);
  }
};

}  // namespace

Extents::Extents(const op::TensorValue& t)
    : dtype(t.bytes_of.empty() ? name(t.view.dtype()) : t.bytes_of),
      rank_(static_cast<size_t>(t.view.rank()) - (t.bytes_of.empty() ? 0 : 1)) {
  const int64_t item = t.bytes_of.empty() ? 1 : t.view.size(-1);
  for (size_t i = 0; i < rank_; ++i) {
    shape_[i] = t.view.shape()[i];
    strides_[i] = t.view.strides()[i] / item;
  }
}

void append_integer(std::string& out, int64_t v) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, v).ptr);
}

void append_fixed6(std::string& out, double v) {
  if (!std::isfinite(v)) {
    out += std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
    return;
  }
  char text[340];
  out.append(text, std::to_chars(text, text + sizeof text, v, std::chars_format::fixed, 6).ptr);
}

std::string object_text(const op::ObjectValue& o) {
  const std::string at = hex(o.object ? reinterpret_cast<uintptr_t>(o.object) : o.id);
  return "<" + (o.object ? std::string("flashinfer") : o.module) + "." + o.class_name + " object at " + at + ">";
}

void append_value(std::string& out, const Value& v, int indent, bool statistics) {
  Printer{out, statistics}.value(v, indent);
}

void append_before(std::string& out, std::string_view name, std::span<const op::Arg> args, bool statistics) {
  Printer printer{out, statistics};
  out += kDoubleRuler;
  out += timestamp_prefix();
  out += "FlashInfer API Call: ";
  out += name;
  out += '\n';
  out += kRuler;
  int64_t positional = 0;
  bool keyword = false, defaults = false;
  for (const op::Arg& a : args) {
    if (a.how != op::Arg::kPositional) continue;
    if (!positional) out += "Positional input arguments:\n";
    out += "  arg[";
    append_integer(out, positional++);
    out += "]:\n";
    printer.value(a.value, 2);
    out += '\n';
  }
  for (const op::Arg& a : args) {
    if (a.how != op::Arg::kKeyword) continue;
    if (!keyword) out += "Keyword input arguments:\n";
    keyword = true;
    out += "  ";
    out += a.name;
    out += "=\n";
    printer.value(a.value, 2);
    out += '\n';
  }
  if (!positional && !keyword) out += "(No explicit arguments)\n";
  for (const op::Arg& a : args) {
    if (a.how != op::Arg::kDefault) continue;
    if (!defaults) out += "Default parameters (not explicitly provided):\n";
    defaults = true;
    out += "  ";
    out += a.name;
    out += "= [DEFAULT]\n";
    if (a.literal) {
      printer.blanks(2);
      out += a.literal;
    } else {
      printer.value(a.value, 2);
    }
    out += '\n';
  }
}

void append_after(std::string& out, const Value& result, bool statistics) {
  out += "Output value:\n";
  append_value(out, result, 1, statistics);
  out += '\n';
  out += kDoubleRuler;
  out += '\n';
}

}  // namespace flashinfer::record
