// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/api/sage.h"

#include <tuple>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::attention {
namespace {

using R = TrtllmRaggedDeepseek;
constexpr DTypeSet kCodes = op::fp8 | DType::kI8;

/// Item `i` of one of the tuples of four (query, key, probabilities, value).
const op::Value* item(const char* name, const op::Value& v, size_t i) {
  const auto* items = op::sequence_items(v);
  if (!items) {
    FI_CHECK(v.is_none(), TypeError, name, " must be a tuple of four, but is ", op::type_name(v));
    return nullptr;
  }
  FI_CHECK(items->size() == 4, ValueError, name, " has ", items->size(),
           " items, but must have four: of query, key, probabilities and value");
  return (*items)[i].is_none() ? nullptr : &(*items)[i];
}
const TensorView* scales_of(const R& a, size_t i) {
  const op::Value* v = item("sage_attn_sfs", a.sage_attn_sfs, i);
  FI_CHECK(!v || v->tensor(), TypeError, "sage_attn_sfs[", i, "] must be a tensor or None, but is ",
           v ? op::type_name(*v) : "");
  return v ? v->tensor() : nullptr;
}
int64_t block_of(const R& a, size_t i) {
  const op::Value* v = item("num_elts_per_sage_attn_blk", a.num_elts_per_sage_attn_blk, i);
  FI_CHECK(!v || v->as<int64_t>(), TypeError, "num_elts_per_sage_attn_blk[", i, "] must be an int, but is ",
           v ? op::type_name(*v) : "");
  return v ? *v->as<int64_t>() : 0;
}
bool has_scales(const R& a) { return scales_of(a, 0) || scales_of(a, 1) || scales_of(a, 3); }
bool is_scaled(const R& a) { return has_scales(a) || a.query.dtype() == DType::kI8 || a.key.dtype() == DType::kI8; }

TensorView of_type(const TensorView& t, DType type) {
  return TensorView(t.data(), type, t.shape(), t.strides(), t.device());
}

/// Scales [heads, blocks of tokens], counted over all tokens or anew in each request.
void check_token_scales(const char* name, const R& a, size_t i, const TensorView& x, const TensorView& cum) {
  const TensorView* s = scales_of(a, i);
  if (!s) return;
  const int64_t block = block_of(a, i), requests = cum.size(0) - 1;
  FI_CHECK(block >= 1, ValueError, "num_elts_per_sage_attn_blk[", i, "] is ", block,
           ", but must be the number of tokens of ", name, " that share a scale");
  const int64_t columns = ceil_div(x.size(0), block);
  FI_CHECK(s->dtype() == DType::kF32 && s->rank() == 2 && s->size(0) == x.size(1) &&
               (s->size(1) == columns || s->size(1) == columns + requests - 1),
           ValueError, "sage_attn_sfs[", i, "] is ", to_string(*s), ", but must be float32[", x.size(1), ", ", columns,
           "] (heads, blocks of ", block, " tokens of ", name, "), or [.., ", columns + requests - 1,
           "] where no block holds tokens of two requests");
}

/// One row in f32.
void load_row(const TensorView& x, int64_t at, float* to, int64_t n) {
  const auto from = [&]<class T>(const T* row) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(row[at + i]);
  };
  switch (x.dtype()) {
    case DType::kI8: return from(x.data_as<int8_t>());
    case DType::kF8E4M3: return from(x.data_as<e4m3_t>());
    case DType::kF8E5M2: return from(x.data_as<e5m2_t>());
    case DType::kF16: return from(x.data_as<f16_t>());
    case DType::kBF16: return from(x.data_as<bf16_t>());
    default: return from(x.data_as<float>());
  }
}
template <class T>
void store_row(const float* from, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

}  // namespace

void check_sage(const R& a) {
  throw_if_given("sage_attn_sfs[2]", scales_of(a, 2) != nullptr, "probabilities are f32 here");
  throw_if_given("num_elts_per_sage_attn_blk[2]", block_of(a, 2) != 0, "probabilities are f32 here");
  FI_CHECK((a.query.dtype() == DType::kI8) == (a.key.dtype() == DType::kI8), ValueError, "query.dtype is ",
           name(a.query.dtype()), ", but key.dtype is ", name(a.key.dtype()), ": both must be int8, or none");
  FI_CHECK(a.query.dtype() != DType::kI8 || (scales_of(a, 0) && scales_of(a, 1)), ValueError,
           "sage_attn_sfs is missing scales of query and key, which are int8");
  for (const auto& [i, name, t] : {std::tuple(0, "query", &a.query), std::tuple(1, "key", &a.key)})
    FI_CHECK(!scales_of(a, static_cast<size_t>(i)) || kCodes.has(t->dtype()), ValueError, "sage_attn_sfs[", i,
             "] belongs to 8-bit codes, but ", name, ".dtype is ", flashinfer::name(t->dtype()));
  FI_CHECK(a.value.dtype() == a.key.dtype() || kCodes.has(a.key.dtype()) || op::fp8.has(a.value.dtype()), ValueError,
           "value.dtype is ", name(a.value.dtype()), ", but key.dtype is ", name(a.key.dtype()));
  check_token_scales("query", a, 0, a.query, a.cum_seq_lens_q);
  check_token_scales("key", a, 1, a.key, a.cum_seq_lens_kv);
  const TensorView* s = scales_of(a, 3);
  FI_CHECK(!s || (s->dtype() == DType::kF32 && s->rank() == 2 && s->size(0) == a.value.size(1) &&
                  s->size(1) == a.value.size(2) && block_of(a, 3) == 1),
           ValueError, "sage_attn_sfs[3] is ", s ? to_string(*s) : "", " with num_elts_per_sage_attn_blk[3] of ",
           block_of(a, 3), ", but must be float32[", a.value.size(1), ", ", a.value.size(2),
           "] (heads, channels of value) with 1");
}

