// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/run.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/op/device_indices.h"
#include "flashinfer/ops/attention/cuda/arrays.h"
#include "flashinfer/ops/attention/cuda/graph.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/cuda/tables.h"
#include "flashinfer/ops/attention/cuda/together.h"
#include "flashinfer/ops/attention/variant/variant_call.h"

namespace flashinfer::attention {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/attention/kernels/cuda/attention.cuh", "flashinfer::cu::attention",
                                     "flashinfer::AttentionCudaParams"};
inline constexpr jit::Kernel kPair{"flashinfer/ops/attention/kernels/cuda/pair.cuh", "flashinfer::cu::attention_pair",
                                   "flashinfer::AttentionPairParams"};
inline constexpr jit::Kernel kCores{"flashinfer/ops/attention/kernels/cuda/attention_simt.cuh",
                                    "flashinfer::cu::attention_cores", "flashinfer::AttentionCudaParams"};
constexpr const char *kVariants = "flashinfer/ops/attention/kernels/cuda/variant.cuh",
                     *kVariantParams = "flashinfer::AttentionVariantCudaParams";
inline constexpr jit::Kernel kKernelVariant{kVariants, "flashinfer::cu::attention_variant", kVariantParams};
inline constexpr jit::Kernel kCoresVariant{kVariants, "flashinfer::cu::attention_cores_variant", kVariantParams};

/// Finds the kernels of a plan: the built-in ones, or those that are compiled with its custom variant.
class KernelFinder {
 public:
  KernelFinder(const Plan& p, Device device) : device_(device) {
    if (!p.jit_args.is_none()) extension_ = extension_of(variant_from(p.jit_args));
  }
  /// The persistent kernel.
  const jit::CudaLoaded* pair(const AttentionCudaConfig& config) { return get<kPair, kKernelVariant>(config); }
  const jit::CudaLoaded* of(const AttentionCoresConfig& config) { return get<kCores, kCoresVariant>(config); }
  const jit::CudaLoaded* of(AttentionCudaConfig config, int copy, int scale_copy) {
    config.copy = static_cast<short>(copy);  // these follow from the tensors, the rest from the plan
    config.scale_copy = static_cast<short>(scale_copy);
    return get<kKernel, kKernelVariant>(config);
  }
  const std::string& why_not() const { return why_not_; }

 private:
  template <const jit::Kernel& Plain, const jit::Kernel& Variant, class Config>
  const jit::CudaLoaded* get(const Config& config) {
    const jit::CudaLoaded& kernel =
        extension_ ? jit::cuda_kernel<Variant>(config, device_, *extension_) : jit::cuda_kernel<Plain>(config, device_);
    if (why_not_.empty()) why_not_ = kernel.why_not;
    return &kernel;
  }
  Device device_;
  std::optional<jit::Extension> extension_;
  std::string why_not_;  // of the first kernel that has one
};

/// Why tensor cores do not support the call; then the kernel without them runs. `copy`: bytes of a copy of K and V.
std::string tensor_core_refusal(const Plan& p, const Call& call, const AttentionParams& a, int copy) {
  if (std::string r = plan_refusal(p, a, call.q.device()); !r.empty()) return r;
  if ((call.q_head_scales || call.k_head_scales || call.scales_on_device[0] || call.scales_on_device[1]) &&
      !cuda::attention_narrow(p.kv_data_type))
    return "scales for each head are multiplied into f32 queries";
  return copy ? "" : "cp.async needs q, k, v and out to begin at 16 bytes in every row (FP8 and NVFP4 ones at 8)";
}
/// The other kernel loads 8 elements of K and V (f32: 4) and stores 4 of out at once.
bool cores_aligned(const AttentionConfig& c, const AttentionParams& a) {
  const auto bytes = [](const void* p, int64_t strides, DType t) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)) | static_cast<uint64_t>(strides * size_of(t));
  };
  const int64_t pages = a.kv_indices ? a.k_stride_page | a.v_stride_page : 0;
  const uint64_t rows = bytes(a.o, a.o_stride_n | a.o_stride_h, c.o);
  const uint64_t keys =
      bytes(a.k, a.k_stride_n | a.k_stride_h | pages, c.kv) | bytes(a.v, a.v_stride_n | a.v_stride_h, c.kv);
  return rows % (4 * static_cast<uint64_t>(size_of(c.o))) == 0 && keys % (size_of(c.kv) == 1 ? 8 : 16) == 0;
}

