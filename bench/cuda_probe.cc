// SPDX-License-Identifier: Apache-2.0
// Checks that need a GPU, for tools/gpu_check.sh: prints one JSON object on stdout, exit status 1 when a check fails.
//
//   bench_cuda_probe CHECK
//     device        the driver, the GPU, NVRTC
//     launch        host seconds of the bare cuLaunchKernelEx, the same through core/cuda, a whole rmsnorm, an eager
//                   run() of a planned decode
//     copy          bytes read and written a second: the driver's copy, a copy kernel
//     graph         a decode step (norm, paged attention, norm) captured into a graph: its bits after new inputs and
//                   after another plan(), its time
//     graph_record  the step captured while it is recorded, replayed, flushed, and the recording replayed on the CPU
//     fault         a kernel that writes out of bounds: the error names it, and calls on the CPU still work
//
// Without a GPU FLASHINFER_LIBCUDA may name the driver of tests/cuda, for `device` and `launch`.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "flashinfer/bench/gpu.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/cuda/module.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/jit/nvrtc.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"

namespace flashinfer {
namespace {

using Json = nlohmann::ordered_json;
constexpr Device kGpu{DeviceType::kCUDA, 0};

cuda::Function compile(const char* source) {
  const cuda::DeviceInfo& i = cuda::device_info(0);
  return cuda::load(jit::nvrtc_compile(source, str("sm_", i.major, i.minor)), "flashinfer_kernel", 0);
}

Tensor values(std::initializer_list<int64_t> shape, int step) {
  Tensor t = Tensor::empty(shape, DType::kBF16);
  int n = 0;
  for (bf16_t& x : t.span<bf16_t>()) x = bf16_t(static_cast<float>((n += step) % 61) / 30.0f - 1.0f);
  return t;
}
Tensor on_gpu(const Tensor& t) { return to_device(t.view(), kGpu); }
Tensor indices(std::vector<int32_t> v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}
bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = to_device(a.view(), kCpu), y = to_device(b.view(), kCpu);
  return std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())) == 0;
}

Json device() {
  const cuda::DeviceInfo& i = cuda::device_info(0);
  const jit::Nvrtc& n = jit::nvrtc();
  return {{"name", i.name},
          {"compute_capability", str(i.major, ".", i.minor)},
          {"multiprocessors", i.sms},
          {"memory", i.memory},
          {"l2_bytes", i.l2_bytes},
          {"shared_per_block", i.shared_per_block},
          {"memory_pools", i.memory_pools},
          {"clusters", i.clusters},
          {"driver", cuda::version_text(cuda::driver().version)},
          {"driver_path", cuda::driver().path},
          {"nvrtc", n.why_not.empty() ? str(n.major, ".", n.minor) : n.why_not},
          {"nvrtc_path", n.path},
          {"ok", n.why_not.empty()}};
}

/// Host seconds a call, the median of batches that a driver keeps without waiting.
template <class F>
double host_seconds(F call) {
  constexpr int kBatches = 41, kCalls = 500;
  call();  // compiles
  std::vector<double> times;
  for (int b = 0; b < kBatches; ++b) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kCalls);
    cuda::synchronize(0, Context::current().stream);
  }
  std::sort(times.begin(), times.end());
  return times[kBatches / 2];
}

/// An eager run() of a planned decode: as many requests of one page, each a tile.
double decode_run(int32_t requests) {
  std::vector<int32_t> first, last(static_cast<size_t>(requests), 16);
  for (int32_t i = 0; i <= requests; ++i) first.push_back(i);
  const Tensor indptr = indices(first), ids = Tensor::zeros({requests}, DType::kI32), lengths = indices(last),
               workspace = Tensor::empty({0}, DType::kU8, kGpu),
               q = Tensor::zeros({requests, 8, 64}, DType::kBF16, kGpu),
               cache = Tensor::zeros({1, 2, 16, 2, 64}, DType::kBF16, kGpu), out = Tensor::clone(q.view());
  BatchDecodeWithPagedKVCacheWrapper decode(BatchDecodeInit{.float_workspace_buffer = workspace.view()});
  decode.plan({.indptr = indptr,
               .indices = ids,
               .last_page_len = lengths,
               .num_qo_heads = 8,
               .num_kv_heads = 2,
               .head_dim = 64,
               .page_size = 16,
               .q_data_type = DType::kBF16,
               .data_type = DType::kBF16});
  return host_seconds([&] { decode.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view()), .out = out.view()}); });
}