bool is_multiplied(const R& a) { return !is_scaled(a) && a.value.dtype() == a.key.dtype(); }

R with_multiplied_types(const R& a) {
  R wide = a;
  if (is_scaled(a)) {
    wide.query = of_type(a.query, DType::kF32), wide.key = of_type(a.key, DType::kF32);
    wide.value = of_type(a.value, DType::kF32);
  } else {
    wide.value = of_type(a.value, a.key.dtype());
  }
  return wide;
}

int64_t Dequantized::Operand::column(int64_t token) const {
  const int64_t requests = cum->size(0) - 1;
  if (scales->size(1) == ceil_div(from.size(0), block)) return token / block;
  int64_t b = 0;
  while (b + 1 < requests && op::index_at(*cum, b + 1) <= token) ++b;
  const int64_t first = op::index_at(*cum, b);
  return first / block + b + (token - first) / block;
}

Dequantized::Dequantized(const R& a)
    : call(with_multiplied_types(a)),
      operands_{{a.query, {}, scales_of(call, 0), &call.cum_seq_lens_q, block_of(call, 0)},
                {a.key, {}, scales_of(call, 1), &call.cum_seq_lens_kv, block_of(call, 1)},
                {a.value, {}, scales_of(call, 3), nullptr, 0}} {
  TensorView* const used[] = {&call.query, &call.key, &call.value};
  for (int i = 0; i < 3; ++i) {
    Operand& x = operands_[i];
    if (x.from.dtype() == used[i]->dtype() && !x.scales) continue;
    x.to = Tensor::empty({x.from.size(0), x.from.size(1), x.from.size(2)}, used[i]->dtype());
    *used[i] = x.to.view();
  }
}

void Dequantized::fill() const {
  for (const Operand& x : operands_) {
    if (!x.to.defined()) continue;
    const int64_t heads = x.from.size(1), dim = x.from.size(2);
    std::vector<int64_t> columns;
    for (int64_t n = 0; x.scales && x.block && n < x.from.size(0); ++n) columns.push_back(x.column(n));
    ops::for_rows(x.from.size(0), ops::rows_per_task(x.from.size(0), 5 * heads * dim), [&](int64_t n) {
      std::vector<float> row(static_cast<size_t>(dim));
      for (int64_t h = 0; h < heads; ++h) {
        load_row(x.from, n * x.from.stride(0) + h * x.from.stride(1), row.data(), dim);
        const float* s = x.scales ? x.scales->data_as<float>() + h * x.scales->stride(0) : nullptr;
        const int64_t step = s ? x.scales->stride(1) : 0;
        for (int64_t d = 0; s && d < dim; ++d)
          row[static_cast<size_t>(d)] *= s[(x.block ? columns[static_cast<size_t>(n)] : d) * step];
        const int64_t at = (n * heads + h) * dim;
        if (x.to.dtype() == DType::kF32)
          store_row(row.data(), x.to.data_as<float>() + at, dim);
        else if (x.to.dtype() == DType::kF16)
          store_row(row.data(), x.to.data_as<f16_t>() + at, dim);
        else
          store_row(row.data(), x.to.data_as<bf16_t>() + at, dim);
      }
    });
  }
}

void Dequantized::fill_reference() const {
  for (const Operand& x : operands_) {
    if (!x.to.defined()) continue;
    for (int64_t n = 0; n < x.from.size(0); ++n)
      for (int64_t h = 0; h < x.from.size(1); ++h)
        for (int64_t d = 0; d < x.from.size(2); ++d) {
          const double scale = x.scales ? ref::at(*x.scales, {h, x.block ? x.column(n) : d}) : 1.0;
          ref::put(x.to.view(), {n, h, d}, ref::at(x.from, {n, h, d}) * scale);
        }
  }
}

}  // namespace flashinfer::attention
