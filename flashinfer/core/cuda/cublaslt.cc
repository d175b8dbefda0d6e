// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/cublaslt.h"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/fs.h"

namespace flashinfer::cublaslt {
namespace {

std::mutex mutex;
std::atomic<const Library*> opened{nullptr};

void open(Library& l) {
  std::string searched, missing;
  for (const std::string& path : cuda::library_candidates("FLASHINFER_CUBLASLT", "libcublasLt.so", searched)) {
    void* lib = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (lib == nullptr) continue;
    const char* lacks = nullptr;
#define FI_CUBLASLT_BIND(result, name, arguments)                      \
  l.name = reinterpret_cast<result(*) arguments>(::dlsym(lib, #name)); \
  if (l.name == nullptr && lacks == nullptr) lacks = #name;
    FI_CUBLASLT_API(FI_CUBLASLT_BIND)
#undef FI_CUBLASLT_BIND
    if (lacks != nullptr) {
      missing = str("; ", path, " has no ", lacks);
      ::dlclose(lib);
      continue;
    }
    l.path = fs::object_of(reinterpret_cast<const void*>(l.cublasLtMatmul));
    l.version = l.cublasLtGetVersion();
    if (l.version < 120000)
      l.why_not = str("cuBLASLt is ", l.version / 10000, ".x (", l.path,
                      "), but 12.0 or newer is needed: pip install -U nvidia-cublas");
    return;
  }
  l.why_not = str("libcublasLt was not found; searched ", searched, missing,
                  " (pip install nvidia-cublas, or set FLASHINFER_CUBLASLT)");
}

}  // namespace

const Library& library() {
  if (const Library* l = opened.load(std::memory_order_acquire)) return *l;
  const std::lock_guard lock(mutex);
  if (const Library* l = opened.load(std::memory_order_relaxed)) return *l;
  static auto& all = *new std::vector<std::unique_ptr<Library>>;  // never destroyed, like the driver's
  Library* l = all.emplace_back(std::make_unique<Library>()).get();
  open(*l);
  opened.store(l, std::memory_order_release);
  return *l;
}

void check(Status status, const char* what) {
  if (status == 0) [[likely]]
    return;
  const char* text = library().cublasLtGetStatusName(status);
  throw RuntimeError(str("cublasLt: ", what, " failed: ", text ? text : "an unknown status", " (", status, ")"));
}

namespace detail {
void forget() { opened.store(nullptr); }
}  // namespace detail

}  // namespace flashinfer::cublaslt
