// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/sampling/launch.h"

namespace flashinfer::ops::sampling {
namespace {

void check_seed(const char* name, const op::ScalarOrTensor& v, int64_t rows) {
  const TensorView* t = v.tensor();
  if (!t) {
    FI_CHECK(std::holds_alternative<int64_t>(v.value), ValueError, name, " must be an integer or a tensor of them");
    return;
  }
  FI_CHECK(t->rank() == 1, ValueError, "Expected a 1D tensor or a number for ", name, ", got rank ", t->rank());
  FI_CHECK(t->size(0) == 1 || t->size(0) == rows, ValueError, name, " tensor length must be 1 or ", rows,
           " (one for each output), got ", t->size(0));
}

}  // namespace

void check_length(const char* name, const op::ScalarOrTensor& v, int64_t rows, const char* what) {
  const TensorView* t = v.tensor();
  if (!t) return;
  FI_CHECK(t->rank() == 1, ValueError, "Expected a 1D tensor or a number for ", name, ", got rank ", t->rank());
  FI_CHECK(t->size(0) == rows, ValueError, "Sampling parameter ", name, " batch size mismatch: it has ", t->size(0),
           " elements, but ", what, " has ", rows, " rows");
}

void check_threshold(const char* name, const op::ScalarOrTensor& v, int64_t rows, const char* what) {
  check_length(name, v, rows, what);
  if (!readable(v)) return;
  const TensorView* t = v.tensor();
  for (int64_t i = 0; i < (t ? t->size(0) : 1); ++i)
    FI_CHECK(!std::isnan(t ? ref::get(*t, i) : v.number()), ValueError, name, t ? str("[", i, "]") : "", " is nan");
}

void check_integer_threshold(const char* name, const op::ScalarOrTensor& v, int64_t rows, const char* what) {
  check_length(name, v, rows, what);
  const TensorView* t = v.tensor();
  FI_CHECK(t ? op::indices.has(t->dtype()) : std::holds_alternative<int64_t>(v.value), ValueError, name, " is ",
           t ? std::string(flashinfer::name(t->dtype())) : std::to_string(v.number()),
           ", but must be an integer or int32 or int64");
  if (t && t->device() != kCpu) return;
  for (int64_t i = 0; i < (t ? t->size(0) : 1); ++i) {
    const int64_t k = t ? op::index_at(*t, i) : std::get<int64_t>(v.value);
    FI_CHECK(k >= -1, ValueError, name, t ? str("[", i, "]") : "", " is ", k,
             ", but must be positive, or 0 or -1: off");
  }
}

void check_seeds(const std::optional<op::ScalarOrTensor>& seed, const std::optional<op::ScalarOrTensor>& offset,
                 int64_t rows) {
  FI_CHECK(seed.has_value() == offset.has_value(), ValueError, seed ? "seed" : "offset", " is given without ",
           seed ? "offset" : "seed");
  if (!seed) return;
  check_seed("seed", *seed, rows);
  check_seed("offset", *offset, rows);
  FI_CHECK(!seed->tensor() == !offset->tensor(), ValueError,
           "seed and offset must both be integers or both be tensors");
}

void check_rows(const char* name, const TensorView& t, const std::optional<TensorView>& indices, bool check_nan) {
  FI_CHECK(t.size(1) > 0 && t.size(1) <= INT32_MAX, ValueError, name, ".shape[1] is ", t.size(1),
           ", but must be in [1, 2^31)");
  if (indices && indices->device() == kCpu)
    op::check_index_range("indices", *indices, 0, t.size(0), str("rows of ", name));
  if (!check_nan || t.device() != kCpu) return;
  ref::for_each_row(t, [&](const ref::Index& row) {
    for (int64_t i = 0; i < t.size(1); ++i)
      FI_CHECK(!std::isnan(ref::get(t, row, i)), ValueError, name, " contains NaN, the first at [", row[0], ", ", i,
               "]");
  });
}

}  // namespace flashinfer::ops::sampling
