// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/peers.h"

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"

namespace flashinfer::cuda {
namespace {
Address address(const void* p) { return reinterpret_cast<Address>(p); }
constexpr unsigned kLazyEnablePeerAccess = 1;
constexpr Status kPeerAccessAlreadyEnabled = 704;
}  // namespace

void* allocate_exported(size_t bytes, int index) {
  const Current current(index);
  const Api& a = api();
  Address p = 0;
  check(a.cuMemAlloc_v2(&p, bytes), "cuMemAlloc");
  try {
    check(a.cuMemsetD8Async(p, 0, bytes, nullptr), "cuMemsetD8Async");
    check(a.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  } catch (...) {
    a.cuMemFree_v2(p);
    throw;
  }
  return reinterpret_cast<void*>(p);
}

void free_exported(void* p, int index) noexcept try {
  if (p == nullptr) return;
  const Current current(index);
  const BesideCapture beside;
  api().cuMemFree_v2(address(p));
} catch (const std::exception&) {  // the context is gone, and the memory with it
}

IpcHandle export_memory(const void* p, int index) {
  const Current current(index);
  IpcHandle handle{};
  check(api().cuIpcGetMemHandle(&handle, address(p)), "cuIpcGetMemHandle");
  return handle;
}

void* import_memory(const IpcHandle& handle, int index) {
  const Current current(index);
  Address p = 0;
  check(api().cuIpcOpenMemHandle_v2(&p, handle, kLazyEnablePeerAccess), "cuIpcOpenMemHandle");
  return reinterpret_cast<void*>(p);
}

void close_imported(void* p, int index) noexcept try {
  if (p == nullptr) return;
  const Current current(index);
  const BesideCapture beside;
  api().cuIpcCloseMemHandle(address(p));
} catch (const std::exception&) {
}

void enable_peer(int index, int peer) {
  if (index == peer) return;
  const Api& a = api();
  int own = 0, other = 0, can = 0;
  check(a.cuDeviceGet(&own, index), "cuDeviceGet");
  check(a.cuDeviceGet(&other, peer), "cuDeviceGet");
  check(a.cuDeviceCanAccessPeer(&can, own, other), "cuDeviceCanAccessPeer");
  FI_CHECK(can != 0, RuntimeError, "cuda:", index, " cannot access the memory of cuda:", peer,
           ": the driver finds no link between them");
  Handle of_peer = nullptr;
  {
    const Current there(peer);
    check(a.cuCtxGetCurrent(&of_peer), "cuCtxGetCurrent");
  }
  const Current current(index);
  const Status s = a.cuCtxEnablePeerAccess(of_peer, 0);
  if (s != kPeerAccessAlreadyEnabled) check(s, "cuCtxEnablePeerAccess");
}

}  // namespace flashinfer::cuda
