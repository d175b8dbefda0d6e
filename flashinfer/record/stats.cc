// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/formats/layout.h"
#include "flashinfer/record/text.h"

namespace flashinfer::record {
namespace {

using stats_detail::kBlockBytes;
using stats_detail::kLanes;

constexpr int64_t kTaskBytes = 256 << 10;
constexpr int64_t kParallelBytes = 1 << 20;  // below, waking a thread costs more than it saves

/// Statistics of a run of elements; runs are combined in memory order.
struct Part {
  double sum = 0;
  float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();
  int64_t int_min = std::numeric_limits<int64_t>::max(), int_max = std::numeric_limits<int64_t>::min();
  int64_t nan = 0, inf = 0;

  void add(const Part& p) {
    sum += p.sum;
    min = std::min(min, p.min), max = std::max(max, p.max);
    int_min = std::min(int_min, p.int_min), int_max = std::max(int_max, p.int_max);
    nan += p.nan, inf += p.inf;
  }
};

/// Element by element: for remainders, types without a kernel, blocks with Inf or NaN.
template <class T>
void scan_floats(const uint8_t* data, int64_t bytes, Part& part) {
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(sizeof(T))) {
    T raw;
    std::memcpy(&raw, data + at, sizeof raw);
    const float x = static_cast<float>(raw);
    part.nan += std::isnan(x);
    part.inf += std::isinf(x);
    part.min = std::min(part.min, x);  // a NaN compares false and changes nothing
    part.max = std::max(part.max, x);
    part.sum += static_cast<double>(x);
  }
}

template <class T>
void scan_integers(const uint8_t* data, int64_t bytes, Part& part) {
  double sum[4] = {};
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::min();
  const int64_t n = bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < n; ++i) {
    T x;
    std::memcpy(&x, data + i * static_cast<int64_t>(sizeof(T)), sizeof x);
    low = std::min(low, x), high = std::max(high, x);
    sum[i & 3] += static_cast<double>(static_cast<float>(x));
  }
  part.sum += (sum[0] + sum[1]) + (sum[2] + sum[3]);
  part.int_min = std::min<int64_t>(part.int_min, low);
  part.int_max = std::max<int64_t>(part.int_max, high);
}

using Scan = void (*)(const uint8_t*, int64_t, Part&);
Scan scalar_scan(DType t) {
  switch (t) {
    case DType::kF32: return scan_floats<float>;
    case DType::kF64: return scan_floats<double>;
    case DType::kF16: return scan_floats<f16_t>;
    case DType::kBF16: return scan_floats<bf16_t>;
    case DType::kF8E4M3: return scan_floats<e4m3_t>;
    case DType::kF8E5M2: return scan_floats<e5m2_t>;
    case DType::kI8: return scan_integers<int8_t>;
    case DType::kU8: return scan_integers<uint8_t>;
    case DType::kI16: return scan_integers<int16_t>;
    case DType::kI32: return scan_integers<int32_t>;
    case DType::kI64: return scan_integers<int64_t>;
    default: return nullptr;
  }
}

stats_detail::Kernel kernel_of(DType t) {
  if (const auto k = stats_detail::avx512_kernel(t)) return k;
  if (const auto k = stats_detail::avx2_kernel(t)) return k;
  return stats_detail::portable_kernel(t);
}

/// Magnitudes from here on represent Inf or NaN in the kernels' results for narrow types.
float first_special(DType t) {
  switch (t) {
    case DType::kF16:
    case DType::kF8E5M2: return 65536.0f;
    case DType::kF8E4M3: return 480.0f;
    default: return std::numeric_limits<float>::infinity();
  }
}

struct Scanner {
  Scan scalar;
  stats_detail::Kernel kernel;
  float special;

  explicit Scanner(DType t) : scalar(scalar_scan(t)), kernel(kernel_of(t)), special(first_special(t)) {}

  void block(const uint8_t* data, int64_t bytes, Part& part) const {
    const int64_t words = kernel ? bytes / 4 / kLanes * kLanes : 0;
    if (words > 0) {
      stats_detail::Lanes lanes;
      kernel(data, words, lanes);
      Part p;
      for (int i = 0; i < kLanes; ++i) {
        p.min = std::min(p.min, lanes.min[i]), p.max = std::max(p.max, lanes.max[i]);
        p.sum += static_cast<double>(lanes.sum[i]);
      }
      // A NaN or an Inf stays in its lane's sum; a finite sum that overflowed is computed again too.
      if (std::isfinite(p.sum) && p.max < special && p.min > -special)
        part.add(p);
      else
        scalar(data, words * 4, part);
    }
    if (words * 4 < bytes) scalar(data + words * 4, bytes - words * 4, part);
  }