bool rotates(const Plan& p) { return p.pos_encoding_mode == "ROPE_LLAMA"; }

/// A plan of use_cuda_graph=True that was read from a dump has no buffers, and runs as any other.
std::string graph_refusal(const Plan& p, Device device) {
  const GraphBuffers& b = p.buffers;
  if (p.without_buffers)
    return "use_cuda_graph=True on a GPU needs the buffers of __init__ (indptr_buffer, indices_buffer, "
           "last_page_len_buffer)";
  if (!p.use_cuda_graph || (!p.graph && !b.kv_indptr.defined() && !b.qo_indptr.defined())) return {};
  if (!p.graph) return str("the buffers of use_cuda_graph=True are in host memory, but q is on ", to_string(device));
  if (p.graph->device != device)
    return str("the buffers of use_cuda_graph=True are on ", to_string(p.graph->device), ", but q is on ",
               to_string(device));
  return {};
}

/// What neither kernel supports, and the variant's arguments.
std::string unsupported(const Plan& p, const Call& c, Device device) {
  if (std::string r = graph_refusal(p, device); !r.empty()) return r;
  if (c.spans && p.graph) return "ranges need a mask, whose size changes with the plan: use_cuda_graph must be False";
  for (const TensorView* t : {c.q_head_scales, c.k_head_scales, c.v_head_scales})
    if (t && !t->is_contiguous()) return "scales for each head must be contiguous on a GPU";
  if (p.jit_args.is_none()) return {};
  const AttentionVariant v = variant_from(p.jit_args);
  const size_t tensors = v.additional_tensor_names.size(), scalars = v.additional_scalar_names.size();
  if (std::max(tensors, scalars) <= size_t{kCudaExtras}) return {};
  return str("the variant has ", tensors, " additional tensors and ", scalars, " scalars, but a launch carries ",
             kCudaExtras, " of each");
}
/// Why neither kernel supports the call, given why tensor cores do not; empty when one does.
std::string kernel_refusal(const Plan& p, const AttentionParams& a, const std::string& no_tensor_cores) {
  const AttentionConfig config = cuda_config(p);
  const bool cores = !no_tensor_cores.empty();
  if (cores) {
    if (std::string r = cuda::attention_cores_refusal(config, a); !r.empty())
      return no_tensor_cores + "; without tensor cores: " + r;
    if (!cores_aligned(config, a))
      return "rows of k and v must begin at 16 bytes (8-bit ones at 8) and rows of out at 4 elements, which their "
             "addresses and strides do not give";
  }
  if (p.graph && p.graph->cores != cores)
    return "with use_cuda_graph=True plan() chose the kernel for rows that begin at 16 bytes (FP8 and NVFP4 ones at "
           "8): " +
           no_tensor_cores;
  return {};
}

/// A run that is ready: all but the addresses of what is on the device from the first run on.
struct CudaRun {
  PlanRef plan;
  op::Value args;
  int64_t pages;
  AttentionCudaParams params;
  Device device;
  bool cores = false;            // without tensor cores
  int copy = 0, scale_copy = 0;  // of the Configs: they follow from the tensors, the rest from the plan
  std::array<const jit::CudaLoaded*, 2> kernels{};  // of the parts
  std::shared_ptr<OnDevice> arrays;                 // or the plan's graph
  std::shared_ptr<const TablePlan> tables;          // or, with a call's own tables, this
  std::optional<Spans> spans{};                     // with `arrays`: what makes the mask
  const jit::CudaLoaded* mask_kernel = nullptr;

