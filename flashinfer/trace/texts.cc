// SPDX-License-Identifier: Apache-2.0
// The Python texts of a definition. Each runs on its own: it imports what it needs.
#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/trace/definition.h"

namespace flashinfer::trace {
namespace {

constexpr std::string_view kCheck = R"(import torch


def check(reference_outputs, actual_outputs, rtol=RTOL, atol=ATOL):
    """Whether the outputs agree: tensors within the tolerances (None: those of their element type), integers exactly."""
    def flat(x):
        if isinstance(x, dict):
            x = list(x.values())
        return [y for part in x for y in flat(part)] if isinstance(x, (list, tuple)) else [x]

    def agree(a, b):
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor) and a == b
        if a.shape != b.shape:
            return False
        if not a.is_floating_point() and not b.is_floating_point():
            return torch.equal(a.long(), b.long())
        bound = max(tolerances.get(str(t.dtype).split(".")[-1], 0.1) for t in (a, b))
        return torch.allclose(b.double(), a.double(), rtol=bound if rtol is None else rtol,
                              atol=bound if atol is None else atol, equal_nan=True)

    tolerances = {"float64": 1e-7, "float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}
    expected, actual = flat(reference_outputs), flat(actual_outputs)
    return len(expected) == len(actual) and all(agree(a, b) for a, b in zip(expected, actual))
)";

std::string number(double v) { return v < 0 ? "None" : op::python_repr(v); }

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool is_method(const Template& t) { return t.op && std::string_view(t.op->name).find('.') != std::string_view::npos; }

using Keys = std::vector<std::pair<std::string, std::string>>;  // input key, argument

/// "{'input': hidden_states, 'paged_kv_cache': (k_cache, v_cache)}".
std::string arguments(const Template& t, const Keys& keys) {
  Keys parts;
  for (const auto& [key, param] : keys) {
    const auto item = std::ranges::find(t.inputs, key, &Item::key);
    const auto known = std::ranges::find(parts, param, &std::pair<std::string, std::string>::first);
    if (item != t.inputs.end() && item->element >= 0) {
      if (known != parts.end())
        known->second.insert(known->second.size() - 1, key + ", ");
      else
        parts.emplace_back(param, "(" + key + ", )");
    } else {
      parts.emplace_back(param, key);
    }
  }
  std::string s;
  for (const auto& [param, value] : parts)
    s += (s.empty() ? "" : ", ") + op::python_repr(param) + ": " +
         (value.ends_with(", )") ? value.substr(0, value.size() - 3) + ")" : value);
  return "{" + s + "}";
}

/// The inputs that the op changes and does not return, in the order of the outputs; empty when it returns its outputs.
std::string changed_in_place(const Template& t, const Keys& keys) {
  std::vector<std::string> changed;
  for (const op::Field& f : t.op->fields) {
    const bool out = f.role == op::Role::kOut || f.role == op::Role::kResult;
    if (out && !f.not_returned) return {};
    if (out || f.role == op::Role::kInOut || f.role == op::Role::kPagedInOut) changed.push_back(f.name);
  }
  std::string written;
  for (size_t i = 0; i < t.outputs.size(); ++i) {
    const Item& o = t.outputs[i];
    std::string param = o.param.empty() ? o.key : o.param;
    if (std::ranges::count(changed, param) == 0 && i < changed.size()) param = changed[i];
    const auto in = std::ranges::find(keys, param, &std::pair<std::string, std::string>::second);
    if (in == keys.end()) return {};
    written += (written.empty() ? "" : ", ") + in->first;
  }
  return written;
}

/// An expression of an extent in terms of the inputs; empty when none has it.
std::string extent(const std::string& axis, const Json& definition) {
  if (const Json& axes = definition["axes"]; axes.contains(axis) && axes[axis].contains("value"))
    return axes[axis]["value"].dump();
  for (const auto& [key, input] : definition["inputs"].items())
    if (!input["shape"].is_null())
      for (size_t i = 0; i < input["shape"].size(); ++i)
        if (input["shape"][i] == axis) return str(key, ".shape[", i, "]");
  return {};
}

/// Arguments that the call has and the definition does not, as ", 'name': value": plain values that differ from their
/// defaults, None where the op asks for it, and memory for results and workspaces.
std::string other_arguments(const Template& t, const Json& definition, const Facts& facts, const Keys& keys) {
  const auto is_tensor = [&](const auto& key) { return !definition["inputs"][key.first]["shape"].is_null(); };
  const auto like = std::ranges::find_if(keys, is_tensor);
  std::string s;
  for (const op::Field& f : t.op->fields) {
    if (f.internal || f.role == op::Role::kResult || f.role == op::Role::kSelf) continue;
    if (std::ranges::count(keys, f.name, &std::pair<std::string, std::string>::second)) continue;
    const Fact* fact = find(facts, f.name);
    std::string value = f.required ? "None" : "";
    if (fact && fact->is_tensor() && f.required && like != keys.end()) {
      std::string shape;
      for (const Item& o : t.outputs)
        if ((o.key == f.name || o.param == f.name) && definition["outputs"].contains(o.key))
          for (const auto& axis : definition["outputs"][o.key]["shape"])
            if (std::string n = extent(axis, definition); !n.empty()) shape += n + ", ";
      if (std::ranges::count(shape, ',') != static_cast<int>(fact->shape.size())) {
        shape.clear();
        for (const int64_t n : fact->shape) shape += str(n, ", ");
      }
      value = str("torch.zeros((", shape, "), dtype=torch.", fact->text, ", device=", like->first, ".device)");
    } else if (fact && !fact->is_tensor() && fact->kind != Fact::kSequence &&
               fact_of(f.get(op::default_block(*t.op))).str() != fact->str()) {
      value = fact->kind == Fact::kNumber ? fact->str() : op::python_repr(fact->text);
    }
    if (!value.empty()) s += str(", ", op::python_repr(std::string(f.name)), ": ", value);
  }
  return s;
}

/// The returned values that are the definition's outputs, in its order.
std::string selected_results(const Template& t, const Json& definition, const Keys& keys) {
  std::vector<std::string> returned;
  for (const op::Field& f : t.op->fields)
    if ((f.role == op::Role::kOut || f.role == op::Role::kResult) && !f.not_returned && f.tensors)
      returned.push_back(f.name);
  std::string s;
  size_t next = 0, count = 0;
  for (const Item& o : t.outputs) {
    std::string key = o.key;
    while (definition["inputs"].contains(key)) key += "_out";
    if (!definition["outputs"].contains(key)) continue;
    const auto input = std::ranges::find(keys, o.param, &std::pair<std::string, std::string>::second);
    const auto named = std::ranges::find(returned, o.param.empty() ? o.key : o.param);
    if (named != returned.end()) next = static_cast<size_t>(named - returned.begin());
    const std::string name = o.param.empty() ? o.key : o.param;
    std::string value = str("results[", next, "]");
    if (named != returned.end() || (input == keys.end() && !op::find_field(*t.op, name)))
      ++next;
    else
      value = input != keys.end() ? input->first : str("arguments[", op::python_repr(name), "]");
    s += (s.empty() ? "" : ", ") + value;
    ++count;
  }
  return count == 1 ? s : "(" + s + ")";
}

/// The body of a function that calls the op itself. `definition` and `facts`: of a call, in strict mode.
std::string library_call(const Template& t, const Keys& keys, const Json* definition = nullptr,
                         const Facts* facts = nullptr) {
  std::string body = str("    from ", t.op->module, " import ", t.op->name, " as function\n\n");
  const std::string written = changed_in_place(t, keys);
  const std::string more = definition ? other_arguments(t, *definition, *facts, keys) : std::string();
  if (more.find("torch.") != more.npos) body = "    import torch\n" + body;
  body +=
      str("    arguments = {name: value for name, value in ", arguments(t, keys), ".items() if value is not None}\n");
  if (!more.empty()) body += str("    arguments |= {", more.substr(2), "}\n");
  const std::string call = "function(**arguments)";
  if (written.empty() && definition)
    return body + "    results = " + call +
           "\n    results = results if isinstance(results, (tuple, list)) else (results,)\n    return " +
           selected_results(t, *definition, keys) + "\n";
  if (written.empty()) return body + "    return " + call + "\n";
  return body + "    " + call + "\n    return " + written + "\n";  // what it changes in place
}

}  // namespace

