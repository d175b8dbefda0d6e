// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/engine.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/jobs.h"
#include "flashinfer/core/once.h"
#include "flashinfer/jit/build.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/cuda_load.h"
#include "flashinfer/jit/locks.h"
#include "flashinfer/jit/nvrtc.h"
#include "flashinfer/jit/source.h"

namespace flashinfer::jit {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

enum class State { kNew, kBusy, kReady, kFailed };

struct Entry {
  State state = State::kNew;
  CudaLoaded loaded;  // for a CPU kernel only the base is used
  std::string error;  // kFailed: the RuntimeError's text; a failed compilation is not repeated
  Module module;
};

struct Engine {
  std::mutex& mutex = g_engine_mutex.get();
  std::condition_variable changed;
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries;  // by target and source
  std::vector<Entry*> order;
  std::vector<std::unique_ptr<Entry>> forgotten;  // tables hold references into these
  Stats stats;
};

Engine* engine_pointer = nullptr;

/// After fork, resets entries that another thread of the parent was compiling.
void after_fork_child() {
  new (&engine_pointer->changed) std::condition_variable;
  for (auto& [key, entry] : engine_pointer->entries)
    if (entry->state == State::kBusy) entry->state = State::kNew;
}

Engine& engine() {
  static constinit Once<Engine*> e;
  return *e.get([] {
    auto* made = new Engine;  // never destroyed: exit handlers may look up kernels
    engine_pointer = made;
    pthread_atfork(nullptr, nullptr, after_fork_child);
    return made;
  });
}

thread_local std::vector<Request>* recorder = nullptr;
thread_local int foreign_source = 0;
thread_local bool quiet = false;  // prefetch with a progress callback reports by itself

CpuFn load(const std::string& path, std::string& error) {
  tiles_permitted();  // the kernel may use them
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle != nullptr ? ::dlsym(handle, "flashinfer_kernel") : nullptr;
  if (symbol == nullptr) {
    const char* text = ::dlerror();
    error = text != nullptr ? text : "no flashinfer_kernel in it";
  }
  return reinterpret_cast<CpuFn>(symbol);
}

/// Targets whose AOT artifacts may stand in for `t` when nothing can be compiled, best first.
std::vector<Target> stand_ins(Target t) {
  std::vector<Target> list(std::begin(kTargets), std::end(kTargets));
  if (const CpuLevel* const level = find_level(t)) {
    list = level->stand_ins;
    list.insert(list.begin(), t);
  }
  if (t == Target::kPortable) list = {t};
  std::erase_if(list, [](Target s) { return !why_not_runnable(s).empty(); });
  return list;
}

/// The result that a thread prepares without the engine's lock: a child forked meanwhile finds the entry untouched.
struct Made {
  CudaLoaded loaded;
  Module module;
};

/// Fills `entry.loaded` and `entry.module`; throws RuntimeError when the kernel does not compile or load.
void make(const Request& request, Device device, Target target, Made& entry) {
  const auto use = [&](const Artifact& a, Target t) {
    std::string error;
    if (is_cuda(request))
      entry.loaded.kernel = load_cuda(a.path, request, device, error);
    else
      entry.loaded.fn = load(a.path, error), entry.loaded.uses_tiles = uses_tiles(t);
    entry.module.origin = a.origin;
    entry.module.path = a.path;
    return error;
  };
  if (const std::string why = why_not_runnable(target); !why.empty()) {
    entry.loaded.why_not = str("FLASHINFER_CPU_ISA is ", name(target), ", but ", why);
    return;
  }
  if (is_cuda(request) && device.type == DeviceType::kCUDA)
    if (entry.loaded.why_not = why_no_cuda(device.index, target); !entry.loaded.why_not.empty()) return;
  const std::string no_compiler = why_no_compiler(target);
  if (!no_compiler.empty())
    if (const auto cached = find_cached(request, target); cached && use(*cached, target).empty()) return;
  for (const Target t : no_compiler.empty() ? std::vector<Target>{target}
                        : is_cuda(request)  ? cuda_stand_ins(device)
                                            : stand_ins(target))
    if (const auto aot = find_aot(request, t); aot && use(*aot, t).empty()) return;
  const Toolchain toolchain = toolchain_for(target);
  if (!no_compiler.empty()) {
    const int64_t count = count_aot();
    entry.loaded.why_not = str(no_compiler, ", and ", request.text(), " is not among the ", count,
                               count == 1 ? " precompiled artifact" : " precompiled artifacts");
    return;
  }
  Artifact artifact = find_or_compile(request, target, toolchain, quiet);
  entry.module.seconds = artifact.seconds;
  std::string error = use(artifact, target);
  if (!error.empty() && artifact.origin == "disk") {
    artifact = find_or_compile(request, target, toolchain, quiet, /*discard=*/true);
    entry.module.seconds = artifact.seconds;
    error = use(artifact, target);
  }
  FI_CHECK(error.empty(), RuntimeError, "jit: ", request.text(), ": cannot load ", artifact.path, ": ", error);
}

bool ready(const Entry& e) { return e.loaded.fn != nullptr || e.loaded.kernel != nullptr; }

/// Under the engine's lock.
void count(Stats& s, const Entry& e, double seconds) {
  const std::string& origin = e.module.origin;
  if (origin == "compiled") ++s.compiled, s.compile_seconds += e.module.seconds;
  if (origin == "disk") ++s.disk_hits;
  if (origin == "aot") ++s.aot_hits;
  if (origin == "failed") ++s.failed;
  if (origin == "unavailable") ++s.unavailable;
  s.load_seconds += seconds - (origin == "compiled" ? e.module.seconds : 0);
}

/// The entry, made by this thread or awaited while another makes it. `fresh` is set when this call made it.
const Entry& obtain_entry(const Request& request, Device device, bool* fresh = nullptr) {
  Engine& e = engine();
  const Target target = is_cuda(request) ? cuda_target(device) : selected_target();
  const std::string key =
      std::string(name(target)) + " " + (is_cuda(request) ? to_string(device) : std::string()) + "\n" + request.source;
  std::unique_lock lock(e.mutex);
  auto& slot = e.entries[key];
  if (!slot) {
    slot = std::make_unique<Entry>();
    slot->module = {request.text(), name(target), "", "", 0};
    e.order.push_back(slot.get());
  }
  Entry& entry = *slot;
  e.changed.wait(lock, [&] { return entry.state != State::kBusy; });
  if (entry.state == State::kNew) {
    entry.state = State::kBusy;
    Made made{{}, entry.module};
    lock.unlock();
    const auto start = Clock::now();
    std::string error;
    try {
      make(request, device, target, made);
    } catch (const Error& x) {
      error = x.message();
    } catch (const std::exception& x) {
      error = str("jit: ", request.text(), ": ", x.what());
    }
    const double seconds = seconds_since(start);
    lock.lock();
    entry.loaded = std::move(made.loaded);
    entry.module = std::move(made.module);
    entry.error = error;
    if (!error.empty())
      entry.module.origin = "failed";
    else if (!ready(entry))
      entry.module.origin = "unavailable";
    count(e.stats, entry, seconds);
    entry.module.seconds = seconds;
    entry.state = error.empty() ? State::kReady : State::kFailed;
    if (fresh != nullptr) *fresh = true;
    e.changed.notify_all();
  }
  return entry;
}

Outcome outcome_of(const Entry& entry, bool fresh) {
  if (entry.state == State::kFailed) return Outcome::kFailed;
  if (!ready(entry)) return Outcome::kUnavailable;
  if (!fresh) return Outcome::kMemory;
  if (entry.module.origin == "compiled") return Outcome::kCompiled;
  return entry.module.origin == "aot" ? Outcome::kAot : Outcome::kDisk;
}

}  // namespace

