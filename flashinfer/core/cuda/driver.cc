// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/driver.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/lazy.h"

namespace flashinfer::cuda {
namespace {

constexpr int kOldest = 12000;

constinit Lazy<Driver> lazy;
std::mutex sticky_mutex;
std::map<int, std::string> sticky;  // by GPU; -1: not known which
thread_local int current_gpu = -1;

std::string text_of(const Api& a, Status status) {
  const char *name = nullptr, *sentence = nullptr;
  if (a.cuGetErrorName) a.cuGetErrorName(status, &name);
  if (a.cuGetErrorString) a.cuGetErrorString(status, &sentence);
  return str(name ? name : "an unknown error", " (", status, ")", sentence ? ": " : "", sentence ? sentence : "");
}

/// After these errors the GPU's context, and with it every allocation and kernel of the process there, is lost.
bool is_sticky(Status s) {
  return s == kIllegalAddress || s == 702 || s == 709 || s == 710 || (s >= 714 && s <= 719) || s == 214 || s == 220 ||
         s == 226;
}

const char* advice(Status s) {
  switch (s) {
    case kOutOfMemory: return "; free device memory or use smaller batches";
    case kNoBinary:
    case kInvalidImage: return "; the kernel was compiled for another GPU: remove it with `flashinfer clear-cache`";
    case kLaunchOutOfResources:
      return "; the kernel needs more registers or shared memory than a block may have on this GPU";
    case kCooperativeTooLarge: return "; a cooperative grid must fit on the GPU at once";
    case kCaptureUnsupported:
    case kCaptureInvalidated:
      return "; the stream is being captured into a graph, where this is not allowed: do it before the capture";
    default: return "";
  }
}

std::string why_not_initialised(const Api& a, Status status) {
  if (status == kNoDevice) return "the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)";
  if (status == kSystemDriverMismatch)
    return "the NVIDIA driver's library and kernel module differ in version: restart the machine";
  return "cuInit failed: " + text_of(a, status);
}

void open(Driver& d) {
  const std::string set = env::text("FLASHINFER_LIBCUDA");
  d.path = set.empty() ? "libcuda.so.1" : set;
  void* lib = ::dlopen(d.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib == nullptr) {
    d.why_not =
        set.empty()
            ? "there is no NVIDIA driver: the loader finds no libcuda.so.1 (install one, or set FLASHINFER_LIBCUDA)"
            : str("FLASHINFER_LIBCUDA is ", set, ", which cannot be loaded: ", ::dlerror());
    return;
  }
  const char* missing = nullptr;
#define FI_CUDA_BIND(name, arguments)                                      \
  d.api.name = reinterpret_cast<Status(*) arguments>(::dlsym(lib, #name)); \
  if (d.api.name == nullptr && missing == nullptr) missing = #name;
  FI_CUDA_API(FI_CUDA_BIND)
#undef FI_CUDA_BIND
  if (d.api.cuDriverGetVersion) d.api.cuDriverGetVersion(&d.version);
  if (missing != nullptr || d.version < kOldest) {
    d.why_not = str("the NVIDIA driver is for CUDA ", version_text(d.version), ", but 12.0 or newer is needed",
                    missing && d.version >= kOldest ? str(" (", d.path, " has no ", missing, ")") : "", ": update it");
    return;
  }
  if (const Status s = d.api.cuInit(0); s != kOk) {
    d.why_not = why_not_initialised(d.api, s);
    return;
  }
  if (const Status s = d.api.cuDeviceGetCount(&d.devices); s != kOk || d.devices == 0)
    d.why_not = why_not_initialised(d.api, s == kOk ? Status{kNoDevice} : s);
}

}  // namespace

std::string version_text(int version) { return str(version / 1000, ".", version % 1000 / 10); }

const Driver& driver() { return lazy.get(open); }

const Api& api() {
  const Driver& d = driver();
  FI_CHECK(d.why_not.empty(), NotImplementedError, "cuda: ", d.why_not);
  return d.api;
}

void check(Status status, const char* what) {
  if (status == kOk) [[likely]]
    return;
  const std::string text = text_of(driver().api, status);
  if (!is_sticky(status)) throw RuntimeError(str("cuda: ", what, " failed: ", text, advice(status)));
  std::string first;
  {
    const std::lock_guard lock(sticky_mutex);
    std::string& of_gpu = sticky[current_gpu];
    if (of_gpu.empty()) of_gpu = str(what, ": ", text);
    first = of_gpu;
  }
  const std::string seen = first == str(what, ": ", text) ? "" : " (first seen at " + first + ")";
  throw RuntimeError(
      str("cuda: ", what, " failed: ", text, "; a kernel launched earlier faulted", seen,
          ", and this process can use the GPU no more (the CPU still works); FLASHINFER_LOGLEVEL=10 with "
          "FLASHINFER_DUMP_SYNC=1 names the call, compute-sanitizer the line"));
}

std::string sticky_error(int index) {
  const std::lock_guard lock(sticky_mutex);
  for (const int gpu : {index, -1})
    if (const auto it = sticky.find(gpu); it != sticky.end()) return it->second;
  return {};
}

namespace detail {
int exchange_current_gpu(int index) { return std::exchange(current_gpu, index); }
void forget_driver() {
  lazy.forget();
  const std::lock_guard lock(sticky_mutex);
  sticky.clear();
}
}  // namespace detail

}  // namespace flashinfer::cuda