  const std::vector<Part>& parts() const {
    return tables ? tables->parts() : plan->graph ? plan->graph->parts : arrays->parts;
  }
  void operator()() const;
  /// emit(i, part, params, partial, words) for each part: for_parts() with this run's arrays.
  template <class Emit>
  void run_on(const GraphArrays& g, const Emit& emit) const;
  template <class Emit>
  void run_on(OnDevice& d, const Emit& emit) const;
  template <class Emit>
  void run_on(const TablePlan& t, const Emit& emit) const;

 private:
  Tensor mask_of(const OnDevice& d) const;
  template <class Arrays, class PartialOf, class Emit>
  void run_parts(AttentionVariantCudaParams& all, const Arrays& d, const PartialOf& partial_of, const Emit& emit) const;
};

/// Pointers and the variant's arguments; then each part of `d`, an OnDevice or GraphArrays, whose partial results
/// `partial_of` gives memory for.
template <class Arrays, class PartialOf, class Emit>
void CudaRun::run_parts(AttentionVariantCudaParams& all, const Arrays& d, const PartialOf& partial_of,
                        const Emit& emit) const {
  AttentionParams& a = all.base.a;
  point_at(a, d);
  if (const std::optional<Extras> extras = extras_of(*plan, args, a, d.device)) {
    std::copy_n(extras->tensors(), extras->num_tensors(), all.tensors);
    std::copy_n(extras->scalars(), extras->num_scalars(), all.scalars);
  }
  for_parts(all.base, d, plan->head_dim_vo, partial_of,
            [&](size_t i, const Part& part, const Tensor& partial, int64_t words) {
              if (!cores) cuda::attention_tile_steps(all.base, part.config);
              emit(i, part, all, partial, words);
            });
}
/// Page ids in the caller's buffer, which the caller may have written after plan() checked them.
void check_pages(const Plan& p, const GraphArrays& g, int64_t pages) {
  if (!g.pages_of_caller || !op::checks_device_indices(g.device)) return;
  const Tensor host = to_device(p.buffers.kv_indices, kCpu);
  const int32_t *ids = host.data_as<int32_t>(), *indptr = p.kv_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b)
    for (int32_t i = indptr[b]; i < indptr[b + 1]; ++i)
      FI_CHECK(ids[i] >= 0 && ids[i] < pages, ValueError, "paged_kv_indices_buffer[", i, "], page ", i - indptr[b],
               " of request ", b, ", is ", ids[i], ", but must be in [0, ", pages, ") (pages of the pool)");
}
template <class Emit>
void CudaRun::run_on(const GraphArrays& g, const Emit& emit) const {
  if (plan->paged) g.pages = pages, check_pages(*plan, g, pages);
  AttentionVariantCudaParams all{.base = params, .tensors = {}, .scalars = {}};
  AttentionParams& a = all.base.a;
  a.kv_indices = g.pages_of_caller ? g.pages_of_caller : g.at<int32_t>(g.kv_indices);
  a.mask = plan->mask.defined() ? g.mask_of_caller : nullptr;
  a.token_pos_len = g.token_pos_len;
  if (g.rope.defined()) a.rope = g.rope.data_as<float>(), a.rope_first = g.rope_first;
  int64_t used = 0;
  run_parts(
      all, g,
      [&](int64_t states) {
        const int64_t first = std::exchange(used, used + partial_floats(*plan, states));
        return Tensor(g.partial.view().slice(0, first, used), g.partial.owner());
      },
      emit);
}
/// Bits of the mask, made anew in each run.
Tensor CudaRun::mask_of(const OnDevice& d) const {
  const int64_t* first = plan->mask_indptr.data_as<int64_t>();
  AttentionMaskParams m = mask_params_of(*spans);
  for (int64_t b = 0; b < plan->batch_size; ++b) m.stride = std::max(m.stride, first[b + 1] - first[b]);
  Tensor mask = Tensor::empty({first[plan->batch_size]}, DType::kU8, d.device);
  m.qo_indptr = d.at<int32_t>(d.qo_indptr), m.kv_len = d.at<int32_t>(d.kv_len);
  m.mask_indptr = d.at<int64_t>(d.mask_indptr), m.mask = mask.data_as<uint8_t>();
  launch_mask(*mask_kernel, m, plan->batch_size);
  return mask;
}
template <class Emit>
void CudaRun::run_on(OnDevice& d, const Emit& emit) const {
  AttentionVariantCudaParams all{.base = params, .tensors = {}, .scalars = {}};
  AttentionParams& a = all.base.a;
  Tensor rope;
  make_ready(*plan, arrays);
  if (rotates(*plan)) {
    const BesideGraph beside(d.device);
    const auto table = rope_table_of(*plan);
    rope = values_on(table, d.device);
    beside.keep(rope.owner());
    a.rope = rope.data_as<float>(), a.rope_first = table->first;
  }
  a.kv_indices = d.at<int32_t>(d.kv_indices), a.mask = d.at<uint8_t>(d.mask_bits);
  const Tensor mask = spans ? mask_of(d) : Tensor();
  if (mask.defined()) a.mask = mask.data_as<uint8_t>();
  run_parts(
      all, d, [&](int64_t states) { return Tensor::empty({partial_floats(*plan, states)}, DType::kF32, d.device); },
      emit);
  if (rope.defined() && d.device.type == DeviceType::kCUDA)
    cuda::used_on(rope.owner().get(), d.device.index, Context::current().stream);
}
template <class Emit>
void CudaRun::run_on(const TablePlan& t, const Emit& emit) const {
  AttentionVariantCudaParams all{.base = params, .tensors = {}, .scalars = {}};
  OnDevice d;
  t.make(d, all.base);
  run_parts(
      all, d, [&](int64_t states) { return Tensor::empty({partial_floats(*plan, states)}, DType::kF32, d.device); },
      emit);
}
void launch_part(const CudaRun& run, const jit::CudaLoaded& kernel, const Part& part,
                 const AttentionVariantCudaParams& all) {
  const cuda::Launch l = run.cores ? cuda::attention_cores_launch(part.cores, all.base, part.tiles, true)
                                   : cuda::attention_launch(part.config, all.base, part.tiles, true);
  if (l.grid[0] == 0 || l.grid[1] == 0) return;
  if (run.plan->jit_args.is_none())
    jit::launch(kernel, all.base, l);
  else
    jit::launch(kernel, all, l);
}
void CudaRun::operator()() const {
  const auto launch = [&](size_t i, const Part& part, AttentionVariantCudaParams& all, const Tensor&, int64_t words) {
    const Tensor counters = counters_of(device, words);
    if (words) all.base.counters = counters.data_as<uint32_t>();
    launch_part(*this, *kernels[i], part, all);
  };
  if (tables) return run_on(*tables, launch);
  if (plan->graph) return run_on(*plan->graph, launch);
  run_on(*arrays, launch);
  used_on_current_stream(*arrays);
}

