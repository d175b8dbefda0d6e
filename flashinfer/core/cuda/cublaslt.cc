// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/cublaslt.h"

#include <dlfcn.h>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/lazy.h"

namespace flashinfer::cublaslt {
namespace {

constinit Lazy<Library> lazy;

/// The name of a symbol that the library lacks, or null.
const char* bind(Library& l, void* lib) {
  const char* lacks = nullptr;
#define FI_CUBLASLT_BIND(result, name, arguments)                      \
  l.name = reinterpret_cast<result(*) arguments>(::dlsym(lib, #name)); \
  if (l.name == nullptr && lacks == nullptr) lacks = #name;
  FI_CUBLASLT_API(FI_CUBLASLT_BIND)
#undef FI_CUBLASLT_BIND
  return lacks;
}

void open(Library& l) {
  const auto bound = [&](void* lib) { return bind(l, lib); };
  if (!cuda::open_library({"FLASHINFER_CUBLASLT", "libcublasLt.so", "nvidia-cublas"}, bound, l.why_not)) return;
  l.path = fs::object_of(reinterpret_cast<const void*>(l.cublasLtMatmul));
  l.version = l.cublasLtGetVersion();
  if (l.version < 120000)
    l.why_not = str("cuBLASLt is ", l.version / 10000, ".x (", l.path,
                    "), but 12.0 or newer is needed: pip install -U nvidia-cublas");
}

}  // namespace

const Library& library() { return lazy.get(open); }

void check(Status status, const char* what) {
  if (status == 0) [[likely]]
    return;
  const char* text = library().cublasLtGetStatusName(status);
  throw RuntimeError(str("cublasLt: ", what, " failed: ", text ? text : "an unknown status", " (", status, ")"));
}

namespace detail {
void forget() { lazy.forget(); }
}  // namespace detail

}  // namespace flashinfer::cublaslt