Json launch() {
  const cuda::Function empty = compile("extern \"C\" __global__ void flashinfer_kernel(long p) {}");
  const cuda::Current current(0);  // the context stays current
  const cuda::Handle stream = Context::current().stream;
  const double bare = host_seconds([&] {
    long p = 0;
    void* arguments[] = {&p};
    const cuda::LaunchConfig c{{1, 1, 1}, {128, 1, 1}, 0, stream, nullptr, 0};
    cuda::check(cuda::api().cuLaunchKernelEx(&c, empty.handle, arguments, nullptr), "cuLaunchKernelEx");
  });
  const double ours = host_seconds([&] {
    const long p = 0;
    cuda::Launch l;
    l.block[0] = 128;
    cuda::launch(empty, &p, l, stream, "empty");
  });
  const Tensor x = on_gpu(values({4, 64}, 7)), w = on_gpu(values({64}, 3)), y = on_gpu(values({4, 64}, 1));
  const double call = host_seconds([&] { rmsnorm({.input = x, .weight = w, .out = y.view()}); });
  return {{"bare_s", bare},
          {"core_cuda_s", ours},
          {"rmsnorm_s", call},
          {"beyond_launch_s", call - bare},
          {"goal_s", 2e-6},
          {"decode_run_s", decode_run(1)},
          {"decode_run_8192_s", decode_run(8192)},
          {"decode_goal_s", 3e-6},
          {"ok", true}};
}

/// Four 16-byte loads in flight a thread.
constexpr char kCopy[] = R"(
struct Params { const uint4* from; uint4* to; long n; };
extern "C" __global__ void __launch_bounds__(512) flashinfer_kernel(const __grid_constant__ Params p) {
  for (long i = blockIdx.x * 2048L + threadIdx.x; i < p.n; i += gridDim.x * 2048L) {
    uint4 v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) if (i + j * 512 < p.n) v[j] = __ldcs(p.from + i + j * 512);
#pragma unroll
    for (int j = 0; j < 4; ++j) if (i + j * 512 < p.n) __stcs(p.to + i + j * 512, v[j]);
  }
}
)";

Json copy() {
  struct Params {
    const void* from;
    void* to;
    long n;
  };
  const cuda::Function kernel = compile(kCopy);
  const int64_t bytes =
      std::min<int64_t>(int64_t{1} << 30, static_cast<int64_t>(cuda::device_info(0).memory / 16)) / 16 * 16;
  const Tensor from = Tensor::zeros({bytes}, DType::kU8, kGpu), to = Tensor::empty({bytes}, DType::kU8, kGpu);
  cuda::fill(from.data(), 0x5a, static_cast<size_t>(bytes), 0, Context::current().stream);
  const Params p{from.data(), to.data(), bytes / 16};
  cuda::Launch l;
  l.block[0] = 512, l.grid[0] = static_cast<unsigned>(cuda::device_info(0).sms) * 8;
  const bench::Samples t =
      bench::time_on_gpu(0, {.seconds = 0.5}, [&] { cuda::launch(kernel, &p, l, Context::current().stream, "copy"); });
  const double driver = bench::gpu_copy_bandwidth(0), own = 2.0 * static_cast<double>(bytes) / t.median();
  return {{"driver_gb_per_s", driver * 1e-9},
          {"kernel_gb_per_s", own * 1e-9},
          {"bytes", bytes},
          {"ok", same_bits(from, to)}};
}

/// libcuda's functions for graphs, which the library itself does not use.
struct Graphs {
  cuda::Status (*begin)(cuda::Handle stream, int mode);
  cuda::Status (*end)(cuda::Handle stream, cuda::Handle* graph);
  cuda::Status (*instantiate)(cuda::Handle* exec, cuda::Handle graph, unsigned long long flags);
  cuda::Status (*run)(cuda::Handle exec, cuda::Handle stream);
  Graphs() {
    void* lib = ::dlopen(cuda::driver().path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto bind = [&](const char* name, auto& f) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(lib, name));
      FI_CHECK(f, RuntimeError, "libcuda has no ", name);
    };
    bind("cuStreamBeginCapture_v2", begin), bind("cuStreamEndCapture", end);
    bind("cuGraphInstantiateWithFlags", instantiate), bind("cuGraphLaunch", run);
  }
};