/// Several runs on tensor cores in persistent launches: a part of few rows and one of many in one, as far as there are
/// both.
struct PairedRuns {
  struct Launch {
    std::optional<size_t> few, many;  // of all parts, in their order
    const jit::CudaLoaded* kernel;
    bool persistent;  // else a block has one tile, and there is one part
  };
  Device device;
  std::vector<CudaRun> runs;
  std::vector<Launch> launches;

  void operator()() const;
};
void PairedRuns::operator()() const {
  struct Ready {
    AttentionVariantCudaParams all;
    const CudaRun* run;
    const Part* part;
    Tensor partial;
    int64_t words;
  };
  std::vector<Ready> ready;
  int64_t words = 0;
  for (const CudaRun& run : runs) {
    const auto keep = [&](size_t, const Part& part, AttentionVariantCudaParams& all, const Tensor& partial, int64_t n) {
      ready.push_back({all, &run, &part, partial, n}), words += n;
    };
    if (run.plan->graph)
      run.run_on(*run.plan->graph, keep);
    else
      run.run_on(*run.arrays, keep);
  }
  for (const Launch& l : launches) words += l.persistent ? cuda::kTurnCounters : 0;
  const Tensor counters = counters_of(device, words);
  uint32_t* next = words ? counters.data_as<uint32_t>() : nullptr;
  for (Ready& r : ready)
    if (r.words) r.all.base.counters = std::exchange(next, next + r.words);
  for (const Launch& l : launches) {
    const Ready *few = l.few ? &ready[*l.few] : nullptr, *many = l.many ? &ready[*l.many] : nullptr;
    const Ready& one = many ? *many : *few;
    if (!l.persistent) {
      launch_part(*one.run, *l.kernel, *one.part, one.all);
      continue;
    }
    const AttentionCudaConfig& config = one.part->config;
    const int64_t resident = int64_t{jit::multiprocessors(device)} *
                             jit::occupancy(*l.kernel, config.threads, static_cast<size_t>(pair_shared_bytes(config)));
    const auto tiles = [](const Ready* r) { return r ? static_cast<int64_t>(r->part->tiles) : 0; };
    AttentionPairParams both{};
    if (few) both.few = few->all.base;
    if (many) both.many = many->all.base;
    both.turns = cuda::attention_turns(config, tiles(few), tiles(many), one.all.base.a.num_kv_heads, resident,
                                       std::exchange(next, next + cuda::kTurnCounters));
    const cuda::Launch launch = cuda::attention_pair_launch(config, both.turns, true);
    if (launch.grid[0] != 0) jit::launch(*l.kernel, both, launch);
  }
  for (const CudaRun& run : runs)
    if (!run.plan->graph) used_on_current_stream(*run.arrays);
}

