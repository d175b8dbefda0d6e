// SPDX-License-Identifier: Apache-2.0
// libcuda, opened at run time: the entry points this library uses, and readable errors. Types match the driver's ABI,
// so that the build needs no CUDA toolkit.
#pragma once
#include <cstddef>
#include <string>

#include "flashinfer/core/dtype.h"

#pragma GCC visibility push(default)

namespace flashinfer::cuda {

using Status = int;                  // CUresult; 0 is success
using Handle = void*;                // CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUgraph
using Address = unsigned long long;  // CUdeviceptr

enum : Status {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kCooperativeTooLarge = 720,
  kSystemDriverMismatch = 803,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
};

/// CUlaunchAttribute: 4 bytes of name, 4 of padding, a union of 64 bytes.
struct LaunchAttribute {
  enum Name : int { kCooperative = 2, kClusterDimension = 4, kProgrammaticStreamSerialization = 6 };
  int name;
  int padding;
  union {
    int on;
    unsigned dim[3];
    char bytes[64];
  };
};
/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);
/// CUipcMemHandle.
struct IpcHandle {
  char bytes[64];
};

/// X-macro: name in libcuda, arguments. Names include their version: a bare cuMemAlloc would be the interface of CUDA
/// 3.
#define FI_CUDA_API(X)                                                                                \
  X(cuInit, (unsigned))                                                                               \
  X(cuDriverGetVersion, (int*))                                                                       \
  X(cuGetErrorName, (Status, const char**))                                                           \
  X(cuGetErrorString, (Status, const char**))                                                         \
  X(cuDeviceGetCount, (int*))                                                                         \
  X(cuDeviceGet, (int*, int))                                                                         \
  X(cuDeviceGetName, (char*, int, int))                                                               \
  X(cuDeviceGetAttribute, (int*, int, int))                                                           \
  X(cuDeviceTotalMem_v2, (size_t*, int))                                                              \
  X(cuDevicePrimaryCtxRetain, (Handle*, int))                                                         \
  X(cuDeviceGetDefaultMemPool, (Handle*, int))                                                        \
  X(cuMemPoolGetAttribute, (Handle, int, void*))                                                      \
  X(cuMemPoolSetAttribute, (Handle, int, void*))                                                      \
  X(cuCtxGetCurrent, (Handle*))                                                                       \
  X(cuCtxPushCurrent_v2, (Handle))                                                                    \
  X(cuCtxPopCurrent_v2, (Handle*))                                                                    \
  X(cuCtxSynchronize, ())                                                                             \
  X(cuMemGetInfo_v2, (size_t*, size_t*))                                                              \
  X(cuMemAlloc_v2, (Address*, size_t))                                                                \
  X(cuMemFree_v2, (Address))                                                                          \
  X(cuMemAllocAsync, (Address*, size_t, Handle))                                                      \
  X(cuMemFreeAsync, (Address, Handle))                                                                \
  X(cuMemHostAlloc, (void**, size_t, unsigned))                                                       \
  X(cuMemFreeHost, (void*))                                                                           \
  X(cuPointerGetAttribute, (void*, int, Address))                                                     \
  X(cuIpcGetMemHandle, (IpcHandle*, Address))                                                         \
  X(cuIpcOpenMemHandle_v2, (Address*, IpcHandle, unsigned))                                           \
  X(cuIpcCloseMemHandle, (Address))                                                                   \
  X(cuDeviceCanAccessPeer, (int*, int, int))                                                          \
  X(cuCtxEnablePeerAccess, (Handle, unsigned))                                                        \
  X(cuMemcpyAsync, (Address, Address, size_t, Handle))                                                \
  X(cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, Handle))                                     \
  X(cuMemcpyDtoHAsync_v2, (void*, Address, size_t, Handle))                                           \
  X(cuMemsetD8Async, (Address, unsigned char, size_t, Handle))                                        \
  X(cuStreamCreate, (Handle*, unsigned))                                                              \
  X(cuStreamDestroy_v2, (Handle))                                                                     \
  X(cuStreamSynchronize, (Handle))                                                                    \
  X(cuStreamWaitEvent, (Handle, Handle, unsigned))                                                    \
  X(cuStreamIsCapturing, (Handle, int*))                                                              \
  X(cuStreamGetCaptureInfo_v2, (Handle, int*, unsigned long long*, Handle*, const Handle**, size_t*)) \
  X(cuThreadExchangeStreamCaptureMode, (int*))                                                        \
  X(cuStreamBeginCapture_v2, (Handle, int))                                                           \
  X(cuStreamEndCapture, (Handle, Handle*))                                                            \
  X(cuGraphInstantiateWithFlags, (Handle*, Handle, unsigned long long))                               \
  X(cuGraphLaunch, (Handle, Handle))                                                                  \
  X(cuGraphDestroy, (Handle))                                                                         \
  X(cuGraphExecDestroy, (Handle))                                                                     \
  X(cuEventCreate, (Handle*, unsigned))                                                               \
  X(cuEventDestroy_v2, (Handle))                                                                      \
  X(cuEventRecord, (Handle, Handle))                                                                  \
  X(cuEventQuery, (Handle))                                                                           \
  X(cuEventSynchronize, (Handle))                                                                     \
  X(cuEventElapsedTime, (float*, Handle, Handle))                                                     \
  X(cuModuleLoadData, (Handle*, const void*))                                                         \
  X(cuModuleUnload, (Handle))                                                                         \
  X(cuModuleGetFunction, (Handle*, Handle, const char*))                                              \
  X(cuFuncGetAttribute, (int*, int, Handle))                                                          \
  X(cuFuncSetAttribute, (Handle, int, int))                                                           \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, Handle, int, size_t))                         \
  X(cuLaunchKernelEx, (const LaunchConfig*, Handle, void**, void**))

struct Api {
#define FI_CUDA_MEMBER(name, arguments) Status(*name) arguments = nullptr;
  FI_CUDA_API(FI_CUDA_MEMBER)
#undef FI_CUDA_MEMBER
};

struct Driver {
  Api api;
  std::string path;  // as given to the loader
  int version = 0;   // 12040 for CUDA 12.4
  int devices = 0;
  std::string why_not;  // why no GPU can be used, and how to fix that; empty: usable
};
/// libcuda of FLASHINFER_LIBCUDA, else libcuda.so.1; opened and initialised once. Needs CUDA 12.0 (cuLaunchKernelEx).
const Driver& driver();
/// The entry points. NotImplementedError with `why_not` when there is no usable driver.
const Api& api();
/// "12.4"
std::string version_text(int version);

/// Throws RuntimeError unless `status` is 0, with the failed action, the driver's name, number and text of the error,
/// and advice. An error that ruins the context (an illegal address in a kernel) is kept: see sticky_error().
void check(Status status, const char* what);
/// The first error after which nothing can run on cuda:`index` in this process; empty: none. Other GPUs have contexts
/// of their own, which live on.
std::string sticky_error(int index);

namespace detail {
/// The GPU whose context this thread has made current (Current), to which check() ascribes errors; returns the one
/// before.
int exchange_current_gpu(int index);
/// Drops driver, devices and errors (tests; libraries stay loaded).
void forget_driver();
}  // namespace detail
}  // namespace flashinfer::cuda

#pragma GCC visibility pop
