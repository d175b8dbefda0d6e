// SPDX-License-Identifier: Apache-2.0
// libcublasLt, opened at run time: the entry points this library uses. The numbers are the library's ABI (cublasLt.h,
// library_types.h), which tests/cuda/cublaslt_abi_test.cc compares with the headers where they are installed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "flashinfer/core/cuda/driver.h"

namespace flashinfer::cublaslt {

using Status = int;  // cublasStatus_t; 0 is success
using cuda::Handle;  // cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t,
                     // CUstream

enum Type : int { kR32F = 0, kR16F = 2, kR16BF = 14, kR8FE4M3 = 28, kR8FE5M2 = 29, kR4FE2M1 = 33 };  // cudaDataType
inline constexpr int kCompute32F = 68;    // cublasComputeType_t
inline constexpr int kOpN = 0, kOpT = 1;  // cublasOperation_t
inline constexpr uint32_t kEpilogueDefault = 1, kEpilogueBias = 4;
enum DescAttribute : int {
  kPointerMode = 2,
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAScalePointer = 17,
  kBScalePointer = 18,
  kFastAccum = 25,
  kBiasType = 26,
  kAScaleMode = 31,
  kBScaleMode = 32
};
inline constexpr int kPointersOnDevice = 1;  // cublasLtPointerMode_t: alpha and beta
/// cublasLtMatmulMatrixScale_t: one f32; bytes for blocks along k in the layout 128x4; f32 for 128 along k of a line,
/// or of 128 lines (ops/gemm/cublaslt/grids.h).
enum ScaleMode : int { kScalar32F = 0, kVec16UE4M3 = 1, kVec32UE8M0 = 2, kVec128F32 = 4, kBlock128F32 = 5 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchOffset = 6 };
enum PreferenceAttribute : int {
  kMaxWorkspace = 1,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};

struct Algorithm {
  uint64_t data[8];
};
/// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

#define FI_CUBLASLT_API(X)                                                                                             \
  X(Status, cublasLtCreate, (Handle*))                                                                                 \
  X(size_t, cublasLtGetVersion, ())                                                                                    \
  X(const char*, cublasLtGetStatusName, (Status))                                                                      \
  X(Status, cublasLtMatmulDescCreate, (Handle*, int compute, int scale))                                               \
  X(Status, cublasLtMatmulDescSetAttribute, (Handle, int, const void*, size_t))                                        \
  X(Status, cublasLtMatmulDescDestroy, (Handle))                                                                       \
  X(Status, cublasLtMatrixLayoutCreate, (Handle*, int type, uint64_t rows, uint64_t columns, int64_t ld))              \
  X(Status, cublasLtMatrixLayoutSetAttribute, (Handle, int, const void*, size_t))                                      \
  X(Status, cublasLtMatrixLayoutDestroy, (Handle))                                                                     \
  X(Status, cublasLtMatmulPreferenceCreate, (Handle*))                                                                 \
  X(Status, cublasLtMatmulPreferenceSetAttribute, (Handle, int, const void*, size_t))                                  \
  X(Status, cublasLtMatmulPreferenceDestroy, (Handle))                                                                 \
  X(Status, cublasLtMatmulAlgoGetHeuristic,                                                                            \
    (Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, HeuristicResult*, int*))                             \
  X(Status, cublasLtMatmul,                                                                                            \
    (Handle, Handle, const void* alpha, const void* a, Handle, const void* b, Handle, const void* beta, const void* c, \
     Handle, void* d, Handle, const Algorithm*, void* workspace, size_t, Handle stream))

struct Library {
#define FI_CUBLASLT_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  FI_CUBLASLT_API(FI_CUBLASLT_MEMBER)
#undef FI_CUBLASLT_MEMBER
  std::string path;
  size_t version = 0;   // 130100 for 13.1
  std::string why_not;  // why it cannot be used, and how to fix that
};
/// FLASHINFER_CUBLASLT, else the wheel nvidia-cublas of the active Python environment, CUDA_HOME, the loader's path;
/// opened once.
const Library& library();

/// RuntimeError unless `status` is 0.
void check(Status status, const char* what);

namespace detail {
/// Closes nothing, but searches again at the next use (tests; libraries stay loaded).
void forget();
}  // namespace detail
}  // namespace flashinfer::cublaslt
