// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/device.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/cuda/waits.h"

namespace flashinfer::cuda {
namespace {

enum DeviceAttribute : int {
  kMultiprocessors = 16,
  kL2Bytes = 38,
  kMajor = 75,
  kMinor = 76,
  kSharedPerSm = 81,
  kRegistersPerSm = 82,
  kSharedPerBlockOptin = 97,
  kMemoryPools = 115,
  kClusterLaunch = 120,
};
constexpr unsigned kNonBlocking = 1, kDisableTiming = 2;

struct Known {
  const Driver* driver;
  DeviceInfo info;
  int ordinal = 0;
  std::once_flag once;
  Handle context = nullptr;  // the primary one, from its first use on; kept for the life of the process: the program's
                             // own runtime shares it
};

Known& known(int index) {
  static std::mutex mutex;
  static auto& table = *new std::map<std::pair<const Driver*, int>, std::unique_ptr<Known>>;
  const Api& a = api();
  const Driver* d = &driver();
  const std::lock_guard lock(mutex);
  auto& slot = table[{d, index}];
  if (slot) return *slot;
  FI_CHECK(index >= 0 && index < d->devices, ValueError, "cuda:", index, " is not there: the driver finds ", d->devices,
           d->devices == 1 ? " GPU" : " GPUs", " (cuda:0", d->devices > 1 ? str(" to cuda:", d->devices - 1) : "", ")");
  auto k = std::make_unique<Known>();
  k->driver = d;
  int& ordinal = k->ordinal;
  check(a.cuDeviceGet(&ordinal, index), "cuDeviceGet");
  char name[256] = "";
  check(a.cuDeviceGetName(name, sizeof name, ordinal), "cuDeviceGetName");
  DeviceInfo& i = k->info;
  i.name = name;
  const auto query = [&](int attribute) {
    int value = 0;
    check(a.cuDeviceGetAttribute(&value, attribute, ordinal), "cuDeviceGetAttribute");
    return value;
  };
  i.major = query(kMajor), i.minor = query(kMinor), i.sms = query(kMultiprocessors),
  i.shared_per_block = query(kSharedPerBlockOptin);
  i.shared_per_sm = query(kSharedPerSm), i.registers_per_sm = query(kRegistersPerSm), i.l2_bytes = query(kL2Bytes);
  i.memory_pools = query(kMemoryPools) != 0, i.clusters = query(kClusterLaunch) != 0;
  size_t bytes = 0;
  check(a.cuDeviceTotalMem_v2(&bytes, ordinal), "cuDeviceTotalMem");
  i.memory = bytes;
  slot = std::move(k);
  return *slot;
}

/// known() without the lock for the device a thread used last.
Known& recent(int index) {
  thread_local Known* last = nullptr;
  thread_local int last_index = -1;
  if (last_index == index && last->driver == &driver()) [[likely]]
    return *last;
  last = &known(index);
  last_index = index;
  return *last;
}

}  // namespace

const DeviceInfo& device_info(int index) { return recent(index).info; }

std::string why_no_device(int index) {
  if (!driver().why_not.empty()) return driver().why_not;
  if (std::string s = sticky_error(index); !s.empty()) return "the GPU faulted earlier in this process (" + s + ")";
  try {
    device_info(index);
    return {};
  } catch (const Error& e) {
    return e.message();
  }
}

namespace {

/// Unused memory that the driver's pool keeps across a synchronisation. By default each wait returns all of it to the
/// system, and the next allocation maps it again. A larger value set by the program is kept.
constexpr uint64_t kPoolKeeps = uint64_t{1} << 30;

void keep_pool(const Api& a, int ordinal) {
  constexpr int kReleaseThreshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  Handle pool = nullptr;
  uint64_t bytes = 0;
  check(a.cuDeviceGetDefaultMemPool(&pool, ordinal), "cuDeviceGetDefaultMemPool");
  check(a.cuMemPoolGetAttribute(pool, kReleaseThreshold, &bytes), "cuMemPoolGetAttribute");
  if (bytes >= kPoolKeeps) return;
  bytes = kPoolKeeps;
  check(a.cuMemPoolSetAttribute(pool, kReleaseThreshold, &bytes), "cuMemPoolSetAttribute");
}

}  // namespace

Current::Current(int index) {
  Known& k = recent(index);
  const Api& a = k.driver->api;
  std::call_once(k.once, [&] {
    check(a.cuDevicePrimaryCtxRetain(&k.context, k.ordinal), "cuDevicePrimaryCtxRetain");
    if (k.info.memory_pools) keep_pool(a, k.ordinal);
  });
  Handle now = nullptr;
  check(a.cuCtxGetCurrent(&now), "cuCtxGetCurrent");
  if (now != k.context) {
    check(a.cuCtxPushCurrent_v2(k.context), "cuCtxPushCurrent");
    pushed_ = true;
  }
  previous_ = detail::exchange_current_gpu(index);
}
Current::~Current() {
  detail::exchange_current_gpu(previous_);
  Handle popped = nullptr;
  if (pushed_) driver().api.cuCtxPopCurrent_v2(&popped);
}

Stream::Stream(int index) : index_(index) {
  const Current current(index);
  check(api().cuStreamCreate(&handle_, kNonBlocking), "cuStreamCreate");
}
Stream::~Stream() {
  stream_ends(index_, handle_);
  driver().api.cuStreamDestroy_v2(handle_);
}

Event::Event(int index, bool timing) : index_(index) {
  const Current current(index);
  check(api().cuEventCreate(&handle_, timing ? 0 : kDisableTiming), "cuEventCreate");
}
Event::~Event() {  // memory may hold events of a driver that was dropped
  if (const auto destroy = driver().api.cuEventDestroy_v2) destroy(handle_);
}
void Event::record(Handle stream) {
  const Current current(index_);
  check(api().cuEventRecord(handle_, stream), "cuEventRecord");
}
bool Event::done() const {
  const Current current(index_);
  const BesideCapture beside;
  const Status s = api().cuEventQuery(handle_);
  if (s == kNotReady) return false;
  check(s, "cuEventQuery");
  return true;
}
void Event::wait() const {
  const Current current(index_);
  const BesideCapture beside;
  check(api().cuEventSynchronize(handle_), "cuEventSynchronize");
}
void Event::wait_on(Handle stream) const {
  const Current current(index_);
  check(api().cuStreamWaitEvent(stream, handle_, 0), "cuStreamWaitEvent");
}
double Event::seconds_since(const Event& start) const {
  const Current current(index_);
  float ms = 0;
  check(api().cuEventElapsedTime(&ms, start.handle_, handle_), "cuEventElapsedTime");
  return ms * 1e-3;
}

BesideCapture::BesideCapture() {
  check(api().cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
}
BesideCapture::~BesideCapture() { driver().api.cuThreadExchangeStreamCaptureMode(&mode_); }

Graph::Graph(int index, Handle stream, const std::function<void()>& enqueue) : index_(index) {
  constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  const Current current(index);
  const Api& a = api();
  check(a.cuStreamBeginCapture_v2(stream, kThreadLocal), "cuStreamBeginCapture");
  Handle graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    if (a.cuStreamEndCapture(stream, &graph) == kOk && graph != nullptr) a.cuGraphDestroy(graph);
    throw;
  }
  check(a.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  const Status s = a.cuGraphInstantiateWithFlags(&handle_, graph, 0);
  a.cuGraphDestroy(graph);
  check(s, "cuGraphInstantiate");
}
Graph::~Graph() { driver().api.cuGraphExecDestroy(handle_); }
void Graph::launch(Handle stream) const {
  const Current current(index_);
  check(api().cuGraphLaunch(handle_, stream), "cuGraphLaunch");
}

void synchronize(int index, Handle stream) {
  const Current current(index);
  const BesideCapture beside;
  check(api().cuStreamSynchronize(stream), "cuStreamSynchronize");
  waited(index);
}

namespace {
std::atomic<void (*)(int)> g_on_wait{nullptr};
}
void on_wait(void (*check)(int index)) { g_on_wait.store(check, std::memory_order_release); }
void waited(int index) {
  if (auto* const check = g_on_wait.load(std::memory_order_acquire)) check(index);
}

void synchronize_device(int index) {
  const Current current(index);
  const BesideCapture beside;
  check(api().cuCtxSynchronize(), "cuCtxSynchronize");
}

uint64_t capture_id(int index, Handle stream) {
  const Current current(index);
  int state = 0;
  unsigned long long id = 0;
  check(api().cuStreamGetCaptureInfo_v2(stream, &state, &id, nullptr, nullptr, nullptr), "cuStreamGetCaptureInfo");
  return state != 0 ? id : 0;
}

bool capturing(int index, Handle stream) {
  const Current current(index);
  int state = 0;
  check(api().cuStreamIsCapturing(stream, &state), "cuStreamIsCapturing");
  return state != 0;
}

}  // namespace flashinfer::cuda