/// A layer's share of a decode step over 64 requests of 1,024 tokens, 32 heads over 8 of 128, pages of 16.
struct Step {
  static constexpr int64_t kBatch = 64, kPages = 64, kHeads = 32, kKv = 8, kDim = 128;
  Tensor x = on_gpu(values({kBatch, kHeads* kDim}, 7)), weight = on_gpu(values({kHeads * kDim}, 3));
  Tensor q = Tensor::empty({kBatch, kHeads* kDim}, DType::kBF16, kGpu),
         o = Tensor::empty({kBatch, kHeads, kDim}, DType::kBF16, kGpu);
  Tensor y = Tensor::empty({kBatch, kHeads* kDim}, DType::kBF16, kGpu);
  Tensor cache = on_gpu(values({kBatch * kPages, 2, 16, kKv, kDim}, 11));
  Tensor workspace = Tensor::zeros({1 << 20}, DType::kU8, kGpu);
  Tensor indptr_buf = Tensor::zeros({kBatch + 1}, DType::kI32, kGpu),
         ids_buf = Tensor::zeros({kBatch * kPages}, DType::kI32, kGpu),
         last_buf = Tensor::zeros({kBatch}, DType::kI32, kGpu);
  BatchDecodeWithPagedKVCacheWrapper attention;
  explicit Step(bool in_graph)
      : attention(in_graph ? BatchDecodeInit{.float_workspace_buffer = workspace.view(),
                                             .use_cuda_graph = true,
                                             .paged_kv_indptr_buffer = indptr_buf.view(),
                                             .paged_kv_indices_buffer = ids_buf.view(),
                                             .paged_kv_last_page_len_buffer = last_buf.view()}
                           : BatchDecodeInit{.float_workspace_buffer = workspace.view()}) {
    plan(0);
  }
  /// `less`: pages that request i lacks are less * (i % 4); other pages too.
  void plan(int less) {
    std::vector<int32_t> first{0}, pages;
    for (int i = 0; i < kBatch; ++i) {
      for (int32_t j = 0; j < kPages - less * (i % 4); ++j)
        pages.push_back(static_cast<int32_t>((kBatch * kPages - 1 - i * kPages - j + 37 * less) % (kBatch * kPages)));
      first.push_back(static_cast<int32_t>(pages.size()));
    }
    const Tensor indptr = indices(first), ids = indices(pages), last = indices(std::vector<int32_t>(kBatch, 16 - less));
    attention.plan({.indptr = indptr,
                    .indices = ids,
                    .last_page_len = last,
                    .num_qo_heads = kHeads,
                    .num_kv_heads = kKv,
                    .head_dim = kDim,
                    .page_size = 16,
                    .q_data_type = DType::kBF16,
                    .data_type = DType::kBF16});
  }
  void operator()() {
    rmsnorm({.input = x, .weight = weight, .out = q.view()});
    attention.run(
        {.q = q.view().view({kBatch, kHeads, kDim}), .paged_kv_cache = op::PagedKv(cache.view()), .out = o.view()});
    rmsnorm({.input = o.view().view({kBatch, kHeads * kDim}), .weight = weight, .out = y.view()});
  }
};

/// What was called between its making and end().
class Capture {
 public:
  Capture() : stream_(Context::current().stream) {
    const cuda::Current current(0);
    constexpr int kThreadLocal = 1;
    cuda::check(g_.begin(stream_, kThreadLocal), "cuStreamBeginCapture");
  }
  void end() {
    const cuda::Current current(0);
    cuda::check(g_.end(stream_, &graph_), "cuStreamEndCapture");
    cuda::check(g_.instantiate(&exec_, graph_, 0), "cuGraphInstantiate");
  }
  void replay() const {
    const cuda::Current current(0);
    cuda::check(g_.run(exec_, stream_), "cuGraphLaunch");
  }

 private:
  const Graphs g_;
  cuda::Handle stream_, graph_ = nullptr, exec_ = nullptr;
};