namespace detail {

std::atomic<int> recordings{0};

static void check_source(const Request& request) {
  FI_CHECK(foreign_source == 0 || env::flag("FLASHINFER_ALLOW_RECORDED_SOURCE"), RuntimeError, "jit: ", request.text(),
           ": the recording holds source code, which is compiled only with FLASHINFER_ALLOW_RECORDED_SOURCE=1: read it "
           "first");
}

const Loaded& obtain(const Request& request, bool& keep) { return obtain_cuda(request, kCpu, keep); }

const Loaded& obtain_cuda(const Request& request, Device device, bool& keep) {
  if (recorder != nullptr) {
    // Of a CPU's candidates a call lists all, since none is supported; of a GPU's the one that it would run, with all
    // of its launches.
    static const CudaLoaded& refused = *new CudaLoaded{{nullptr, request.name + " is being listed, not run"}, nullptr};
    static const CudaLoaded& listed = *new CudaLoaded{};
    recorder->push_back(request);
    keep = false;
    return device.type == DeviceType::kCPU ? refused : listed;
  }
  const Entry& entry = obtain_entry(request, device);
  if (entry.state == State::kFailed) throw RuntimeError(entry.error);
  return entry.loaded;
}

const Loaded& obtain_extended(const Request& request, bool& keep) {
  check_source(request);
  return obtain(request, keep);
}
const Loaded& obtain_cuda_extended(const Request& request, Device device) {
  bool keep = false;
  check_source(request);
  return obtain_cuda(request, device, keep);
}

}  // namespace detail

