// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/registry.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/op/owned_block.h"

namespace flashinfer::op {
namespace {
constinit ForkMutex g_added_mutex(ForkLayer::kOp);
std::vector<const Op*>& added() {
  static std::vector<const Op*> v;
  return v;
}
}  // namespace

const Family* family_of(const Op& op) {
  for (const Family& family : families())
    if (std::ranges::find(family.ops, &op) != family.ops.end()) return &family;
  return nullptr;
}

std::vector<const Op*> all_ops() {
  std::vector<const Op*> out;
  for (const Family& family : families()) out.insert(out.end(), family.ops.begin(), family.ops.end());
  std::lock_guard lock(g_added_mutex);
  out.insert(out.end(), added().begin(), added().end());
  return out;
}

const Op* find_op(std::string_view name) {
  for (const Family& family : families())
    for (const Op* op : family.ops)
      if (name == op->name || (op->alias && name == op->alias)) return op;
  std::lock_guard lock(g_added_mutex);
  for (const Op* op : added())
    if (name == op->name) return op;
  return nullptr;
}

Registration::Registration(const Op& op) : op_(&op) {
  FI_CHECK(!find_op(op.name), ValueError, "an op named ", op.name, " is registered already");
  std::lock_guard lock(g_added_mutex);
  added().push_back(op_);
}
Registration::~Registration() {
  std::lock_guard lock(g_added_mutex);
  std::erase(added(), op_);
}

const Field* find_field(const Op& op, std::string_view name) {
  for (const Field& f : op.fields)
    if (name == f.name) return &f;
  return nullptr;
}

Positional positional(const Op& op) {
  Positional p;
  bool open = true;
  for (const Field& f : op.fields) {
    if (f.role == Role::kResult || f.internal) continue;
    if (f.varargs) p.varargs = &f;
    open = open && !f.keyword_only && !f.varargs;
    if (open || f.was_positional) p.fields.push_back(&f);
    p.count += open;
  }
  return p;
}

const void* default_block(const Op& op) {
  static constinit ForkMutex mutex(ForkLayer::kOp);
  static std::map<const Op*, OwnedBlock<>> blocks;
  std::lock_guard lock(mutex);
  return blocks.try_emplace(&op, op.block).first->second.data();
}

bool has_default(const Op& op, const Field& f) {
  if (f.required) return false;
  bool after = false;
  for (const Field& g : op.fields) {
    if (after && g.required && !g.keyword_only && !f.keyword_only) return false;
    after = after || &g == &f;
  }
  return true;
}

std::string default_text(const Op& op, const Field& f) {
  if (!has_default(op, f)) return {};
  if (f.literal) return f.literal;
  return python_repr(f.get(default_block(op)));
}

std::string signature(const Op& op) {
  std::string s = "(";
  bool star = false;
  for (const Field& f : op.fields) {
    if (f.role == Role::kResult || f.internal) continue;
    if (s.size() > 1) s += ", ";
    if (f.varargs) {
      s += str("*", f.name);
      star = true;
      continue;
    }
    if (f.keyword_only && !star) {
      s += f.was_positional ? "*deprecated_positional_args, " : "*, ";
      star = true;
    }
    s += f.name;
    if (has_default(op, f)) s += "=" + default_text(op, f);
  }
  return s + ")";
}

}  // namespace flashinfer::op
