// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/check.h"

#include <ostream>

#include "flashinfer/core/layout_error.h"
#include "flashinfer/op/overlap.h"

namespace flashinfer::op {
namespace {

constexpr bool is_output(Role r) {
  return r == Role::kOut || r == Role::kResult || r == Role::kInOut || r == Role::kPagedInOut;
}

/// A tensor in a message: "weight", or "paged_kv_cache[1]" when a field holds several. The text is made only when
/// printed.
struct Label {
  const Field& field;
  int index, count;
};
std::ostream& operator<<(std::ostream& out, const Label& l) {
  out << l.field.name;
  return l.count > 1 ? out << '[' << l.index << ']' : out;
}
std::string where(const Bindings::Entry& e) {
  return e.dim < 0 ? std::string(e.field->name) : str(e.field->name, ".shape[", e.dim, "]");
}
std::string dim_text(const Dim& d) {
  if (d.literal()) return std::to_string(d.add);
  std::string s = d.mul != 1 ? str(d.mul, "*", d.name()) : std::string(d.name());
  if (d.add) s += str(d.add > 0 ? "+" : "", d.add);
  return s;
}

/// The value of a symbol; a symbol not bound by any tensor may be an integer attribute of the same name.
const Bindings::Entry* find_or_attribute(const Op& op, const void* block, Bindings& b, std::string_view symbol) {
  if (const auto* e = b.find(symbol)) return e;
  for (const Field& f : op.fields) {
    if (f.role != Role::kAttr || symbol != f.name) continue;
    const Value v = f.get(block);
    if (const auto* i = v.as<int64_t>()) {
      b.bind(symbol, *i, &f, -1);
      return b.find(symbol);
    }
  }
  return nullptr;
}

void check_extent(const Op& op, const Field& f, const void* block, const Label& who, const TensorView& t, int axis,
                  const Dim& d, Bindings& b) {
  const int64_t n = t.size(axis);
  if (d.literal()) {
    FI_CHECK(n == d.add, ValueError, who, ".shape[", axis, "] is ", n, ", but must be ", d.add);
    return;
  }
  const auto* e = find_or_attribute(op, block, b, d.name());
  if (!e) {
    const int64_t v = (n - d.add) / d.mul;
    FI_CHECK(v >= 0 && v * d.mul + d.add == n, ValueError, who, ".shape[", axis, "] is ", n, ", but must be ",
             dim_text(d), " for some ", d.name(), d.mul == 2 && !d.add ? " (must be even)" : "");
    b.bind(d.name(), v, &f, axis);
    return;
  }
  const int64_t want = e->value * d.mul + d.add;
  if (n == want) return;
  const bool plain = d.mul == 1 && d.add == 0;
  throw ValueError(str(who, ".shape[", axis, "] is ", n, ", but ", dim_text(d), " is ", want, " (",
                       plain ? "" : str(d.name(), " is ", e->value, ", "), "from ", where(*e), ")"));
}

void check_shape(const Op& op, const Field& f, const void* block, const Label& who, const TensorView& t, Bindings& b) {
  const Dims& dims = f.dims;
  if (dims.count < 0) return;
  const int lead = t.rank() - dims.count;
  FI_CHECK(dims.ellipsis ? lead >= 0 : lead == 0, ValueError, who, " has rank ", t.rank(), " (", to_string(t),
           "), but must be [", dims.text, "]");
  if (dims.ellipsis) {
    if (!b.lead_field) {
      b.lead_field = &f;
      b.lead.rank = lead;
      for (int i = 0; i < lead; ++i) b.lead.size[i] = t.size(i);
    } else {
      bool same = b.lead.rank == lead;
      for (int i = 0; same && i < lead; ++i) same = b.lead.size[i] == t.size(i);
      FI_CHECK(same, ValueError, who, " is ", to_string(t), ", but its leading extents must be those of ",
               b.lead_field->name, " (", b.lead.rank, " of them",
               b.lead.rank ? str(", the first is ", b.lead.size[0]) : "", ")");
    }
  }
  for (int i = 0; i < dims.count; ++i) check_extent(op, f, block, who, t, lead + i, dims.dim[i], b);
}

const TensorView* first_tensor(const Field* f, const void* block) {
  const Views v = f && f->tensors ? f->tensors(block) : Views();
  return v.empty() ? nullptr : &v[0];
}

std::optional<DType> dtype_attribute(const Op& op, const Field& f, const void* block) {
  if (!f.dtype_from) return std::nullopt;
  const Field* a = find_field(op, f.dtype_from);
  const Value v = a ? a->get(block) : Value();
  if (const auto* t = v.as<DType>()) return *t;
  return std::nullopt;
}

void check_dtype(const Op& op, const Field& f, const void* block, const Label& who, const TensorView& t) {
  if (f.dtypes.bits)
    FI_CHECK(f.dtypes.has(t.dtype()), ValueError, who, ".dtype is ", name(t.dtype()), ", but must be ",
             to_string(f.dtypes));
  if (const auto want = dtype_attribute(op, f, block)) {
    FI_CHECK(t.dtype() == *want, ValueError, who, ".dtype is ", name(t.dtype()), ", but ", f.dtype_from, " is ",
             name(*want));
    return;
  }
  if (f.dtype && is_output(f.role)) {
    const DType want = f.dtype(block);
    FI_CHECK(t.dtype() == want, ValueError, who, ".dtype is ", name(t.dtype()), ", but must be ", name(want));
  }
  if (!f.same_as) return;
  const TensorView* other = first_tensor(find_field(op, f.same_as), block);
  if (other)
    FI_CHECK(t.dtype() == other->dtype(), ValueError, who, ".dtype is ", name(t.dtype()), ", but ", f.same_as,
             ".dtype is ", name(other->dtype()));
}

void check_layout(const Field& f, const Label& who, const TensorView& t) {
  const int64_t n = t.numel();
  FI_CHECK(t.data() || n == 0, ValueError, who, " is ", to_string(t), ", but its data pointer is null");
  if (n == 0) return;
  if (f.contiguous) FI_CHECK(t.is_contiguous(), LayoutError, who, " must be contiguous, but is ", to_string(t));
  if (!f.any_layout)
    FI_CHECK(t.last_dim_contiguous(), LayoutError, who, ".stride(-1) is ", t.stride(-1),
             ", but the last dimension must be contiguous (innermost stride must be 1)");
  if (is_output(f.role))
    for (int i = 0; i < t.rank(); ++i)
      FI_CHECK(t.size(i) <= 1 || t.stride(i) != 0, ValueError, who, ".stride(", i, ") is 0 over ", t.size(i),
               " elements, but it is written: its elements must not share memory");
}

/// An output must not share memory with any other tensor, except as exactly the input it may alias.
void check_aliasing(const Op& op, const void* block) {
  for (size_t i = 0; i < op.fields.size(); ++i) {
    const Field& f = op.fields[i];
    if (!f.tensors || !is_output(f.role)) continue;
    const Views a = f.tensors(block);
    for (size_t j = 0; !a.empty() && j < op.fields.size(); ++j) {
      const Field& g = op.fields[j];
      if (i == j || !g.tensors || (j < i && is_output(g.role))) continue;
      if (op.is_collective && g.role == Role::kScratch) continue;  // results may be in the memory that ranks share
      const Views c = g.tensors(block);
      for (int x = 0; x < a.size(); ++x)
        for (int y = 0; y < c.size(); ++y) {
          if (!overlap(a[x], c[y])) continue;
          if (f.may_alias && std::string_view(f.may_alias) == g.name && a[x].same_elements(c[y])) continue;
          throw ValueError(str(Label{f, x, a.size()}, " (", to_string(a[x]), ") shares memory with ",
                               Label{g, y, c.size()}, " (", to_string(c[y]), "), but ",
                               f.may_alias && std::string_view(f.may_alias) == g.name
                                   ? "may only be exactly the same view"
                                   : "must not overlap it"));
        }
    }
  }
}

void check_choice(const Field& f, const void* block) {
  const Value v = f.get(block);
  const auto* s = v.as<std::string>();
  if (!s) return;
  std::string_view rest = f.choices;
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    if (rest.substr(0, bar) == *s) return;
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
  }
  std::string names(f.choices);
  for (size_t p; (p = names.find('|')) != std::string::npos;) names.replace(p, 1, ", ");
  throw_error(f.choice_error, str(f.name, " is ", python_repr(*s), ", but must be one of ", names));
}

}  // namespace

