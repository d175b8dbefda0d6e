// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/mamba/ssu_shape.h"

#include <algorithm>
#include <vector>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ops::linear_attention {
namespace {
using Ssu = SelectiveStateUpdate;

void check_shape(const char* name, const TensorView& given, const TensorView& form, std::initializer_list<int64_t> want,
                 const char* text) {
  if (form.rank() == static_cast<int>(want.size()) &&
      std::equal(want.begin(), want.end(), form.shape().begin(), form.shape().end()))
    return;
  std::string shape;
  for (int64_t n : want) shape += (shape.empty() ? "" : ", ") + std::to_string(n);
  throw ValueError(str(name, " is ", to_string(given), ", but must be ", text, " with the extents [", shape, "]"));
}
/// [b, nh, dim] (one token), [b, dim] (one head, too), packed [tokens, nh, dim] -> [rows, T, nh, dim].
TensorView tokens(const char* name, const TensorView& t, const TensorView& x, bool packed) {
  FI_CHECK(t.rank() == x.rank(), ValueError, name, " is ", to_string(t), ", but must have as many dimensions as x, ",
           to_string(x));
  if (packed) return t.unsqueeze(0);
  if (t.rank() == 2) return t.unsqueeze(1).unsqueeze(1);
  return t.rank() == 3 ? t.unsqueeze(1) : t;
}
TensorView heads(const TensorView& t, int rank) { return t.rank() == rank - 1 ? t.unsqueeze(0) : t; }
/// Extents of 1 become those of `shape`, with a stride of 0.
TensorView expanded(const TensorView& t, std::initializer_list<int64_t> shape) {
  if (t.rank() != static_cast<int>(shape.size())) return t;
  std::vector<int64_t> sizes(t.shape().begin(), t.shape().end()), strides(t.strides().begin(), t.strides().end());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 1) sizes[i] = shape.begin()[i], strides[i] = 0;
  return TensorView(t.data(), t.dtype(), sizes, strides, t.device());
}
int64_t element(const TensorView& t, int64_t i) {
  return t.dtype() == DType::kI32 ? t.data_as<int32_t>()[i] : t.data_as<int64_t>()[i];
}
}  // namespace

SsuForm ssu_form(const Ssu& a) {
  SsuForm f;
  FI_CHECK(a.state.rank() == 3 || a.state.rank() == 4, ValueError, "state is ", to_string(a.state),
           ", but must be [slots, heads, dim, dstate] or [slots, dim, dstate]");
  f.state = a.state.rank() == 3 ? a.state.unsqueeze(1) : a.state;
  f.slots = f.state.size(0), f.heads = f.state.size(1), f.dim = f.state.size(2), f.dstate = f.state.size(3);
  f.packed = a.cu_seqlens.has_value();
  const int rank = a.x.rank();
  FI_CHECK(f.packed ? rank == 3 : rank >= 2 && rank <= 4, ValueError, "x is ", to_string(a.x), ", but must be ",
           f.packed ? "[tokens, heads, dim] (with cu_seqlens)" : "[batch, heads, dim] or [batch, tokens, heads, dim]");
  f.x = tokens("x", a.x, a.x, f.packed);
  const int64_t rows = f.x.size(0), steps = f.x.size(1);
  check_shape("x", a.x, f.x, {rows, steps, f.heads, f.dim}, "[..., heads, dim] of state");
  f.sequences = f.packed ? a.cu_seqlens->size(0) - 1 : rows;
  f.steps = f.packed ? a.cache_steps : steps;
  const auto like_x = [&](const char* name, const TensorView& t) {
    TensorView v = tokens(name, t, a.x, f.packed);
    if (&t == &a.dt && v.size(3) == 1) v = expanded(v, {v.size(0), v.size(1), v.size(2), f.dim});
    check_shape(name, t, v, {rows, steps, f.heads, f.dim}, "of the shape of x");
    return v;
  };
  f.dt = like_x("dt", a.dt);
  if (a.z) f.z = like_x("z", *a.z);
  if (a.out) f.out = like_x("out", *a.out);
  f.b = tokens("B", a.B, a.x, f.packed), f.c = tokens("C", a.C, a.x, f.packed);
  f.groups = f.b.size(2);
  FI_CHECK(f.groups > 0 && f.heads % f.groups == 0, ValueError, "B has ", f.groups, " groups, which do not divide ",
           f.heads, " heads of state");
  check_shape("B", a.B, f.b, {rows, steps, f.groups, f.dstate}, "[..., groups, dstate] of state");
  check_shape("C", a.C, f.c, {rows, steps, f.groups, f.dstate}, "of the shape of B");
  f.a = expanded(heads(a.A, 3), {f.heads, f.dim, f.dstate}), f.d = expanded(heads(a.D, 2), {f.heads, f.dim});
  check_shape("A", a.A, f.a, {f.heads, f.dim, f.dstate}, "[heads, dim, dstate]");
  check_shape("D", a.D, f.d, {f.heads, f.dim}, "[heads, dim]");
  if (a.dt_bias) {
    f.dt_bias = expanded(heads(*a.dt_bias, 2), {f.heads, f.dim});
    check_shape("dt_bias", *a.dt_bias, f.dt_bias, {f.heads, f.dim}, "[heads, dim]");
  }
  return f;
}

bool ssu_dst_each_token(const Ssu& a) { return a.dst_state_batch_indices && (a.x.rank() == 4 || a.cu_seqlens); }
int64_t ssu_dst(const Ssu& a, int64_t i, int64_t t) {
  const TensorView& dst = *a.dst_state_batch_indices;
  const int64_t slot = element(dst, i * dst.stride(0) + t * dst.stride(1));
  return slot == a.pad_slot_id ? -1 : slot;
}

SsuSequence ssu_sequence(const Ssu& a, const SsuForm& f, int64_t i) {
  SsuSequence s{i, 0, f.steps, i, -1, -1};
  if (f.packed) {
    const auto start = [&](int64_t k) { return element(*a.cu_seqlens, k * a.cu_seqlens->stride(0)); };
    s.row = 0, s.first = start(i), s.tokens = start(i + 1) - s.first;
  }
  if (a.state_batch_indices) {
    const TensorView& t = *a.state_batch_indices;
    int64_t column = 0;
    if (a.num_accepted_tokens)
      column = std::max<int64_t>(element(*a.num_accepted_tokens, i * a.num_accepted_tokens->stride(0)) - 1, 0);
    s.read = element(t, i * t.stride(0) + (t.rank() == 2 ? column * t.stride(1) : 0));
  }
  const bool padded = a.state_batch_indices && s.read == a.pad_slot_id;
  if (padded) s.read = -1;
  if (!a.disable_state_update && !padded) {
    s.write = s.read;
    if (ssu_dst_each_token(a)) {
      s.write = -1;
    } else if (a.dst_state_batch_indices) {
      const TensorView& t = *a.dst_state_batch_indices;
      s.write = element(t, i * t.stride(0));
      if (s.write == a.pad_slot_id) s.write = -1;
    }
  }
  if (a.intermediate_states_buffer && !padded)
    s.cache = a.intermediate_state_indices
                  ? element(*a.intermediate_state_indices, i * a.intermediate_state_indices->stride(0))
                  : s.read;
  return s;
}

}  // namespace flashinfer::ops::linear_attention