/// A run but for its kernels, or why there is none. `tables`: null for a plan with arrays. `pair`: its tiles of few and
/// of many rows may be in one launch.
std::string make_run(CudaRun& run, const PlanRef& plan, const Call& c, const CallTables* tables, bool pair) {
  const Plan& p = *plan;
  const Device device = c.q.device();
  if (std::string why = unsupported(p, c, device); !why.empty()) return why;
  const auto scales = [](const TensorView* t) { return t ? t->data_as<float>() : nullptr; };
  run.plan = plan, run.args = c.args, run.pages = c.kv.k.pages, run.device = device;
  run.params.a = params_of(p, c);
  run.params.q_head_scales = scales(c.q_head_scales), run.params.k_head_scales = scales(c.k_head_scales);
  AttentionParams& a = run.params.a;
  if (tables && tables->pages) a.kv_indices = tables->pages->data_as<int32_t>();  // until the run: that there are some
  a.v_head_scales = scales(c.v_head_scales);
  run.copy = cuda::attention_copy_bytes(cuda_config(p), a);
  run.scale_copy = cuda::attention_scale_copy_bytes(cuda_config(p), a);
  const std::string no_tensor_cores = tensor_core_refusal(p, c, a, run.copy);
  if (std::string why = kernel_refusal(p, a, no_tensor_cores); !why.empty()) return why;
  run.cores = !no_tensor_cores.empty();
  if (tables)
    run.tables = std::make_shared<const TablePlan>(p, a, c, *tables, run.cores);
  else if (!p.graph)
    run.arrays = arrays_of(p, a, run.cores, device, pair && p.jit_args.is_none());
  if (c.spans) run.spans = c.spans, run.mask_kernel = &mask_kernel(device);
  return tables ? run.tables->why_not() : "";
}
op::Prepared prepare_run(const PlanRef& plan, const Call& c, const CallTables* tables) {
  CudaRun run{};
  if (std::string why = make_run(run, plan, c, tables, false); !why.empty()) return op::Unsupported{std::move(why)};
  KernelFinder find(*plan, run.device);
  for (size_t i = 0; i < run.parts().size(); ++i) {
    const Part& part = run.parts()[i];
    run.kernels[i] = run.cores ? find.of(part.cores) : find.of(part.config, run.copy, run.scale_copy);
  }
  if (!find.why_not().empty()) return op::Unsupported{find.why_not()};
  if (run.mask_kernel && !run.mask_kernel->why_not.empty()) return op::Unsupported{run.mask_kernel->why_not};
  return run;
}

