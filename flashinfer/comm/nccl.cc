// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/nccl.h"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/fs.h"

namespace flashinfer::comm::nccl {
namespace {

constinit ForkMutex g_mutex(ForkLayer::kCore, 104);
std::atomic<const Library*> opened{nullptr};

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
  std::string searched, missing;
  for (const std::string& path : cuda::library_candidates("FLASHINFER_NCCL", "libnccl.so", searched)) {
    void* lib = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (lib == nullptr) lib = ::dlopen((path + ".2").c_str(), RTLD_NOW | RTLD_LOCAL);  // of the loader's path
    if (lib == nullptr) continue;
    if (const char* lacks = bind(l, lib)) {
      missing = str("; ", path, " has no ", lacks);
      ::dlclose(lib);
      continue;
    }
    l.path = fs::object_of(reinterpret_cast<const void*>(l.ncclAllGather));
    if (l.ncclGetVersion(&l.version) != kSuccess || l.version < 21800)
      l.why_not = str("NCCL is ", l.version / 10000, ".", l.version / 100 % 100, " (", l.path,
                      "), but 2.18 or newer is needed: pip install -U nvidia-nccl-cu12");
    return;
  }
  l.why_not = str("libnccl was not found; searched ", searched, missing,
                  " (pip install nvidia-nccl-cu12, or set FLASHINFER_NCCL)");
}
}  // namespace

const Library& library() {
  if (const Library* l = opened.load(std::memory_order_acquire)) return *l;
  const std::scoped_lock lock(g_mutex);
  if (const Library* l = opened.load(std::memory_order_relaxed)) return *l;
  static auto& all = *new std::vector<std::unique_ptr<Library>>;  // never destroyed, like the driver's
  Library* l = all.emplace_back(std::make_unique<Library>()).get();
  open(*l);
  opened.store(l, std::memory_order_release);
  return *l;
}

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

void detail::forget() { opened.store(nullptr, std::memory_order_release); }

}  // namespace flashinfer::comm::nccl
