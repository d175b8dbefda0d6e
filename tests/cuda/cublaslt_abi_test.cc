// SPDX-License-Identifier: Apache-2.0
// The numbers and layouts of core/cuda/cublaslt.h against NVIDIA's header, where it is installed (the wheel
// nvidia-cublas beside a CUDA toolkit, or the toolkit's own): wrong ones do not compile.
#include <gtest/gtest.h>

#include "flashinfer/core/cuda/cublaslt.h"
#include "tests/cuda/same_abi.h"

#if defined(FI_TEST_CUBLASLT_HEADER)
#include <cublasLt.h>

namespace {
namespace ours = flashinfer::cublaslt;
using ours::Algorithm, ours::Handle, ours::HeuristicResult, ours::Status;

static_assert(int(ours::kR32F) == int(CUDA_R_32F) && int(ours::kR16F) == int(CUDA_R_16F) &&
              int(ours::kR16BF) == int(CUDA_R_16BF));
static_assert(int(ours::kR8FE4M3) == int(CUDA_R_8F_E4M3) && int(ours::kR8FE5M2) == int(CUDA_R_8F_E5M2));
static_assert(int(ours::kCompute32F) == int(CUBLAS_COMPUTE_32F) && int(ours::kOpN) == int(CUBLAS_OP_N) &&
              int(ours::kOpT) == int(CUBLAS_OP_T));
static_assert(int(ours::kEpilogueDefault) == int(CUBLASLT_EPILOGUE_DEFAULT) &&
              int(ours::kEpilogueBias) == int(CUBLASLT_EPILOGUE_BIAS));
static_assert(int(ours::kTransA) == int(CUBLASLT_MATMUL_DESC_TRANSA) &&
              int(ours::kTransB) == int(CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(int(ours::kEpilogue) == int(CUBLASLT_MATMUL_DESC_EPILOGUE) &&
              int(ours::kBiasPointer) == int(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(int(ours::kAScalePointer) == int(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) &&
              int(ours::kBScalePointer) == int(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER));
static_assert(int(ours::kFastAccum) == int(CUBLASLT_MATMUL_DESC_FAST_ACCUM) &&
              int(ours::kBiasType) == int(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE));
#if CUBLAS_VERSION >= 120800
static_assert(int(ours::kR4FE2M1) == int(CUDA_R_4F_E2M1));
static_assert(int(ours::kPointerMode) == int(CUBLASLT_MATMUL_DESC_POINTER_MODE) &&
              int(ours::kPointersOnDevice) == int(CUBLASLT_POINTER_MODE_DEVICE));
static_assert(int(ours::kAScaleMode) == int(CUBLASLT_MATMUL_DESC_A_SCALE_MODE) &&
              int(ours::kBScaleMode) == int(CUBLASLT_MATMUL_DESC_B_SCALE_MODE));
static_assert(int(ours::kScalar32F) == int(CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) &&
              int(ours::kVec16UE4M3) == int(CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3) &&
              int(ours::kVec32UE8M0) == int(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0));
#endif
#if CUBLAS_VERSION >= 120900
static_assert(int(ours::kVec128F32) == int(CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F) &&
              int(ours::kBlock128F32) == int(CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F));
#endif
static_assert(int(ours::kBatchCount) == int(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) &&
              int(ours::kBatchOffset) == int(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(int(ours::kMaxWorkspace) == int(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(int(ours::kAlignmentA) == int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) &&
              int(ours::kAlignmentD) == int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(sizeof(ours::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              sizeof(ours::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(offsetof(ours::HeuristicResult, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(ours::HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

#define FI_SAME(result, name, arguments) \
  static_assert(flashinfer::kSameAbi<result(*) arguments, decltype(&::name)>, #name);
FI_CUBLASLT_API(FI_SAME)
#undef FI_SAME

}  // namespace
#endif

/// The assertions above.
TEST(CublasLtAbi, IsThatOfTheInstalledHeader) {
#if !defined(FI_TEST_CUBLASLT_HEADER)
  GTEST_SKIP() << "cublasLt.h is not installed";
#endif
}

/// Sizes that do not depend on a header.
TEST(CublasLtAbi, ResultsOfHeuristicsAreAsDeclared) {
  EXPECT_EQ(offsetof(flashinfer::cublaslt::HeuristicResult, workspace), 64u);
  EXPECT_EQ(offsetof(flashinfer::cublaslt::HeuristicResult, state), 72u);
}
