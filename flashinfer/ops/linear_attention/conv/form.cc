// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/conv/form.h"

#include <algorithm>

#include "flashinfer/op/index_checks.h"

namespace flashinfer::ops::linear_attention {
namespace {

int64_t entry(const std::optional<TensorView>& t, int64_t i, int64_t otherwise) {
  return t ? op::index_at(*t, i) : otherwise;
}
void check_entries(const char* name, const std::optional<TensorView>& t, int64_t n) {
  if (!t) return;
  FI_CHECK(t->rank() == 1 && t->size(0) == n, ValueError, name, " is ", to_string(*t), ", but must be [", n,
           "] (sequences)");
}
void fill(ConvForm& f, const TensorView& weight, const std::optional<TensorView>& bias,
          const std::optional<std::string>& activation, const std::optional<TensorView>& out, const TensorView& x) {
  FI_CHECK(f.x.rank() == 3, ValueError, "x is ", to_string(x), ", but must be ",
           f.packed ? "[channels, tokens] (with query_start_loc)" : "[sequences, channels, tokens]");
  f.channels = f.x.size(1);
  FI_CHECK(weight.rank() == 2 && weight.size(0) == f.channels, ValueError, "weight is ", to_string(weight),
           ", but must be [", f.channels, ", width] (channels of x)");
  f.weight = weight, f.width = weight.size(1);
  FI_CHECK(f.width >= 2 && f.width <= 4, ValueError, "weight is ", to_string(weight),
           ", but its width must be 2, 3 or 4");
  if (bias) {
    f.bias = *bias;
    FI_CHECK(bias->rank() == 1 && bias->size(0) == f.channels, ValueError, "bias is ", to_string(*bias),
             ", but must be [", f.channels, "] (channels of x)");
  }
  FI_CHECK(!activation || *activation == "silu" || *activation == "swish", ValueError, "activation is '",
           activation.value_or(""), "', but must be 'silu', 'swish' or None");
  f.silu = activation.has_value();
  FI_CHECK(f.channels <= 1 || f.x.size(2) <= 1 || f.x.stride(1) == 1 || f.x.stride(2) == 1, ValueError, "x is ",
           to_string(x), ", but its channels or its tokens must be side by side in memory");
  if (!out) return;
  FI_CHECK(std::equal(x.shape().begin(), x.shape().end(), out->shape().begin(), out->shape().end()), ValueError,
           "out is ", to_string(*out), ", but must have the shape of x, ", to_string(x));
  f.out = *out;
}
void fill_state(ConvForm& f, const char* name, const TensorView& state, bool exact) {
  f.state = state;
  FI_CHECK(state.rank() == 3 && state.size(1) == f.channels &&
               (exact ? state.size(2) == f.width - 1 : state.size(2) >= f.width - 1),
           ValueError, name, " is ", to_string(state), ", but must be [slots, ", f.channels, ", ",
           exact ? "" : "at least ", f.width - 1, "] (channels of x, width of weight - 1)");
}
void check_slot(const char* name, int64_t i, int64_t slot, int64_t slots, int64_t pad) {
  FI_CHECK(slot == pad || (slot >= 0 && slot < slots), ValueError, name, "[", i, "] is ", slot, ", but must be in [0, ",
           slots, ") (slots of the states) or pad_slot_id, ", pad);
}

}  // namespace

ConvForm conv_form(const CausalConv1dFn& a, bool values) {
  ConvForm f;
  f.packed = a.query_start_loc.has_value();
  f.x = f.packed ? (a.x.rank() == 2 ? a.x.unsqueeze(0) : TensorView()) : a.x;
  fill(f, a.weight, a.bias, a.activation, a.out, a.x);
  if (a.out && f.packed) f.out = a.out->unsqueeze(0);
  if (a.conv_states) fill_state(f, "conv_states", *a.conv_states, true);
  FI_CHECK(!f.packed || (a.query_start_loc->rank() == 1 && a.query_start_loc->size(0) >= 1), ValueError,
           "query_start_loc is ", to_string(*a.query_start_loc), ", but must be [sequences + 1]");
  f.sequences = f.packed ? a.query_start_loc->size(0) - 1 : a.x.size(0);
  check_entries("cache_indices", a.cache_indices, f.sequences);
  check_entries("has_initial_state", a.has_initial_state, f.sequences);
  FI_CHECK(a.conv_states || (!a.has_initial_state && !a.cache_indices), ValueError,
           a.cache_indices ? "cache_indices" : "has_initial_state", " is given without conv_states");
  if (!values) return f;
  if (f.packed) {
    const int64_t total = op::check_indptr("query_start_loc", *a.query_start_loc);
    FI_CHECK(total == f.x.size(2), ValueError, "query_start_loc ends at ", total, ", but x has ", f.x.size(2),
             " tokens");
  }
  FI_CHECK(!a.conv_states || a.cache_indices || f.state.size(0) >= f.sequences, ValueError, "conv_states has ",
           f.state.size(0), " slots, fewer than the ", f.sequences, " sequences of x (cache_indices is missing)");
  for (int64_t i = 0; i < f.sequences; ++i) {
    ConvRow r{};
    const int64_t first = f.packed ? op::index_at(*a.query_start_loc, i) : 0;
    r.tokens = f.packed ? op::index_at(*a.query_start_loc, i + 1) - first : f.x.size(2);
    r.x = f.packed ? first * f.x.stride(2) : i * f.x.stride(0);
    if (f.out.defined()) r.out = f.packed ? first * f.out.stride(2) : i * f.out.stride(0);
    r.slot = a.conv_states ? entry(a.cache_indices, i, i) : -1;
    if (a.cache_indices) {
      check_slot("cache_indices", i, r.slot, f.state.size(0), a.pad_slot_id);
      r.skip = r.slot == a.pad_slot_id;
    }
    if (r.skip || r.tokens == 0) r.slot = -1;
    r.initial = a.has_initial_state && entry(a.has_initial_state, i, 0) != 0;
    f.rows.push_back(r);
  }
  return f;
}

ConvForm conv_form(const CausalConv1dUpdate& a, bool values) {
  ConvForm f;
  f.x = a.x.rank() == 2 ? a.x.unsqueeze(2) : a.x;
  fill(f, a.weight, a.bias, a.activation, a.out, a.x);
  if (a.out && a.x.rank() == 2) f.out = a.out->unsqueeze(2);
  fill_state(f, "conv_state", a.conv_state, false);
  f.sequences = f.x.size(0);
  const int64_t tokens = f.x.size(2), length = f.state.size(2);
  check_entries("cache_seqlens", a.cache_seqlens, f.sequences);
  check_entries("conv_state_indices", a.conv_state_indices, f.sequences);
  check_entries("num_accepted_tokens", a.num_accepted_tokens, f.sequences);
  FI_CHECK(!a.cache_seqlens || !a.num_accepted_tokens, ValueError,
           "cache_seqlens and num_accepted_tokens are given together");
  if (a.cache_seqlens) f.mode = ConvParams::kCircular;
  if (a.num_accepted_tokens) {
    f.mode = ConvParams::kAccepted;
    FI_CHECK(length >= f.width - 2 + tokens, ValueError, "conv_state is ", to_string(a.conv_state),
             ", but its rows must have ", f.width - 2 + tokens, " elements for ", tokens,
             " tokens with num_accepted_tokens");
  }
  if (!values) return f;
  FI_CHECK(a.conv_state_indices || f.state.size(0) >= f.sequences, ValueError, "conv_state has ", f.state.size(0),
           " slots, fewer than the ", f.sequences, " sequences of x (conv_state_indices is missing)");
  for (int64_t i = 0; i < f.sequences; ++i) {
    ConvRow r{};
    r.x = i * f.x.stride(0), r.tokens = tokens, r.initial = true;
    if (f.out.defined()) r.out = i * f.out.stride(0);
    r.slot = entry(a.conv_state_indices, i, i);
    if (a.conv_state_indices) {
      check_slot("conv_state_indices", i, r.slot, f.state.size(0), a.pad_slot_id);
      r.skip = r.slot == a.pad_slot_id;
      if (r.skip) r.slot = -1;
    }
    if (a.cache_seqlens) {
      const int64_t n = op::index_at(*a.cache_seqlens, i);
      FI_CHECK(n >= 0, ValueError, "cache_seqlens[", i, "] is ", n, ", but must be at least 0");
      r.at = n % length;
    }
    if (a.num_accepted_tokens) {
      r.at = std::max<int64_t>(op::index_at(*a.num_accepted_tokens, i) - 1, 0);
      FI_CHECK(r.at + f.width - 1 <= length, ValueError, "num_accepted_tokens[", i, "] is ", r.at + 1,
               ", but the rows of conv_state have ", length, " elements, enough for ", length - f.width + 2);
    }
    f.rows.push_back(r);
  }
  return f;
}

}  // namespace flashinfer::ops::linear_attention
