// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/gate_checks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr int64_t kBlock = 64, kPiece = 64 << 10;  // bytes; pieces are for several threads

/// Several elements in 8 bytes: one is NaN when (its magnitude + excess) reaches the sign bit.
struct Word {
  uint64_t magnitude, excess, sign;
};
Word word_of(DType t) {
  constexpr uint64_t kHalves = 0x0001000100010001;
  if (t == DType::kBF16) return {0x7fff * kHalves, 0x007f * kHalves, 0x8000 * kHalves};
  if (t == DType::kF16) return {0x7fff * kHalves, 0x03ff * kHalves, 0x8000 * kHalves};
  return {0x7fffffff7fffffff, 0x007fffff007fffff, 0x8000000080000000};
}
bool block_has_nan(const char* from, const Word& word) {
  uint64_t x[kBlock / 8], sum = 0;
  std::memcpy(x, from, kBlock);
  for (uint64_t e : x) sum |= (e & word.magnitude) + word.excess;
  return (sum & word.sign) != 0;
}
bool bytes_have_nan(const char* from, int64_t bytes, const Word& word) {
  int64_t i = 0;
  for (; i + kBlock <= bytes; i += kBlock)
    if (block_has_nan(from + i, word)) return true;
  if (i == bytes) return false;
  char rest[kBlock] = {};
  std::memcpy(rest, from + i, static_cast<size_t>(bytes - i));
  return block_has_nan(rest, word);
}

/// The axes of different elements, the densest first; neighbours without a gap are one.
struct Axes {
  int64_t size[TensorView::kMaxRank] = {1}, stride[TensorView::kMaxRank] = {1};
  int count = 0;

  explicit Axes(const TensorView& t) {
    for (int i = t.rank() - 1; i >= 0; --i) {
      if (t.size(i) == 1 || t.stride(i) == 0) continue;
      if (count && t.stride(i) == size[count - 1] * stride[count - 1])
        size[count - 1] *= t.size(i);
      else
        size[count] = t.size(i), stride[count++] = t.stride(i);
    }
    for (int i = 1; i < count; ++i)
      if (stride[i] == 1) std::swap(size[0], size[i]), std::swap(stride[0], stride[i]);
    count = std::max(count, 1);
  }
};
/// Of the axes up to `axis`.
bool axes_have_nan(const char* from, const Axes& a, int axis, int64_t item, const Word& word) {
  const int64_t step = a.stride[axis] * item;
  if (axis == 0 && a.stride[0] == 1) return bytes_have_nan(from, a.size[0] * item, word);
  for (int64_t i = 0; i < a.size[axis]; ++i)
    if (axis == 0 ? bytes_have_nan(from + i * step, item, word)
                  : axes_have_nan(from + i * step, a, axis - 1, item, word))
      return true;
  return false;
}
}  // namespace

bool has_nan(const TensorView& t) {
  if (t.numel() == 0) return false;
  const auto* const from = static_cast<const char*>(t.data());
  const Word word = word_of(t.dtype());
  const int64_t item = t.item_size();
  const Axes a(t);
  const int last = a.count - 1;
  int64_t elements = 1;
  for (int i = 0; i < a.count; ++i) elements *= a.size[i];
  if (elements * item < 4 * kPiece) return axes_have_nan(from, a, last, item, word);
  std::atomic<bool> found{false};
  const auto note = [&](bool nan) {
    if (nan) found.store(true, std::memory_order_relaxed);
  };
  if (last == 0 && a.stride[0] == 1) {
    const int64_t bytes = a.size[0] * item;
    parallel_for(ceil_div(bytes, kPiece), [&](int64_t i) {
      note(bytes_have_nan(from + i * kPiece, std::min(kPiece, bytes - i * kPiece), word));
    });
  } else {
    parallel_for(a.size[last], [&](int64_t i) {
      const char* const row = from + i * a.stride[last] * item;
      note(last == 0 ? bytes_have_nan(row, item, word) : axes_have_nan(row, a, last - 1, item, word));
    });
  }
  return found;
}

namespace {
/// f(element, its indices) for all, in order.
template <class F>
void each_element(const TensorView& t, F f) {
  std::array<int64_t, TensorView::kMaxRank> at{};
  for (int64_t n = t.numel(); n > 0; --n) {
    int64_t offset = 0;
    for (int i = 0; i < t.rank(); ++i) offset += at[static_cast<size_t>(i)] * t.stride(i);
    f(ref::load_element(t, offset), std::span<const int64_t>(at.data(), static_cast<size_t>(t.rank())));
    for (int i = t.rank() - 1; i >= 0 && ++at[static_cast<size_t>(i)] == t.size(i); --i) at[static_cast<size_t>(i)] = 0;
  }
}
std::string place(const char* name, std::span<const int64_t> at) {
  std::string s = name;
  for (size_t i = 0; i < at.size(); ++i) s += (i ? ", " : "[") + std::to_string(at[i]);
  return at.empty() ? s : s + "]";
}
}  // namespace

void detail::refuse_nan(const char* name, const TensorView& t, int axis, bool (*takes_part)(const void*, int64_t),
                        const void* arg) {
  each_element(t, [&](double x, std::span<const int64_t> at) {
    FI_CHECK(!std::isnan(x) || (!at.empty() && !takes_part(arg, at[static_cast<size_t>(axis)])), ValueError,
             place(name, at), " is nan, but gates must be numbers");
  });
}
void check_factors(const char* name, const TensorView& t) {
  if (!gates_readable(t)) return;
  bool bad = false;
  for (int64_t i = 0; i < t.size(0); ++i) {
    const float* const row = t.data_as<float>() + i * t.stride(0);
    for (int64_t h = 0; h < t.size(1); ++h) bad |= !(row[h * t.stride(1)] >= 0);
  }
  if (!bad) return;
  each_element(t, [&](double x, std::span<const int64_t> at) {
    FI_CHECK(x >= 0, ValueError, place(name, at), " is ", x,
             ", but factors of the state must be numbers of at least 0");
  });
}

}  // namespace flashinfer::ops::linear_attention
