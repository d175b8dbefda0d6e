// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ffi/call.h"

#include <algorithm>
#include <numeric>

#include "flashinfer/op/registry.h"

namespace flashinfer::ffi {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const op::Op& op_named(std::string_view name) {
  if (const op::Op* op = op::find_op(name)) return *op;
  const char* closest = "";
  size_t distance = name.size();
  for (const op::Op* op : op::all_ops())
    if (const size_t d = edit_distance(name, op->name); d < distance) {
      distance = d;
      closest = op->name;
    }
  throw ValueError(str("there is no op '", name, "'", *closest ? str("; did you mean '", closest, "'?") : ""));
}

op::Value self_value(op::Object& object) {
  return op::ObjectValue{&object, object.class_name, object.module, object.id};
}

std::unique_ptr<op::Object> make_object(std::string_view class_name, op::Passed passed) {
  const op::Op* init = op::find_op(std::string(class_name) + ".__init__");
  FI_CHECK(init && init->state, ValueError, "there is no class '", class_name, "'");
  auto object = std::make_unique<op::Object>(op::intern_class(std::string(class_name)), init->module, *init->state);
  passed.positional.insert(passed.positional.begin(), self_value(*object));
  op::call_values(*init, passed);
  return object;
}

}  // namespace flashinfer::ffi
