// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/nccl.h"

#include <dlfcn.h>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/lazy.h"

namespace flashinfer::comm::nccl {
namespace {

constinit Lazy<Library, ForkMutex> lazy(ForkLayer::kCore, 104);

/// The name of a symbol that the library lacks, or null.
const char* bind(Library& l, void* lib) {
  const char* lacks = nullptr;
#define FI_NCCL_BIND(result, name, arguments)                          \
  l.name = reinterpret_cast<result(*) arguments>(::dlsym(lib, #name)); \
  if (l.name == nullptr && lacks == nullptr) lacks = #name;
  FI_NCCL_API(FI_NCCL_BIND)
#undef FI_NCCL_BIND
#define FI_NCCL_BIND(result, name, arguments) l.name = reinterpret_cast<result(*) arguments>(::dlsym(lib, #name));
  FI_NCCL_OPTIONAL_API(FI_NCCL_BIND)
#undef FI_NCCL_BIND
  return lacks;
}

void open(Library& l) {
  const auto bound = [&](void* lib) { return bind(l, lib); };
  if (!cuda::open_library({"FLASHINFER_NCCL", "libnccl.so", "nvidia-nccl-cu12", {2}}, bound, l.why_not)) return;
  l.path = fs::object_of(reinterpret_cast<const void*>(l.ncclAllGather));
  if (l.ncclGetVersion(&l.version) != kSuccess || l.version < 21800)
    l.why_not = str("NCCL is ", l.version / 10000, ".", l.version / 100 % 100, " (", l.path,
                    "), but 2.18 or newer is needed: pip install -U nvidia-nccl-cu12");
}
}  // namespace

const Library& library() { return lazy.get(open); }

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::kF16: return kFloat16;
    case DType::kBF16: return kBfloat16;
    case DType::kF32: return kFloat32;
    case DType::kF64: return kFloat64;
    case DType::kI8: return kInt8;
    case DType::kU8: return kUint8;
    case DType::kI32: return kInt32;
    case DType::kI64: return kInt64;
    default: throw ValueError(str("NCCL adds no numbers of ", name(dtype)));
  }
}

void detail::forget() { lazy.forget(); }

}  // namespace flashinfer::comm::nccl
