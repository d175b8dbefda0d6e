// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace flashinfer::replay {
namespace {

constexpr int64_t kBlock = 4096;  // elements, 32 KB as doubles: the second pass over a block reads the cache

/// Mean and sum of squared deviations of runs, combined without cancellation (Chan, Golub, LeVeque 1979).
class Moments {
 public:
  /// `n` finite values.
  void add(const double* x, int64_t n) {
    if (n == 0) return;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    const auto count = static_cast<double>(n), before = static_cast<double>(count_);
    const double mean = sum / count;
    for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double delta = mean - mean_, all = before + count;
    mean_ += delta * (count / all);
    squares_ += squares + delta * delta * (before * count / all);
    count_ += n;
    const auto [low, high] = std::minmax_element(x, x + n);
    min_ = std::min(min_, *low), max_ = std::max(max_, *high);
  }

  void store(Summary& s) const {
    const double none = std::numeric_limits<double>::quiet_NaN();
    s.finite = count_;
    s.min = count_ > 0 ? min_ : none;
    s.max = count_ > 0 ? max_ : none;
    s.mean = count_ > 0 ? mean_ : none;
    s.deviation = count_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : none;
  }

 private:
  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
  double min_ = std::numeric_limits<double>::infinity(), max_ = -std::numeric_limits<double>::infinity();
};

template <class T>
double as_double(T x) {
  if constexpr (sizeof(T) < 4 && !std::is_integral_v<T>)
    return static_cast<double>(static_cast<float>(x));
  else
    return static_cast<double>(x);
}

template <class T>
Summary scan(const uint8_t* data, int64_t elements) {
  Summary s;
  s.elements = elements;
  Moments moments;
  double block[kBlock];
  for (int64_t at = 0; at < elements; at += kBlock) {
    int64_t finite = 0;
    for (int64_t i = at, end = std::min(at + kBlock, elements); i < end; ++i) {
      T raw;
      std::memcpy(&raw, data + i * static_cast<int64_t>(sizeof(T)), sizeof raw);
      const double x = as_double(raw);
      s.nan += std::isnan(x);
      s.inf += std::isinf(x);
      block[finite] = x;
      finite += std::isfinite(x);
    }
    moments.add(block, finite);
  }
  moments.store(s);
  return s;
}

Summary (*scan_of(DType t))(const uint8_t*, int64_t) {
  switch (t) {
    case DType::kF32: return scan<float>;
    case DType::kF64: return scan<double>;
    case DType::kF16: return scan<f16_t>;
    case DType::kBF16: return scan<bf16_t>;
    case DType::kF8E4M3: return scan<e4m3_t>;
    case DType::kF8E5M2: return scan<e5m2_t>;
    case DType::kI8: return scan<int8_t>;
    case DType::kU8:
    case DType::kBool: return scan<uint8_t>;
    case DType::kI16: return scan<int16_t>;
    case DType::kU16: return scan<uint16_t>;
    case DType::kI32: return scan<int32_t>;
    case DType::kU32: return scan<uint32_t>;
    case DType::kI64: return scan<int64_t>;
    case DType::kU64: return scan<uint64_t>;
    case DType::kF4E2M1x2: break;
  }
  return nullptr;
}

}  // namespace

std::optional<Summary> summarize(const TensorView& v) {
  const auto scan = scan_of(v.dtype());
  if (scan == nullptr) return std::nullopt;
  if (v.is_contiguous()) return scan(v.data_as<const uint8_t>(), v.numel());
  const Tensor compact = Tensor::clone(v);
  return scan(compact.view().data_as<const uint8_t>(), compact.numel());
}

}  // namespace flashinfer::replay