  Part run(const uint8_t* data, int64_t bytes) const {
    Part part;
    for (int64_t at = 0; at < bytes; at += kBlockBytes) {
      Part p;
      block(data + at, std::min(kBlockBytes, bytes - at), p);
      part.add(p);
    }
    return part;
  }
};

Part scan_contiguous(const TensorView& v) {
  const Scanner scanner(v.dtype());
  const uint8_t* data = v.data_as<const uint8_t>();
  const int64_t bytes = v.nbytes(), tasks = ceil_div(bytes, kTaskBytes);
  std::vector<Part> parts(static_cast<size_t>(tasks));
  const auto task = [&](int64_t i) {
    parts[static_cast<size_t>(i)] = scanner.run(data + i * kTaskBytes, std::min(kTaskBytes, bytes - i * kTaskBytes));
  };
  if (bytes >= kParallelBytes)
    parallel_for(tasks, task);
  else
    for (int64_t i = 0; i < tasks; ++i) task(i);
  Part total;
  for (const Part& p : parts) total.add(p);
  return total;
}

/// A tensor of a captured call: a kernel in the graph prints its statistics.
void append_deferred(std::string& out, const TensorView& v) {
  const int64_t id = print_statistics(v);
  if (id == 0) {
    out += "[statistics skipped: CUDA graph capture in progress]\n";
    return;
  }
  const std::string text = std::to_string(id);
  out += "[stats deferred to GPU kernel: id=" + text + "; look for '[flashinfer stats] id=" + text +
         " ...' in graph replay output]\n";
}

}  // namespace

bool has_statistics(DType t) { return scalar_scan(t) != nullptr; }

Statistics statistics(const TensorView& v) {
  if (!host_can_read(v.device())) return statistics(to_device(v, kCpu).view());
  Part part;
  if (v.is_contiguous()) {
    part = scan_contiguous(v);
  } else {
    const Scanner scanner(v.dtype());
    formats::stream(v, [&](const uint8_t* p, size_t n) { part.add(scanner.run(p, static_cast<int64_t>(n))); });
  }
  Statistics s;
  s.integer = !is_floating(v.dtype());
  s.int_min = part.int_min, s.int_max = part.int_max;
  s.nan_count = part.nan, s.inf_count = part.inf;
  s.min = part.min, s.max = part.max;
  s.mean = static_cast<float>(part.sum / static_cast<double>(v.numel()));
  if (part.nan > 0) s.min = s.max = s.mean = std::numeric_limits<float>::quiet_NaN();
  return s;
}

void append_statistics(std::string& out, const TensorView& v, int indent) {
  if (v.numel() == 0 || !has_statistics(v.dtype())) return;
  const auto line = [&](const char* label) {
    out.append(static_cast<size_t>(2 * indent), ' ');
    out += label;
  };
  Statistics s;
  try {
    if (!host_can_read(v.device())) {
      if (cuda::capturing(v.device().index, Context::current().stream)) {
        out.append(static_cast<size_t>(2 * indent), ' ');
        return append_deferred(out, v);
      }
      prepare_graph_statistics(v.device());
    }
    s = statistics(v);
  } catch (const std::exception& e) {
    line("[statistics error: ");
    out += e.what();
    out += "]\n";
    return;
  }
  if (s.integer) {
    line("min="), append_integer(out, s.int_min), out += '\n';
    line("max="), append_integer(out, s.int_max), out += '\n';
    line("mean="), append_fixed6(out, s.mean), out += '\n';
    return;
  }
  line("min="), append_fixed6(out, s.min), out += '\n';
  line("max="), append_fixed6(out, s.max), out += '\n';
  line("mean="), append_fixed6(out, s.mean), out += '\n';
  line("nan_count="), append_integer(out, s.nan_count), out += '\n';
  line("inf_count="), append_integer(out, s.inf_count), out += '\n';
}

}  // namespace flashinfer::record
