// SPDX-License-Identifier: Apache-2.0
// libnccl, opened at run time: the entry points this library uses. The numbers are the library's ABI (nccl.h of
// NVIDIA).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "flashinfer/core/cuda/driver.h"
#include "flashinfer/core/dtype.h"

namespace flashinfer::comm::nccl {

using cuda::Handle;  // ncclComm_t, ncclWindow_t, CUstream
enum Result : int {  // ncclResult_t
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};
enum Type : int {  // ncclDataType_t
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
inline constexpr int kSum = 0;                    // ncclRedOp_t
inline constexpr int kWindowCollSymmetric = 0x1;  // NCCL_WIN_COLL_SYMMETRIC

/// ncclUniqueId.
struct UniqueId {
  char internal[128];
};
/// The beginning of ncclConfig_t that every version from 2.14 on reads.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int padding = 0;
};
static_assert(sizeof(UniqueId) == 128 && sizeof(Config) == 24);

#define FI_NCCL_API(X)                                                                            \
  X(Result, ncclGetVersion, (int*))                                                               \
  X(Result, ncclGetUniqueId, (UniqueId*))                                                         \
  X(Result, ncclCommInitRankConfig, (Handle*, int ranks, UniqueId, int rank, Config*))            \
  X(Result, ncclCommGetAsyncError, (Handle, Result*))                                             \
  X(Result, ncclCommAbort, (Handle))                                                              \
  X(Result, ncclCommFinalize, (Handle))                                                           \
  X(Result, ncclCommDestroy, (Handle))                                                            \
  X(const char*, ncclGetErrorString, (Result))                                                    \
  X(const char*, ncclGetLastError, (Handle))                                                      \
  X(Result, ncclAllReduce, (const void*, void*, size_t, Type, int op, Handle, Handle stream))     \
  X(Result, ncclAllGather, (const void*, void*, size_t, Type, Handle, Handle stream))             \
  X(Result, ncclReduceScatter, (const void*, void*, size_t, Type, int op, Handle, Handle stream)) \
  X(Result, ncclSend, (const void*, size_t, Type, int to, Handle, Handle stream))                 \
  X(Result, ncclRecv, (void*, size_t, Type, int from, Handle, Handle stream))                     \
  X(Result, ncclGroupStart, ())                                                                   \
  X(Result, ncclGroupEnd, ())
/// Null where the library is older: windows came with 2.27.
#define FI_NCCL_OPTIONAL_API(X)                                                  \
  X(Result, ncclCommWindowRegister, (Handle, void*, size_t, Handle*, int flags)) \
  X(Result, ncclCommWindowDeregister, (Handle, Handle))

struct Library {
#define FI_NCCL_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  FI_NCCL_API(FI_NCCL_MEMBER)
  FI_NCCL_OPTIONAL_API(FI_NCCL_MEMBER)
#undef FI_NCCL_MEMBER
  std::string path;
  int version = 0;      // 22707 for 2.27.7
  std::string why_not;  // why it cannot be used, and how to fix that
};
/// FLASHINFER_NCCL, else the wheel nvidia-nccl of the active Python environment, CUDA_HOME, the loader's path; opened
/// once. Needs NCCL 2.18.
const Library& library();

/// The type that stands for elements of `dtype` in a sum. ValueError: NCCL adds no such numbers.
Type type_of(DType dtype);

namespace detail {
/// Closes nothing, but searches again at the next use (tests; libraries stay loaded).
void forget();
}  // namespace detail
}  // namespace flashinfer::comm::nccl