std::string check_text(const Template& t) {
  const op::Tolerance tolerance = t.op ? t.op->tolerance : op::Tolerance{};
  return replaced(replaced(std::string(kCheck), "RTOL", number(tolerance.rtol)), "ATOL", number(tolerance.atol));
}

std::string reference_text(const Template& t) {
  if (!t.reference.empty() || !t.op || is_method(t)) return t.reference;
  Keys keys;
  std::string parameters;
  bool optional = false;
  for (const Item& item : t.inputs) {
    optional |= item.optional;
    parameters += (parameters.empty() ? "" : ", ") + item.key + (optional ? "=None" : "");
    keys.emplace_back(item.key, item.param);
  }
  return "def reference(" + parameters + "):\n" + library_call(t, keys);
}

std::string run_text(const Template& t, const Json& definition, const Facts& facts, const Keys& inputs) {
  std::string parameters, passed;
  for (const auto& [key, param] : inputs) {
    parameters += (parameters.empty() ? "" : ", ") + key;
    passed += (passed.empty() ? "" : ", ") + key + "=" + key;
    const auto item = std::ranges::find(t.inputs, key, &Item::key);
    if (item != t.inputs.end() && item->paged && is_hnd(facts)) passed += ".transpose(1, 2)";  // references have NHD
  }
  const std::string head = "def run(" + parameters + "):\n";
  if (t.reference.empty())
    return t.op && !is_method(t) ? head + library_call(t, inputs, &definition, &facts) : std::string();
  return t.reference + "\n\n" + head + "    return reference(" + passed + ")\n";
}