ForeignSource::ForeignSource() { ++foreign_source; }
ForeignSource::~ForeignSource() { --foreign_source; }

Stats stats() {
  Engine& e = engine();
  const std::lock_guard lock(e.mutex);
  Stats s = e.stats;
  s.memory_hits += static_cast<int64_t>(detail::count_memory_hits());
  return s;
}

void reset_stats() {
  Engine& e = engine();
  const std::lock_guard lock(e.mutex);
  e.stats = {};
  e.stats.memory_hits = -static_cast<int64_t>(detail::count_memory_hits());
}

std::vector<Module> modules() {
  Engine& e = engine();
  const std::lock_guard lock(e.mutex);
  std::vector<Module> list;
  for (const Entry* entry : e.order)
    if (entry->state == State::kReady || entry->state == State::kFailed) list.push_back(entry->module);
  return list;
}

KernelCollector::KernelCollector() : previous_(recorder), list_(std::make_unique<std::vector<Request>>()) {
  recorder = list_.get();
  detail::recordings.fetch_add(1, std::memory_order_relaxed);
}
KernelCollector::~KernelCollector() {
  recorder = previous_;
  detail::recordings.fetch_sub(1, std::memory_order_relaxed);
}
std::vector<Request> KernelCollector::take() {
  std::vector<Request> unique;
  std::set<std::string> seen;
  for (Request& r : *list_)
    if (seen.insert(r.source).second) unique.push_back(std::move(r));
  list_->clear();
  return unique;
}

const char* name(Outcome o) {
  constexpr const char* kNames[] = {"in memory", "from disk", "precompiled", "compiled", "unavailable", "failed"};
  return kNames[static_cast<int>(o)];
}

std::vector<Prefetched> prefetch(std::span<const Request> requests, int jobs,
                                 const std::function<void(const Progress&)>& progress) {
  std::vector<Prefetched> results(requests.size());
  std::mutex mutex;
  int64_t done = 0;
  for_each_job(static_cast<int64_t>(requests.size()), jobs, [&](int64_t i) {
    const Request& request = requests[static_cast<size_t>(i)];
    Prefetched& r = results[static_cast<size_t>(i)];
    const bool was_quiet = std::exchange(quiet, static_cast<bool>(progress));
    const auto start = Clock::now();
    bool fresh = false;
    const Entry& entry = obtain_entry(request, is_cuda(request) ? Context::current().device : kCpu, &fresh);
    quiet = was_quiet;
    r = {outcome_of(entry, fresh), seconds_since(start),
         entry.state == State::kFailed ? entry.error : entry.loaded.why_not};
    const std::lock_guard lock(mutex);
    ++done;
    if (progress) progress({done, static_cast<int64_t>(requests.size()), &request, r.outcome, r.seconds, &r.message});
  });
  return results;
}

std::string why_no_compiler(Target t) {
  if (env::flag("FLASHINFER_DISABLE_JIT")) return "FLASHINFER_DISABLE_JIT is 1";
  const Toolchain toolchain = toolchain_for(t);
  if (!toolchain.why_not.empty()) return toolchain.why_not;
  if (include_root().empty())
    return "the kernel headers were not found beside the library (set FLASHINFER_JIT_INCLUDE)";
  return {};
}

void reset() {
  Engine& e = engine();
  std::unique_lock lock(e.mutex);
  e.changed.wait(lock, [&] {
    return std::ranges::none_of(e.entries, [](const auto& kv) { return kv.second->state == State::kBusy; });
  });
  for (auto& [key, entry] : e.entries) e.forgotten.push_back(std::move(entry));
  e.entries.clear();
  e.order.clear();
  detail::forget_tables();
  forget_sources();
  forget_nvrtc();
  forget_toolchain();
  forget_folders();
}

}  // namespace flashinfer::jit
