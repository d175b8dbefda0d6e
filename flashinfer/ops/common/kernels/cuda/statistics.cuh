// SPDX-License-Identifier: Apache-2.0
// Min, max, mean and counts of a tensor, printed by one block: for captured graphs, whose tensors the host cannot read
// during replay. Unlike the host's statistics, NaN is left out of all three, Inf of the mean; sums are in double, in
// one order.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/print.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/common/kernels/statistics_params.h"

namespace flashinfer::cu {

struct Min {
  FI_GLOBAL_FN double operator()(double a, double b) const { return b < a ? b : a; }
};
struct MaxOfDouble {
  FI_GLOBAL_FN double operator()(double a, double b) const { return a < b ? b : a; }
};

template <class T>
FI_GLOBAL_FN double to_double(T x) {
  if constexpr (kSame<T, f16_t> || kSame<T, bf16_t>)
    return static_cast<double>(to_f32(x));
  else
    return static_cast<double>(x);
}

struct StatisticsPart {
  double min, max, sum, nan, inf, finite;  // counts as double: exact up to 2^53
};

template <class T>
FI_GLOBAL_FN StatisticsPart statistics_of_thread(const StatisticsParams& p, int threads) {
  const double infinity = static_cast<double>(kInf);
  StatisticsPart s{infinity, -infinity, 0, 0, 0, 0};
  const T* data = static_cast<const T*>(p.data);
  for (int64_t i = thread_x(); i < p.numel; i += threads) {
    const double x = to_double(data[i]);
    if (x != x) {
      s.nan += 1;
      continue;
    }
    s.min = x < s.min ? x : s.min, s.max = x > s.max ? x : s.max;
    if (x == infinity || x == -infinity)
      s.inf += 1;
    else
      s.sum += x, s.finite += 1;
  }
  return s;
}

FI_GLOBAL_FN StatisticsPart statistics_of_thread(const StatisticsParams& p, int threads) {
  switch (p.dtype) {
    case DType::kF16: return statistics_of_thread<f16_t>(p, threads);
    case DType::kBF16: return statistics_of_thread<bf16_t>(p, threads);
    case DType::kI32: return statistics_of_thread<int32_t>(p, threads);
    case DType::kI64: return statistics_of_thread<int64_t>(p, threads);
    case DType::kU8: return statistics_of_thread<uint8_t>(p, threads);
    default: return statistics_of_thread<float>(p, threads);
  }
}

template <StatisticsConfig C>
FI_GLOBAL_FN void print_statistics(const StatisticsParams& p) {
  StatisticsPart s = statistics_of_thread(p, C.threads);
  double* scratch = reinterpret_cast<double*>(shared());
  s.min = block_reduce<C.threads>(s.min, Min{}, scratch);
  s.max = block_reduce<C.threads>(s.max, MaxOfDouble{}, scratch);
  s.sum = block_reduce<C.threads>(s.sum, Sum{}, scratch);
  s.nan = block_reduce<C.threads>(s.nan, Sum{}, scratch);
  s.inf = block_reduce<C.threads>(s.inf, Sum{}, scratch);
  s.finite = block_reduce<C.threads>(s.finite, Sum{}, scratch);
  if (thread_x() != 0) return;
  const long long id = p.id, numel = p.numel, nan = static_cast<long long>(s.nan), inf = static_cast<long long>(s.inf);
  if (numel == 0)
    print("[flashinfer stats] id=%lld numel=0 (empty tensor)\n", id);
  else if (s.finite == 0)
    print("[flashinfer stats] id=%lld numel=%lld (all non-finite) nan=%lld inf=%lld\n", id, numel, nan, inf);
  else
    print("[flashinfer stats] id=%lld numel=%lld min=%.6f max=%.6f mean=%.6f nan=%lld inf=%lld\n", id, numel, s.min,
          s.max, s.sum / s.finite, nan, inf);
}

}  // namespace flashinfer::cu