/// The Config of a launch of both parts, that of many rows; nothing where they need launches of their own.
std::optional<AttentionCudaConfig> pair_of(const CudaRun& few_run, const Part& few, const CudaRun& many_run,
                                           const Part& many) {
  AttentionCudaConfig both = many.config;
  if (few_beside(both) != few.config || few_run.params.a.num_kv_heads != many_run.params.a.num_kv_heads ||
      both.threads != few.config.threads)
    return {};
  both.copy = static_cast<short>(std::min(few_run.copy, many_run.copy)),
  both.scale_copy = static_cast<short>(std::min(few_run.scale_copy, many_run.scale_copy));
  if (!cuda::attention_pair_fits(both, jit::arch_number(few_run.device))) return {};
  return both;
}
op::Prepared prepare_pairs(std::vector<CudaRun> runs) {
  struct Place {
    const CudaRun* run;
    const Part* part;
    size_t index;
  };
  std::vector<Place> few, many;
  size_t index = 0;
  for (const CudaRun& run : runs)
    for (const Part& part : run.parts()) (part.few ? few : many).push_back({&run, &part, index++});
  PairedRuns paired{runs[0].device, {}, {}};
  KernelFinder find(*runs[0].plan, paired.device);
  const int arch = jit::arch_number(paired.device);
  const auto add_alone = [&](const Place& x) {
    AttentionCudaConfig config = x.part->config;
    config.copy = static_cast<short>(x.run->copy), config.scale_copy = static_cast<short>(x.run->scale_copy);
    const bool persistent = x.part->few || cuda::attention_pair_fits(config, arch);
    PairedRuns::Launch l{{}, {}, nullptr, persistent};
    (x.part->few ? l.few : l.many) = x.index;
    l.kernel = persistent ? find.pair(config) : find.of(config, x.run->copy, x.run->scale_copy);
    paired.launches.push_back(l);
  };
  for (const Place& m : many) {
    std::optional<AttentionCudaConfig> config;
    const auto beside = std::ranges::find_if(
        few, [&](const Place& f) { return (config = pair_of(*f.run, *f.part, *m.run, *m.part)).has_value(); });
    if (beside == few.end()) {
      add_alone(m);
    } else {
      paired.launches.push_back({beside->index, m.index, find.pair(*config), true});
      few.erase(beside);
    }
  }
  for (const Place& f : few) add_alone(f);
  if (!find.why_not().empty()) return op::Unsupported{find.why_not()};
  paired.runs = std::move(runs);
  return paired;
}

}  // namespace

op::Prepared prepare_cuda(const PlanRef& plan, const Call& c) { return prepare_run(plan, c, nullptr); }
op::Prepared prepare_together_cuda(std::span<const PlannedCall> calls) {
  std::vector<CudaRun> runs;
  bool pairs = true;
  for (const auto& [plan, call] : calls) {
    CudaRun& run = runs.emplace_back();
    if (std::string why = make_run(run, plan, call, nullptr, true); !why.empty())
      return op::Unsupported{std::move(why)};
    pairs = pairs && !run.cores && plan->jit_args.is_none() && plan->requests_a_head == 0 && !call.spans;
  }
  if (pairs) return prepare_pairs(std::move(runs));
  Launches launches;
  for (const auto& [plan, call] : calls) launches.add([&] { return prepare_cuda(plan, call); });
  return std::move(launches).prepared();
}
op::Prepared prepare_tables_cuda(const PlanRef& plan, const Call& c, const CallTables& tables) {
  return prepare_run(plan, c, &tables);
}

}  // namespace flashinfer::attention
