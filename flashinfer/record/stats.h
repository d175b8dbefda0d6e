// SPDX-License-Identifier: Apache-2.0
// Statistics of a tensor for the log: one pass over memory, in one order whatever the instruction set and the threads.
#pragma once
#include <cstdint>
#include <string>

#include "flashinfer/core/tensor.h"

namespace flashinfer::record {

struct Statistics {
  bool integer = false;  // min and max are integers, there are no counts
  int64_t int_min = 0, int_max = 0;
  float min = 0, max = 0, mean = 0;  // of the values as float; all NaN when one is NaN
  int64_t nan_count = 0, inf_count = 0;
};

/// True for the element types that have statistics: f16 bf16 f32 f64 fp8, i8 i16 i32 i64 u8.
bool has_statistics(DType t);
/// Device memory is copied to the host first, in the order of the current stream. The view must not be empty.
Statistics statistics(const TensorView& v);

/// The lines of the log, each at `indent` pairs of blanks and with its line end: `min=%.6f` and so on; none for an
/// empty view.
void append_statistics(std::string& out, const TensorView& v, int indent);

/// Enqueues a kernel on the current stream that prints `[flashinfer stats] id=<id> ...` to stdout each time it runs, so
/// also in every replay of a graph. Returns the id, from 1 in this process; 0 when there is no such kernel for the
/// element type, for gaps between elements, or on this device. Defined by the ops (ops/common/statistics.cc), which may
/// compile kernels.
int64_t print_statistics(const TensorView& v);
/// Compiles and loads that kernel for the device, so that a capture need not.
void prepare_graph_statistics(Device device);

namespace stats_detail {
/// Sums of float32 values are kept in 32 lanes, lane = index of the 32-bit word modulo 32, so every instruction set
/// adds in the same order. A block is at most kBlockBytes, so a lane adds at most 512 values before it goes on in
/// double.
inline constexpr int kLanes = 32;
inline constexpr int64_t kBlockBytes = 16 << 10;
struct Lanes {
  float min[kLanes], max[kLanes], sum[kLanes];
};
/// `words` 32-bit words, a multiple of kLanes, at any alignment.
using Kernel = void (*)(const void* data, int64_t words, Lanes& out);
/// Null when there is none for this element type.
Kernel portable_kernel(DType t);
Kernel avx2_kernel(DType t);
Kernel avx512_kernel(DType t);
}  // namespace stats_detail

}  // namespace flashinfer::record
