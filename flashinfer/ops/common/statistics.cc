// SPDX-License-Identifier: Apache-2.0
// The kernel behind the log's statistics in a graph. A call under capture may compile and load it: both happen beside
// the capture.
#include <atomic>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/ops/common/kernels/statistics_params.h"
#include "flashinfer/record/stats.h"

namespace flashinfer::record {
namespace {

inline constexpr jit::Kernel kPrintStatistics{"flashinfer/ops/common/kernels/cuda/statistics.cuh",
                                              "flashinfer::cu::print_statistics", "flashinfer::StatisticsParams"};
constexpr StatisticsConfig kConfig{256};

bool has_kernel(DType t) {
  return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16 || t == DType::kI32 || t == DType::kI64 ||
         t == DType::kU8;
}

}  // namespace

void prepare_graph_statistics(Device device) { jit::cuda_kernel<kPrintStatistics>(kConfig, device); }

int64_t print_statistics(const TensorView& v) {
  static std::atomic<int64_t> last{0};
  if (!has_kernel(v.dtype()) || !v.is_contiguous()) return 0;
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kPrintStatistics>(kConfig, v.device());
  if (!kernel.why_not.empty()) return 0;
  const StatisticsParams params{v.data(), v.numel(), ++last, v.dtype()};
  jit::launch(kernel, params,
              {.block = {static_cast<unsigned>(kConfig.threads), 1, 1}, .shared_bytes = 8 * sizeof(double)});
  return params.id;
}

}  // namespace flashinfer::record
