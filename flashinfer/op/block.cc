// SPDX-License-Identifier: Apache-2.0
// Blocks made from values: calls by name, for replay, cases and other languages.
#include <algorithm>
#include <bitset>

#include "flashinfer/core/warn.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/collective.h"

namespace flashinfer::op {

void Block::set(std::string_view name, const Value& v) {
  const Field* f = find_field(*op_, name);
  FI_CHECK(f, TypeError, op_->name, "() got an unexpected keyword argument '", name, "'");
  try {
    f->set(data(), v, *f);
  } catch (Error& e) {
    e.set_op(op_->name);
    throw;
  }
  keep_.push_back(v);
}

void Block::bind(const Passed& passed) try {
  std::vector<const Field*> order;
  for (const Field& f : op_->fields)
    if (f.role != Role::kResult && !f.internal) order.push_back(&f);
  const Positional by_position = positional(*op_);
  const size_t n = passed.positional.size(), limit = by_position.fields.size(), old = limit - by_position.count;
  FI_CHECK(by_position.varargs || n <= limit, TypeError, op_->name, "() takes ", by_position.count,
           " positional arguments", old ? str(" and ", old, " deprecated ones") : "", " but ", n, " were given");
  std::vector<const Field*> given;
  if (n > limit)
    set(by_position.varargs->name,
        TupleValue{{passed.positional.begin() + static_cast<ptrdiff_t>(limit), passed.positional.end()}});
  for (size_t i = 0; i < std::min(n, limit); ++i) {
    set(by_position.fields[i]->name, passed.positional[i]);
    given.push_back(by_position.fields[i]);
  }
  for (const auto& [name, value] : passed.keyword) {
    const Field* f = find_field(*op_, name);
    FI_CHECK(f, TypeError, op_->name, "() got an unexpected keyword argument '", name, "'");
    FI_CHECK(std::find(given.begin(), given.end(), f) == given.end(), TypeError, op_->name,
             "() got multiple values for argument '", name, "'");
    set(name, value);
    given.push_back(f);
  }
  std::string missing;
  for (const Field* f : order)
    if (f->required && std::find(given.begin(), given.end(), f) == given.end())
      missing += str(missing.empty() ? "" : ", ", "'", f->name, "'");
  FI_CHECK(missing.empty(), TypeError, op_->name, "() missing required arguments: ", missing);
  if (old && n > by_position.count)
    deprecated(str(op_->name, "() takes '", by_position.fields[by_position.count]->name,
                   "' and what follows it by name; by position they are deprecated"));
} catch (const std::exception& e) {
  if (op_->is_collective) detail::abandon(passed, e);
  throw;
}

namespace {
/// A returned view of memory the caller passed keeps the caller's owner.
void restore_owner(Value& result, const Passed& passed) {
  if (auto* tuple = std::get_if<TupleValue>(static_cast<Value::Base*>(&result)))
    for (Value& x : tuple->items) restore_owner(x, passed);
  auto* t = std::get_if<TensorValue>(static_cast<Value::Base*>(&result));
  if (!t || t->owner) return;
  auto look = [&](const Value& v) {
    const auto* p = v.as<TensorValue>();
    if (p && p->view.data() == t->view.data() && p->owner) t->owner = p->owner;
  };
  for (const auto& v : passed.positional) look(v);
  for (const auto& [n, v] : passed.keyword) look(v);
}
}  // namespace

Value call_values(const Op& op, const Passed& passed) {
  Block block(op);
  block.bind(passed);
  Value v = run(op, block.data(), &passed).value();
  restore_owner(v, passed);
  return v;
}

}  // namespace flashinfer::op