std::string init_text(const Template& t, const Json& definition) {
  if (!t.op || is_method(t)) return {};
  std::string constants, variables, derived, values;
  std::vector<std::string> bound;
  Keys keys;
  for (const Item& item : t.inputs) {
    if (item.optional || !definition["inputs"].contains(item.key)) continue;
    const Json& entry = definition["inputs"][item.key];
    const std::string dtype = entry["dtype"];
    std::string value;
    if (entry["shape"].is_null()) {
      if (dtype != "float32" && dtype != "int32") return {};
      value = definition["axes"].contains(item.key) ? item.key : dtype == "int32" ? "1" : "1.0";
    } else {
      std::string shape;
      for (const auto& axis : entry["shape"]) {
        const auto name = axis.get<std::string>();
        if (!definition["axes"].contains(name) && name.find_first_not_of("0123456789") != name.npos) return {};
        shape += name + ", ";
        bound.push_back(name);
      }
      const bool narrow = dtype.starts_with("float8") && dtype != "float8_e8m0fnu";
      if (dtype == "unknown" || dtype.starts_with("float4")) return {};
      if (dtype == "float32" || dtype == "float16" || dtype == "bfloat16" || narrow)
        value = str("torch.randn((", shape, "), generator=generator).to(device, torch.", dtype, ")");
      else if (dtype == "float8_e8m0fnu")
        value = str("torch.full((", shape, "), 127, dtype=torch.uint8, device=device).view(torch.float8_e8m0fnu)");
      else
        value = str("torch.zeros((", shape, "), dtype=torch.", dtype, ", device=device)");
    }
    values += str("    ", item.key, " = ", value, "\n");
    keys.emplace_back(item.key, item.param);
  }
  for (const auto& [name, axis] : definition["axes"].items()) {
    const bool known = std::ranges::count(bound, name) > 0;
    if (axis["type"] == "const")
      constants += str(", ", name, "=", axis.contains("value") ? axis["value"].dump() : "0");
    else
      (known ? variables : derived) += str(", ", name, known ? "" : "=0");
  }
  const std::string parameters = variables + constants + derived;
  return str(
      "import torch\n\n\ndef init(*", parameters,
      ", device=\"cuda\" if torch.cuda.is_available() else \"cpu\", seed=0):\n",
      "    \"\"\"Arguments of a call of these extents.\"\"\"\n    generator = torch.Generator().manual_seed(seed)\n",
      values, "    return ", arguments(t, keys), "\n");
}

}  // namespace flashinfer::trace
