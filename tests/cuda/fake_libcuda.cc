// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fake_cuda.h"

namespace {

using namespace flashinfer::cuda;
using fake::Gpu;

struct Operation {
  std::string what;
  std::function<void()> run;
};
struct Stream {
  int number = 0;
  uint64_t capturing = 0;  // the number of the capture
  bool invalid = false;
  std::deque<Operation> queue;
};
struct Event {
  Stream* stream = nullptr;
  int recorded = 0, done = 0;
};
struct Function {
  int shared_limit = 49152;
  size_t param_bytes = 0;
};
struct Block {
  size_t bytes;
  uint64_t id;
};

struct Machine {
  Gpu gpu;
  std::map<Handle, std::unique_ptr<Stream>> streams;
  std::set<Event*> events;
  std::map<char*, Block> blocks;
  std::map<char*, size_t> pinned;
  std::vector<Handle> contexts;  // the calling thread's stack: tests have one thread
  std::map<uint64_t, std::vector<Operation>> graphs;  // by the number of their capture
  uint64_t captures = 0, allocations = 0;
  std::set<char*> of_capture;    // allocated in the order of a captured stream
  int mode = 0;  // of the thread: 2 is relaxed
  int sticky = 0, numbers = 0;
};
Machine& machine() {
  static Machine& m = *new Machine;
  return m;
}

Stream* stream_of(Handle h) {
  Machine& m = machine();
  auto it = m.streams.find(h);
  if (it == m.streams.end()) {
    if (h != nullptr) return nullptr;
    it = m.streams.emplace(h, std::make_unique<Stream>()).first;
  }
  return it->second.get();
}

int enter(const char* name) {
  Machine& m = machine();
  ++m.gpu.calls[name];
  const auto it = m.gpu.fail.find(name);
  if (it == m.gpu.fail.end() || it->second == 0) return m.sticky;
  return std::exchange(it->second, 0);
}
#define ENTER()                                  \
  if (const int status = enter(__func__)) return status
#define NEEDS_CONTEXT() \
  if (machine().contexts.empty()) return 201

/// A call that may not be made while any stream is captured, unless the thread said that it knows better.
bool forbidden_by_capture() {
  Machine& m = machine();
  if (m.mode == 2) return false;
  bool any = false;
  for (auto& [h, s] : m.streams)
    if (s->capturing) any = s->invalid = true;
  return any;
}

void drain(Stream& s, const std::function<bool()>& enough = [] { return false; }) {
  while (!s.queue.empty() && !enough()) {
    Operation o = std::move(s.queue.front());
    s.queue.pop_front();
    machine().gpu.order.push_back("stream " + std::to_string(s.number) + ": " + o.what);
    o.run();
  }
}

int enqueue(Handle h, Operation o) {
  Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  if (s->invalid) return kCaptureInvalidated;
  if (s->capturing) machine().graphs[s->capturing].push_back(std::move(o));
  else s->queue.push_back(std::move(o));
  return 0;
}

char* host(Address a) { return reinterpret_cast<char*>(a ^ fake::kDeviceBit); }

size_t bytes_of(size_t n) { return n; }
size_t bytes_of(const Block& b) { return b.bytes; }
template <class Map>
auto find_block(const Map& blocks, const char* p, size_t bytes) {
  auto it = blocks.upper_bound(const_cast<char*>(p));
  if (it == blocks.begin()) return blocks.end();
  --it;
  return p + bytes <= it->first + bytes_of(it->second) ? it : blocks.end();
}
template <class Map>
bool inside(const Map& blocks, const char* p, size_t bytes) {
  return find_block(blocks, p, bytes) != blocks.end();
}
void check_device(Address a, size_t bytes, const char* what) {
  if (inside(machine().blocks, host(a), bytes)) return;
  machine().gpu.faults.push_back(std::string(what) + ": device memory that is not allocated");
  machine().sticky = kIllegalAddress;
}
void check_pinned(const void* p, size_t bytes) {
  if (!inside(machine().pinned, static_cast<const char*>(p), bytes)) machine().gpu.faults.push_back("an asynchronous copy of pageable memory");
}

int allocate(Address* out, size_t bytes) {
  Machine& m = machine();
  if (m.gpu.allocated + bytes > m.gpu.memory) return kOutOfMemory;
  void* p = nullptr;
  if (posix_memalign(&p, 256, bytes ? bytes : 1) != 0) return kOutOfMemory;
  std::memset(p, 0xff, bytes);
  m.blocks[static_cast<char*>(p)] = {bytes, ++m.allocations};
  m.gpu.allocated += bytes;
  *out = reinterpret_cast<Address>(p) ^ fake::kDeviceBit;
  return 0;
}
void free_now(Address a) {
  Machine& m = machine();
  const auto it = m.blocks.find(host(a));
  if (it == m.blocks.end()) {
    m.gpu.faults.push_back("freed memory that is not allocated");
    return;
  }
  m.gpu.allocated -= it->second.bytes;
  std::free(it->first);
  m.blocks.erase(it);
}

Machine& fresh() {
  Machine& m = machine();
  for (auto& [p, n] : m.blocks) std::free(p);
  for (auto& [p, n] : m.pinned) std::free(p);
  for (Event* e : m.events) delete e;
  m.~Machine();
  return *new (&m) Machine;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  ENTER();
  return machine().gpu.init_status;
}
int cuDriverGetVersion(int* v) { return *v = machine().gpu.version, 0; }
int cuGetErrorName(int s, const char** name) {
  *name = s == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : s == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" :
          s == kCaptureUnsupported ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" : "CUDA_ERROR_OF_THE_TEST";
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
int cuCtxGetCurrent(Handle* c) { return *c = machine().contexts.empty() ? nullptr : machine().contexts.back(), 0; }
int cuCtxPushCurrent_v2(Handle c) { return machine().contexts.push_back(c), 0; }
int cuCtxPopCurrent_v2(Handle* c) {
  NEEDS_CONTEXT();
  *c = machine().contexts.back();
  machine().contexts.pop_back();
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
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
  free_now(p);
  return 0;
}
int cuMemAllocAsync(Address* p, size_t n, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  const Stream* s = stream_of(stream);
  const int status = s ? allocate(p, n) : int{kInvalidHandle};
  if (status == 0 && s->capturing) machine().of_capture.insert(host(*p));
  return status;
}
int cuMemFreeAsync(Address p, Handle stream) {
  ENTER();
  NEEDS_CONTEXT();
  const Stream* s = stream_of(stream);
  if (s && s->capturing && !machine().of_capture.erase(host(p))) return kInvalidValue;
  return enqueue(stream, {"free", [p] { free_now(p); }});
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
int cuStreamCreate(Handle* out, unsigned) {
  ENTER();
  NEEDS_CONTEXT();
  auto s = std::make_unique<Stream>();
  s->number = ++machine().numbers;
  *out = s.get();
  machine().streams[*out] = std::move(s);
  return 0;
}
int cuStreamDestroy_v2(Handle h) {
  Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  drain(*s);
  machine().streams.erase(h);
  return 0;
}
int cuStreamSynchronize(Handle h) {
  ENTER();
  Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  if (s->capturing) return s->invalid = true, int{kCaptureUnsupported};
  drain(*s);
  return machine().sticky;
}
int cuStreamWaitEvent(Handle h, Handle event, unsigned) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  const int upto = e->recorded;
  return enqueue(h, {"wait", [e, upto] { if (e->stream) drain(*e->stream, [&] { return e->done >= upto; }); }});
}
int cuStreamIsCapturing(Handle h, int* state) {
  ENTER();
  const Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  *state = s->capturing ? 1 : 0;
  return 0;
}
int cuStreamGetCaptureInfo_v2(Handle h, int* state, unsigned long long* id, Handle*, const Handle**, size_t*) {
  ENTER();
  const Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  *state = s->capturing ? 1 : 0;
  if (id) *id = s->capturing;
  return 0;
}
int cuCtxSynchronize() {
  ENTER();
  NEEDS_CONTEXT();
  for (auto& [h, s] : machine().streams)
    if (s->capturing) return s->invalid = true, int{kCaptureUnsupported};
  for (auto& [h, s] : machine().streams) drain(*s);
  return machine().sticky;
}
int cuPointerGetAttribute(void* value, int attribute, Address p) {
  ENTER();
  const auto it = find_block(machine().blocks, host(p), 1);
  if (it == machine().blocks.end() || attribute != 7) return kInvalidValue;
  std::memcpy(value, &it->second.id, 8);
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) { return std::swap(*mode, machine().mode), 0; }
int cuEventCreate(Handle* out, unsigned) {
  ENTER();
  NEEDS_CONTEXT();
  auto* e = new Event;
  machine().events.insert(e);
  *out = e;
  return 0;
}
int cuEventDestroy_v2(Handle h) {
  if (machine().events.erase(static_cast<Event*>(h))) delete static_cast<Event*>(h);
  return 0;
}
int cuEventRecord(Handle event, Handle stream) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  e->stream = stream_of(stream);
  const int number = ++e->recorded;
  return enqueue(stream, {"event", [e, number] { e->done = number; }});
}
int cuEventQuery(Handle h) {
  ENTER();
  auto* e = static_cast<Event*>(h);
  if (e->done >= e->recorded) return 0;
  drain(*e->stream, [e] { return e->done >= e->recorded; });  // done by the next question
  return kNotReady;
}
int cuEventSynchronize(Handle h) {
  ENTER();
  auto* e = static_cast<Event*>(h);
  if (e->stream == nullptr) return 0;
  if (e->stream->capturing) return e->stream->invalid = true, int{kCaptureUnsupported};
  drain(*e->stream, [e] { return e->done >= e->recorded; });
  return machine().sticky;
}
int cuEventElapsedTime(float* ms, Handle, Handle) { return *ms = 1.5f, 0; }
/// What the library never gives back, as a real driver's memory would not be: reachable, for leak checkers.
void* kept(size_t bytes) {
  static auto& all = *new std::vector<std::unique_ptr<char[]>>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::make_unique<char[]>(bytes)).get();
}
// Graphs, for programs that make them with the driver's functions; a graph's handle is the number of its capture.
int cuStreamBeginCapture_v2(Handle h, int) {
  ENTER();
  fake_gpu()->begin_capture(h);
  return 0;
}
int cuStreamEndCapture(Handle h, Handle* graph) {
  ENTER();
  *graph = reinterpret_cast<Handle>(machine().captures);
  return fake_gpu()->end_capture(h) < 0 ? int{kCaptureInvalidated} : 0;
}
int cuGraphInstantiateWithFlags(Handle* exec, Handle graph, unsigned long long) { return *exec = graph, 0; }
int cuGraphLaunch(Handle exec, Handle h) {
  ENTER();
  fake_gpu()->launch_graph(reinterpret_cast<uint64_t>(exec), h);
  return 0;
}
/// The bytes of a kernel's parameters: .nv.info.<kernel> of a cubin has them as an attribute of format 3 (a 16-bit value), kind 0x19.
size_t param_bytes_of(const char* image) {
  if (image[EI_CLASS] != ELFCLASS64) return 8;  // no cubin, but a text of a test
  Elf64_Ehdr elf;
  std::memcpy(&elf, image, sizeof elf);
  const auto section = [&](int i) {  // wherever it lies: images are not aligned
    Elf64_Shdr s;
    std::memcpy(&s, image + elf.e_shoff + static_cast<size_t>(i) * sizeof s, sizeof s);
    return s;
  };
  for (int i = 0; i < elf.e_shnum; ++i) {
    const Elf64_Shdr at = section(i);
    if (std::strcmp(image + section(elf.e_shstrndx).sh_offset + at.sh_name, ".nv.info.flashinfer_kernel") != 0) continue;
    const auto* p = reinterpret_cast<const unsigned char*>(image + at.sh_offset);
    for (const auto* end = p + at.sh_size; p + 4 <= end;) {
      const size_t value = p[2] | p[3] << 8;
      if (p[0] == 3 && p[1] == 0x19) return value;
      p += p[0] == 4 ? 4 + value : 4;  // format 4: that many bytes follow
    }
  }
  return 0;
}
int cuModuleLoadData(Handle* module, const void* image) {
  ENTER();
  NEEDS_CONTEXT();
  if (forbidden_by_capture()) return kCaptureUnsupported;
  if (std::memcmp(image, "\177ELF", 4) != 0) return kInvalidImage;
  auto* f = new (kept(sizeof(Function))) Function;
  f->param_bytes = param_bytes_of(static_cast<const char*>(image));
  if (f->param_bytes == 0) return kInvalidImage;
  *module = f;
  return 0;
}
int cuModuleUnload(Handle) { return 0; }
int cuModuleGetFunction(Handle* f, Handle module, const char* name) {
  ENTER();
  if (std::strcmp(name, "flashinfer_kernel") != 0) return 500;
  *f = module;
  return 0;
}
int cuFuncGetAttribute(int* v, int attribute, Handle) {
  *v = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0;
  return 0;
}
int cuFuncSetAttribute(Handle f, int attribute, int value) {
  ENTER();
  if (attribute == 8) static_cast<Function*>(f)->shared_limit = value;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Handle, int threads, size_t shared) {
  *n = std::min<int>(2048 / threads, shared ? static_cast<int>(233472 / shared) : 32);
  return 0;
}
int cuLaunchKernelEx(const LaunchConfig* c, Handle f, void** params, void**) {
  ENTER();
  NEEDS_CONTEXT();
  if (c->shared_bytes > static_cast<unsigned>(static_cast<Function*>(f)->shared_limit)) return kInvalidValue;
  Gpu& g = machine().gpu;
  const size_t bytes = static_cast<Function*>(f)->param_bytes;
  auto* copy = static_cast<char*>(kept(bytes));  // as long as the launch is known
  std::memcpy(copy, params[0], bytes);
  const fake::Launched l{*c, {c->attributes, c->attributes + c->count}, copy, bytes};
  g.launches.push_back(l);
  return enqueue(c->stream, {"launch", [l] {
    Gpu& gpu = machine().gpu;
    if (gpu.kernel) gpu.kernel(l);
    if (gpu.kernel_status) machine().sticky = gpu.kernel_status;
  }});
}

Gpu* fake_gpu() {
  Gpu& g = machine().gpu;
  g.reset = [] { fresh(), fake_gpu(); };
  g.begin_capture = [](Handle h) { stream_of(h)->capturing = ++machine().captures; };
  g.end_capture = [](Handle h) {
    Stream* s = stream_of(h);
    const uint64_t graph = std::exchange(s->capturing, 0);
    return std::exchange(s->invalid, false) ? -1 : static_cast<int>(machine().graphs[graph].size());
  };
  g.last_graph = [] { return machine().captures; };
  g.launch_graph = [](uint64_t graph, Handle h) {
    for (const Operation& o : machine().graphs.at(graph)) stream_of(h)->queue.push_back(o);
  };
  g.replay = [] {
    for (const Operation& o : machine().graphs.at(machine().captures)) o.run();
  };
  g.enqueue = [](Handle h, const char* what, std::function<void()> run) { return enqueue(h, {what, std::move(run)}); };
  g.pending = [](Handle h) { return static_cast<int>(stream_of(h)->queue.size()); };
  return &g;
}

}  // extern "C"
