// SPDX-License-Identifier: Apache-2.0
// The numbers, layouts and signatures of core/cuda/driver.h against NVIDIA's cuda.h, where it is installed: wrong ones
// do not compile.
#include <gtest/gtest.h>

#include "flashinfer/core/cuda/driver.h"
#include "tests/cuda/same_abi.h"

#if defined(FI_TEST_CUDA_HEADER)
#include <cuda.h>

// Newer headers show only its successor, which has one argument more; libcuda keeps it.
extern "C" CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                                      const CUgraphNode**, size_t*);

namespace {
namespace ours = flashinfer::cuda;
using ours::Address, ours::Handle, ours::IpcHandle, ours::LaunchAttribute, ours::LaunchConfig, ours::Status;

static_assert(int(ours::kOutOfMemory) == int(CUDA_ERROR_OUT_OF_MEMORY) &&
              int(ours::kNoDevice) == int(CUDA_ERROR_NO_DEVICE));
static_assert(int(ours::kInvalidImage) == int(CUDA_ERROR_INVALID_IMAGE) &&
              int(ours::kNoBinary) == int(CUDA_ERROR_NO_BINARY_FOR_GPU));
static_assert(int(ours::kInvalidHandle) == int(CUDA_ERROR_INVALID_HANDLE) &&
              int(ours::kNotReady) == int(CUDA_ERROR_NOT_READY));
static_assert(int(ours::kIllegalAddress) == int(CUDA_ERROR_ILLEGAL_ADDRESS) &&
              int(ours::kLaunchOutOfResources) == int(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
static_assert(int(ours::kCooperativeTooLarge) == int(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE));
static_assert(int(ours::kCaptureUnsupported) == int(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
static_assert(int(ours::kCaptureInvalidated) == int(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));

static_assert(int(LaunchAttribute::kCooperative) == int(CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
static_assert(int(LaunchAttribute::kClusterDimension) == int(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(int(LaunchAttribute::kProgrammaticStreamSerialization) ==
              int(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              offsetof(LaunchAttribute, on) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig) &&
              offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, count) == offsetof(CUlaunchConfig, numAttrs));

#define FI_SAME(name, arguments) static_assert(flashinfer::kSameAbi<Status(*) arguments, decltype(&::name)>, #name);
FI_CUDA_API(FI_SAME)
#undef FI_SAME

}  // namespace
#endif

/// The assertions above.
TEST(DriverAbi, IsThatOfTheInstalledHeader) {
#if !defined(FI_TEST_CUDA_HEADER)
  GTEST_SKIP() << "cuda.h is not installed";
#endif
}

/// Sizes that do not depend on a header.
TEST(DriverAbi, LaunchesAreAsDeclared) {
  EXPECT_EQ(offsetof(flashinfer::cuda::LaunchConfig, stream), 32u);
  EXPECT_EQ(offsetof(flashinfer::cuda::LaunchAttribute, on), 8u);
}