Json graph() {
  const cuda::Handle stream = Context::current().stream;
  Step step(true), plain(false);
  step();  // compiles, and the plan goes to the GPU
  const bench::Samples eager = bench::time_on_gpu(0, {.seconds = 0.3}, [&] { step(); });
  Capture capture;
  step();
  capture.end();
  const Tensor before = Tensor::clone(step.y.view());
  // New inputs in the same place: the replay's result must be theirs.
  const Tensor other = values({Step::kBatch, Step::kHeads * Step::kDim}, 13);
  const auto expect = [&] {  // the same call without a graph
    copy_bytes(plain.x.data(), kGpu, other.data(), kCpu, static_cast<size_t>(other.nbytes()));
    plain();
    cuda::fill(step.y.data(), 0xff, static_cast<size_t>(step.y.nbytes()), 0, stream);
    capture.replay();
    return same_bits(step.y, plain.y);
  };
  copy_bytes(step.x.data(), kGpu, other.data(), kCpu, static_cast<size_t>(other.nbytes()));
  const bool same = expect(), moved = !same_bits(step.y, before);
  const Tensor first = Tensor::clone(step.y.view());
  step.plan(3), plain.plan(3);
  const bool follows_plan = expect(), other_plan = !same_bits(step.y, first);
  const bench::Samples replayed = bench::time_on_gpu(0, {.seconds = 0.3}, [&] { capture.replay(); });
  return {{"eager_s", eager.median()},
          {"replay_s", replayed.median()},
          {"same_bits", same},
          {"follows_inputs", moved},
          {"same_bits_after_plan", follows_plan},
          {"follows_plan", other_plan},
          {"ok", same && moved && follows_plan && other_plan}};
}

Json graph_record() {
  const std::string folder = fs::make_temp_dir("/tmp", "flashinfer-probe-");
  Step step(true);
  step();
  cuda::synchronize(0, Context::current().stream);
  record::Settings s = record::settings();
  s.level = 10, s.destination = folder + "/log.txt", s.dump_dir = folder + "/dumps", s.include = {"rmsnorm", "*.run"};
  record::configure(s);
  Capture capture;
  step();
  capture.end();
  capture.replay();
  step.plan(3);
  capture.replay();
  const int64_t entries = record::flush_graph_dumps();
  record::stop();
  const bool deferred =
      fs::read_file(folder + "/log.txt").value_or("").find("[stats deferred to GPU kernel: id=") != std::string::npos;
  replay::Options options;
  options.device = kCpu;
  const replay::Report report = replay::replay(folder + "/dumps", options);
  fs::remove_tree(folder);
  std::string wrong;
  for (const auto& c : report.calls)
    if (c.outcome != replay::Outcome::kPassed)
      wrong += str(c.function, ": ", replay::name(c.outcome), " ", c.message, "; ");
  return {{"entries", entries},
          {"calls", report.calls.size()},
          {"statistics_deferred", deferred},
          {"error", wrong},
          {"ok", entries == 6 && report.calls.size() == 3 && wrong.empty() && deferred}};
}

Json fault() {
  const cuda::Function bad =
      compile("extern \"C\" __global__ void flashinfer_kernel(long p) { *(volatile int*)(p + threadIdx.x * 4) = 1; }");
  const long nowhere = 64;
  cuda::Launch l;
  l.block[0] = 32;
  std::string said;
  try {
    cuda::launch(bad, &nowhere, l, Context::current().stream, "bad");
    cuda::synchronize(0, Context::current().stream);
  } catch (const std::exception& e) {
    said = e.what();
  }
  const Tensor x = values({4, 64}, 7), w = values({64}, 3);
  const Tensor y = rmsnorm({.input = x, .weight = w});
  const bool host = y.numel() == 256, kept = !cuda::sticky_error(0).empty() && !cuda::why_no_device(0).empty();
  return {{"error", said},
          {"cpu_goes_on", host},
          {"remembered", kept},
          {"ok", host && kept && said.find("a kernel launched earlier faulted") != std::string::npos}};
}

Json run(const std::string& what) {
  if (const std::string why = cuda::why_no_device(0); !why.empty()) return {{"error", why}, {"ok", false}};
  if (what == "device") return device();
  cuda::Stream stream(0);
  Context context = Context::current();
  context.stream = stream.get();
  const ContextScope scope(context);
  if (what == "launch") return launch();
  if (what == "copy") return copy();
  if (what == "graph") return graph();
  if (what == "graph_record") return graph_record();
  if (what == "fault") return fault();
  return {{"error", str("'", what, "' is none of device, launch, copy, graph, graph_record, fault")}, {"ok", false}};
}

}  // namespace
}  // namespace flashinfer

int main(int argc, char** argv) {
  nlohmann::ordered_json result;
  try {
    result = flashinfer::run(argc == 2 ? argv[1] : "");
  } catch (const std::exception& e) {
    result = {{"error", e.what()}, {"ok", false}};
  }
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
  std::_Exit(result["ok"] == true ? 0 : 1);  // after a fault the driver's own exit handlers may hang
}
