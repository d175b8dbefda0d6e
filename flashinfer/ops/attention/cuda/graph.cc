// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cuda/graph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/record/record.h"

namespace flashinfer::attention {
Device device_of(const GraphBuffers& b) {
  const TensorView* first = nullptr;
  for (const TensorView* v : {&b.qo_indptr, &b.kv_indptr, &b.kv_indices, &b.last_page_len, &b.mask, &b.mask_indptr}) {
    if (!v->defined()) continue;
    FI_CHECK(!first || v->device() == first->device(), ValueError, "the buffers of use_cuda_graph=True are on ",
             to_string(first->device()), " and ", to_string(v->device()), ", but must be on one device");
    if (!first) first = v;
  }
  return first ? first->device() : kCpu;
}

namespace {

/// Positions that are kept room for when the buffers could hold longer requests: 128 MB at D 128.
constexpr int64_t kMostPositions = int64_t{1} << 18;

/// What a captured launch holds by value.
void check_unchanged(const Plan& p, const Plan& first) {
  same("num_qo_heads", p.num_qo_heads, first.num_qo_heads), same("num_kv_heads", p.num_kv_heads, first.num_kv_heads);
  same("head_dim_qk", p.head_dim_qk, first.head_dim_qk), same("head_dim_vo", p.head_dim_vo, first.head_dim_vo);
  same("page_size", p.page_size, first.page_size), same("causal", p.causal, first.causal);
  same("window_left", p.window_left, first.window_left), same("sm_scale", p.sm_scale, first.sm_scale);
  same("logits_soft_cap", p.logits_soft_cap, first.logits_soft_cap);
  same("pos_encoding_mode", p.pos_encoding_mode, first.pos_encoding_mode);
  same("rope_scale", p.rope_scale, first.rope_scale), same("rope_theta", p.rope_theta, first.rope_theta);
  same("q_data_type", name(p.q_data_type), name(first.q_data_type));
  same("kv_data_type", name(p.kv_data_type), name(first.kv_data_type));
  same("o_data_type", name(p.o_data_type), name(first.o_data_type));
  same("custom_mask", std::string_view(p.mask.defined() ? "given" : "None"),
       std::string_view(first.mask.defined() ? "given" : "None"));
  same("prefix_len_ptr", std::string_view(p.prefix_len.defined() ? "given" : "None"),
       std::string_view(first.prefix_len.defined() ? "given" : "None"));
}

GraphKernels kernels_of(const Plan& p, Device device) {
  AttentionParams a{};
  a.head_dim_qk = static_cast<int32_t>(p.head_dim_qk), a.head_dim_vo = static_cast<int32_t>(p.head_dim_vo);
  const bool cores = !plan_refusal(p, a, device).empty();
  const int64_t most = (p.fixed_q_len ? p.fixed_q_len : p.max_rows) * group_of(p);
  return {.cores = cores,
          .kinds = kinds_of(p, a, cores, most, device),
          .most = most,
          .chunk_of = cuda::attention_chunk,
          .bound_of = cuda::attention_bound};
}

std::shared_ptr<GraphArrays> make_arrays(const Plan& p, Device device, const GraphKernels& kernels) {
  auto g = std::make_shared<GraphArrays>();
  g->device = device, g->cores = kernels.cores, g->chunk_of = kernels.chunk_of;
  const GraphBuffers& b = p.buffers;
  g->max_keys = p.nnz_kv;
  const int group = group_of(p);
  const int64_t keys =
      p.paged ? (b.kv_indices.defined() ? b.kv_indices.numel() : p.kv_indices.numel()) * p.page_size : p.nnz_kv;
  Layout layout;
  const auto requests = static_cast<size_t>(p.batch_size);
  g->qo_indptr = layout.add((requests + 1) * 4), g->kv_indptr = layout.add((requests + 1) * 4),
  g->kv_len = layout.add(requests * 4);
  if (p.mask.defined()) g->mask_indptr = layout.add((requests + 1) * 8), g->mask_of_caller = b.mask.data_as<uint8_t>();
  if (p.prefix_len.defined()) {
    g->token_pos_len = p.token_pos.size(1);
    g->prefix_len = layout.add(requests * 4),
    g->token_pos = layout.add(requests * static_cast<size_t>(g->token_pos_len) * 2);
  }
  if (const size_t n = slopes_of(p).size(); n != 0) g->slopes = layout.add(n * 4);
  if (p.paged && b.kv_indices.defined() && b.kv_indices.dtype() == DType::kI32)
    g->pages_of_caller = b.kv_indices.data_as<int32_t>();
  else if (p.paged)
    g->kv_indices =
        layout.add(static_cast<size_t>(b.kv_indices.defined() ? b.kv_indices.numel() : p.kv_indices.numel()) * 4);
  int64_t partial = 0;
  for (Part part : kernels.kinds) {
    const cuda::AttentionBound bound =
        kernels.bound_of(p.batch_size, p.max_rows * group, kernels.most, keys, part.tile_rows, part.few);
    // Every request of a decode has the same rows, so one of the two parts never has work.
    if (bound.tiles == 0 || (p.fixed_q_len && (kernels.most <= cuda::kFewRows) != part.few)) continue;
    part.tiles = bound.tiles, part.cuts = bound.cuts, part.partial_rows = bound.partial_rows;
    part.tiles_at = layout.add(part.tiles * sizeof(AttentionTile)),
    part.counters_at = layout.add(part.cuts * static_cast<size_t>(p.num_kv_heads) * sizeof(uint32_t));
    partial += partial_floats(p, bound.partial_rows * p.num_kv_heads);
    g->parts.push_back(part);
  }
  FI_CHECK(layout.bytes < size_t{1} << 32, ValueError, "the buffers of use_cuda_graph=True are for ", keys,
           " keys, which take ", layout.bytes, " bytes of work lists: give smaller ones");
  g->memory = Tensor::zeros({static_cast<int64_t>(layout.bytes)}, DType::kU8, device);
  if (p.pos_encoding_mode == "ROPE_LLAMA") {
    g->rope_first = -p.max_rows, g->rope_end = std::min(std::max<int64_t>(keys, 1), kMostPositions);
    // One row more: idle blocks look at where a request without tokens would go on.
    g->rope = Tensor::empty({(g->rope_end - g->rope_first + 1) * p.head_dim_qk}, DType::kF32, device);
  }
  if (partial) g->partial = Tensor::empty({partial}, DType::kF32, device);
  return g;
}

class Image {
 public:
  explicit Image(size_t bytes) : bytes_(bytes) {}
  void put(int64_t at, const void* data, size_t n) {
    if (at >= 0 && n != 0) std::memcpy(bytes_.data() + at, data, n);
  }
  void put(int64_t at, const Tensor& t) {
    if (t.defined()) put(at, t.data(), static_cast<size_t>(t.nbytes()));
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;  // zeros: a tile without rows is nothing to do, and counters begin with 0
};

/// What the plan's positions need of the table, where a captured kernel reads it. The table grows by doubling, so that
/// most plans send nothing.
void send_rope(const Plan& p, GraphArrays& g) {
  if (!g.rope.defined()) return;
  const int32_t* kv = p.kv_len.data_as<int32_t>();
  const int64_t longest = p.batch_size ? *std::max_element(kv, kv + p.batch_size) : 0;
  FI_CHECK(longest <= g.rope_end, ValueError, "a request has ", longest,
           " keys, but with use_cuda_graph=True rotation is supported for ", g.rope_end);
  const std::shared_ptr<const RopeTable> table = rope_table_of(p);
  if (table == g.rope_of) return;
  const int64_t begin = std::max(table->first, g.rope_first), end = std::min(table->end, g.rope_end),
                width = p.head_dim_qk;
  send_in_order(g.rope.data_as<float>() + (begin - g.rope_first) * width, g.device,
                table->values.data() + (begin - table->first) * width,
                static_cast<size_t>((end - begin) * width) * sizeof(float));
  g.rope_of = table;
}

void send(const Plan& p, const GraphArrays& g) {
  Image image(static_cast<size_t>(g.memory.nbytes()));
  image.put(g.qo_indptr, p.qo_indptr), image.put(g.kv_indptr, p.kv_indptr), image.put(g.kv_len, p.kv_len);
  image.put(g.kv_indices, p.kv_indices), image.put(g.mask_indptr, p.mask_indptr);
  image.put(g.prefix_len, p.prefix_len);
  for (int64_t b = 0; g.token_pos >= 0 && b < p.batch_size; ++b) {
    const int64_t n = p.token_pos.size(1);
    image.put(g.token_pos + b * g.token_pos_len * 2, p.token_pos.data_as<uint16_t>() + b * n,
              static_cast<size_t>(n) * 2);
  }
  const std::vector<float> slopes = slopes_of(p);
  image.put(g.slopes, slopes.data(), slopes.size() * 4);
  const auto shapes = shapes_of(p);
  for (const Part& part : g.parts) {
    const cuda::AttentionWorkList w = cuda::attention_tiles(shapes, group_of(p), part.tile_rows, part.few, g.chunk_of);
    FI_CHECK(w.tiles.size() <= part.tiles && w.cuts <= part.cuts && w.partial_rows <= part.partial_rows, InternalError,
             w.tiles.size(), " tiles, ", w.cuts, " cuts and ", w.partial_rows, " partial rows, but the bound is ",
             part.tiles, ", ", part.cuts, ", ", part.partial_rows);
    image.put(part.tiles_at, w.tiles.data(), w.tiles.size() * sizeof(AttentionTile));
  }
  send_in_order(g.memory.data(), g.device, image.bytes().data(), image.bytes().size());
}

/// For the recorder: a captured run reads the arrays of the last plan, not of the one it was captured with.
std::shared_ptr<const void> plan_now(const void* state) {
  const Plan& p = *static_cast<const Plan*>(state);
  if (!p.graph || !p.graph->lengths_on_device) return p.graph ? p.graph->latest : nullptr;
  const GraphArrays& g = *p.graph;
  auto now = std::make_shared<Plan>(*g.latest);
  const auto ints = [&](const int32_t* from, int64_t n) {
    return to_device(TensorView(from, DType::kI32, {n}, g.device), kCpu);
  };
  now->kv_indptr = ints(g.at<int32_t>(g.kv_indptr), p.batch_size + 1);
  now->kv_len = ints(g.at<int32_t>(g.kv_len), p.batch_size);
  now->kv_indices = ints(g.pages_of_caller, now->kv_indptr.data_as<int32_t>()[p.batch_size]);
  return now;
}

/// The same for plans in a list: levels.
std::shared_ptr<const void> list_now(const void* state) {
  const PlanList& l = *static_cast<const PlanList*>(state);
  auto now = std::make_shared<PlanList>(l);
  for (Plan& p : now->plans) {
    if (!p.graph) return nullptr;
    p = Plan(*p.graph->latest);
  }
  if (now->plans.empty()) return nullptr;
  static_cast<Plan&>(*now) = now->plans.back();
  join(*now);
  return now;
}

}  // namespace

void send_in_order(void* to, Device device, const void* from, size_t bytes) {
  if (device.type == DeviceType::kCUDA)
    cuda::enqueue_upload(to, from, bytes, device.index, Context::current().stream);
  else
    copy_bytes(to, device, from, kCpu, bytes);
}

BesideGraph::BesideGraph(Device device) {
  if (device.type != DeviceType::kCUDA || !cuda::capturing(device.index, Context::current().stream)) return;
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static auto& streams =
      *new std::map<std::pair<const void*, int>, std::unique_ptr<cuda::Stream>>;  // as long as the process
  const std::lock_guard lock(mutex);
  auto& s = streams[{&cuda::driver(), device.index}];
  if (!s) s = std::make_unique<cuda::Stream>(device.index);
  context_ = Context::current(), context_.stream = s->get();
  scope_.emplace(context_);
}

void BesideGraph::keep(std::shared_ptr<const void> what) const {
  if (!scope_) return;
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  if (std::find(kept.begin(), kept.end(), what) == kept.end()) kept.push_back(std::move(what));
}

void plan_graph(Plan& p) {
  const Device device = device_of(p.buffers);
  if (device.type == DeviceType::kCPU) return;
  if (!p.graph) {
    static std::once_flag once;
    std::call_once(once, [] {
      record::follow_state(plan_type, plan_now);
      record::follow_state(cascade_plan_type, list_now);
    });
  } else {
    check_unchanged(p, *p.graph->latest);
    FI_CHECK(p.paged || p.nnz_kv <= p.graph->max_keys, ValueError, "there are ", p.nnz_kv,
             " keys, but the first plan() had ", p.graph->max_keys, ", and with use_cuda_graph=True they may not grow");
    FI_CHECK(!p.prefix_len.defined() || p.token_pos.size(1) <= p.graph->token_pos_len, ValueError,
             "token_pos_in_items_len is ", p.token_pos.size(1), ", but the first plan() had ", p.graph->token_pos_len,
             ", and with use_cuda_graph=True it may not grow");
  }
  plan_graph(p, kernels_of(p, device));
}

void plan_graph(Plan& p, const GraphKernels& kernels) {
  if (!p.graph) p.graph = make_arrays(p, device_of(p.buffers), kernels);
  const int64_t pages = p.graph->pages;
  FI_CHECK(pages < 0 || p.max_page < pages, ValueError, "the page table names page ", p.max_page,
           ", but the pool given to run() has ", pages);
  send_rope(p, *p.graph);
  send(p, *p.graph);
  p.graph->lengths_on_device = false;
  auto latest = std::make_shared<Plan>(p);
  latest->graph = nullptr;
  p.graph->latest = std::move(latest);
}

}  // namespace flashinfer::attention