void Bindings::bind(std::string_view symbol, int64_t value, const Field* f, int dim) {
  if (count_ == 24) throw InternalError("more than 24 symbols in one schema");
  entry_[count_++] = {symbol, value, f, dim};
}

void check_fields(const Op& op, const void* block, Bindings& b) {
  for (const Field& f : op.fields) {
    if (f.choices) check_choice(f, block);
    if (!f.tensors) {
      if (f.role == Role::kSelf && f.get(block).is_none()) throw ValueError("self is missing");
      continue;
    }
    const Views v = f.tensors(block);
    if (v.empty() && f.required && !f.optional && f.get(block).is_none()) throw ValueError(str(f.name, " is missing"));
    for (int i = 0; i < v.size(); ++i) {
      const Label who{f, i, v.size()};
      check_shape(op, f, block, who, v[i], b);
      check_dtype(op, f, block, who, v[i]);
      check_layout(f, who, v[i]);
      if (f.shape && is_output(f.role)) {
        const Shape want = f.shape(block);
        bool same = want.rank == v[i].rank();
        for (int d = 0; same && d < want.rank; ++d) same = want.size[d] == v[i].size(d);
        FI_CHECK(same, ValueError, who, " is ", to_string(v[i]), ", but must be ",
                 to_string(TensorView(nullptr, v[i].dtype(), want.span())));
      }
    }
  }
}

void check(const Op& op, const void* block, Bindings& b) {
  check_fields(op, block, b);
  check_aliasing(op, block);
}

Shape output_shape(const Op& op, const Field& f, const void* block, const Bindings& b) {
  if (f.shape) return f.shape(block);
  Shape s;
  if (f.dims.count < 0) throw InternalError(str(op.name, ": the schema does not say the shape of ", f.name));
  if (f.dims.ellipsis) s = b.lead;
  Bindings& known = const_cast<Bindings&>(b);
  for (int i = 0; i < f.dims.count; ++i) {
    const Dim& d = f.dims.dim[i];
    const auto* e = d.literal() ? nullptr : find_or_attribute(op, block, known, d.name());
    if (!d.literal() && !e) throw InternalError(str(f.name, " needs ", d.name(), ", which nothing binds"));
    s.size[s.rank++] = d.literal() ? d.add : e->value * d.mul + d.add;
  }
  return s;
}

DType output_dtype(const Op& op, const Field& f, const void* block) {
  if (f.dtype) return f.dtype(block);
  if (const auto t = dtype_attribute(op, f, block)) return *t;
  if (f.same_as)
    if (const TensorView* v = first_tensor(find_field(op, f.same_as), block)) return v->dtype();
  for (int i = 0; i < kNumDTypes; ++i)
    if (f.dtypes.bits == 1u << i) return static_cast<DType>(i);
  throw InternalError(str(op.name, ": the schema does not say the dtype of ", f.name));
}

}  // namespace flashinfer::op
