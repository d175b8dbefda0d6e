// SPDX-License-Identifier: Apache-2.0
// The fake driver: devices, contexts, memory.
#include "fake_machine.h"

using namespace fake;
using namespace flashinfer::cuda;

extern "C" {

int cuInit(unsigned) {
  ENTER();
  return machine().gpu.init_status;
}
int cuDriverGetVersion(int* v) { return *v = machine().gpu.version, 0; }
int cuGetErrorName(int s, const char** name) {
  *name = s == kOutOfMemory          ? "CUDA_ERROR_OUT_OF_MEMORY"
          : s == kIllegalAddress     ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : s == kCaptureUnsupported ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                     : "CUDA_ERROR_OF_THE_TEST";
  return 0;
}
int cuGetErrorString(int, const char** text) { return *text = "as the driver says it", 0; }
int cuDeviceGetCount(int* n) { return *n = machine().gpu.devices, 0; }
int cuDeviceGet(int* d, int i) { return *d = i, 0; }
int cuDeviceGetName(char* name, int n, int) { return std::strncpy(name, "Fake GPU", static_cast<size_t>(n)), 0; }
int cuDeviceGetAttribute(int* v, int attribute, int) {
  const Gpu& g = machine().gpu;
  switch (attribute) {
    case 16: *v = 132; break;
    case 38: *v = 50 << 20; break;
    case 75: *v = g.major; break;
    case 76: *v = g.minor; break;
    case 81: *v = 233472; break;
    case 82: *v = 65536; break;
    case 97: *v = 232448; break;
    case 115: *v = g.pools; break;
    case 120: *v = g.major >= 9; break;
    default: return kInvalidValue;
  }
  return 0;
}
int cuDeviceTotalMem_v2(size_t* n, int) { return *n = machine().gpu.memory, 0; }
int cuDevicePrimaryCtxRetain(Handle* c, int d) {
  ENTER();
  *c = reinterpret_cast<Handle>(static_cast<uintptr_t>(0xc0 + d));
  return 0;
}
int cuDeviceGetDefaultMemPool(Handle* pool, int) { return *pool = &machine().gpu.pool_threshold, 0; }
int cuMemPoolGetAttribute(Handle pool, int attribute, void* value) {
  return attribute == 4 ? (std::memcpy(value, pool, 8), 0) : int{kInvalidValue};
}
int cuMemPoolSetAttribute(Handle pool, int attribute, void* value) {
  return attribute == 4 ? (std::memcpy(pool, value, 8), 0) : int{kInvalidValue};
}
int cuCtxGetCurrent(Handle* c) { return *c = contexts().empty() ? nullptr : contexts().back(), 0; }
int cuCtxPushCurrent_v2(Handle c) { return contexts().push_back(c), 0; }
int cuCtxPopCurrent_v2(Handle* c) {
  NEEDS_CONTEXT();
  *c = contexts().back();
  contexts().pop_back();
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Locked locked;
  *total = machine().gpu.memory, *free = *total - machine().gpu.allocated;
  return 0;
}
int cuMemAlloc_v2(Address* p, size_t n) {
  ENTER();
  NEEDS_CONTEXT();
  return forbidden_by_capture() ? int{kCaptureUnsupported} : allocate(p, n);
}
int cuMemFree_v2(Address p) {
  ENTER();
  if (forbidden_by_capture()) return kCaptureUnsupported;
  for (auto& [h, s] : machine().streams) drain(*s);  // it waits for the device
  free_now(p);
  return 0;
}
int cuMemAllocAsync(Address* p, size_t n, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  if (n == 0) return kInvalidValue;
  const Stream* s = stream_of(stream);
  const int status = s ? allocate(p, n) : int{kInvalidHandle};
  if (status == 0 && s->capturing) machine().of_capture.insert(host(*p));
  return status;
}
int cuMemFreeAsync(Address p, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  Stream* s = stream_of(stream);
  if (s && s->capturing && !machine().of_capture.erase(host(p))) return s->invalid = true, int{kInvalidValue};
  if (s && s->capturing) return enqueue(stream, {"free", [] {}});  // each launch allocates it again, at this address
  return enqueue(stream, {"free", [p] { free_now(p); }});
}
/// A handle holds the address in its process. Opened memory is memory of this machine: nothing is shared.
int cuIpcGetMemHandle(IpcHandle* handle, Address p) {
  ENTER();
  NEEDS_CONTEXT();
  const auto it = machine().blocks.find(static_cast<char*>(host(p)));
  if (it == machine().blocks.end()) return kInvalidValue;
  *handle = {};
  const uint64_t said[2] = {p, it->second.bytes};
  std::memcpy(handle->bytes, said, sizeof said);
  return 0;
}
int cuIpcOpenMemHandle_v2(Address* p, IpcHandle handle, unsigned flags) {
  ENTER();
  NEEDS_CONTEXT();
  if (forbidden_by_capture() || flags != 1) return kInvalidValue;
  uint64_t said[2];
  std::memcpy(said, handle.bytes, sizeof said);
  return allocate(p, said[1]);
}
int cuIpcCloseMemHandle(Address p) {
  ENTER();
  NEEDS_CONTEXT();
  free_now(p);
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int, int) { return *can = machine().gpu.peers, 0; }
int cuCtxEnablePeerAccess(Handle, unsigned) {
  ENTER();
  NEEDS_CONTEXT();
  return 0;
}
int cuMemHostAlloc(void** p, size_t n, unsigned) {
  ENTER();
  NEEDS_CONTEXT();
  if (forbidden_by_capture()) return kCaptureUnsupported;
  *p = std::malloc(n);
  machine().pinned[static_cast<char*>(*p)] = n;
  return 0;
}
int cuMemFreeHost(void* p) {
  const Locked locked;
  if (forbidden_by_capture()) return kCaptureUnsupported;
  machine().pinned.erase(static_cast<char*>(p));
  std::free(p);
  return 0;
}
int cuMemcpyAsync(Address to, Address from, size_t n, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  return enqueue(stream, {"copy " + std::to_string(n), [=] {
                            check_device(to, n, "copy"), check_device(from, n, "copy");
                            std::memcpy(host(to), host(from), n);
                          }});
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  check_pinned(from, n);
  return enqueue(stream, {"copy " + std::to_string(n) + " to device", [=] {
                            check_device(to, n, "copy to device");
                            std::memcpy(host(to), from, n);
                          }});
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  check_pinned(to, n);
  return enqueue(stream, {"copy " + std::to_string(n) + " to host", [=] {
                            check_device(from, n, "copy to host");
                            std::memcpy(to, host(from), n);
                          }});
}
int cuMemsetD8Async(Address to, unsigned char value, size_t n, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  return enqueue(stream, {"fill", [=] {
                            check_device(to, n, "fill");
                            std::memset(host(to), value, n);
                          }});
}

}  // extern "C"
