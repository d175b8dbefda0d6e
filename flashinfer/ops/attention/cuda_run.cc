// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cuda_run.h"

#include <cstring>
#include <memory>
#include <mutex>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/cuda_graph.h"
#include "flashinfer/ops/attention/cuda_launch.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::attention {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/attention/cuda.cuh", "flashinfer::cu::attention", "flashinfer::AttentionCudaParams"};
inline constexpr jit::Kernel kCores{"flashinfer/ops/attention/cuda_cores.cuh", "flashinfer::cu::attention_cores", "flashinfer::AttentionCudaParams"};
inline constexpr jit::Kernel kMerge{"flashinfer/ops/attention/cuda.cuh", "flashinfer::cu::attention_merge", "flashinfer::AttentionCudaParams"};

}  // namespace

int group_of(const Plan& p) { return static_cast<int>(p.num_qo_heads / p.num_kv_heads); }

/// A plan that was made for refusing has no arrays: one request.
std::vector<cuda::AttentionShape> shapes_of(const Plan& p) {
  std::vector<cuda::AttentionShape> s;
  if (!p.kv_len.defined()) return {{static_cast<int32_t>(p.nnz_qo), static_cast<int32_t>(p.nnz_kv)}};
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) s.push_back({qo[b + 1] - qo[b], kv[b]});
  return s;
}

namespace {
/// Why tensor cores do not serve; then the kernel without them is asked.
std::string tensor_core_refusal(const AttentionConfig& c, const AttentionParams& a) {
  if (std::string r = cuda::attention_refusal(c, a); !r.empty()) return r;
  return cuda::attention_aligned(a) ? "" : "cp.async needs q, k, v and out to begin at 16 bytes in every row";
}
/// The other kernel loads 16 bytes of q and 8 elements of K and V (f32: 4) at once.
bool cores_aligned(const AttentionConfig& c, const AttentionParams& a) {
  const auto bytes = [](const void* p, int64_t strides, DType t) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)) | static_cast<uint64_t>(strides * size_of(t));
  };
  const int64_t pages = a.kv_indices ? a.k_stride_page | a.v_stride_page : 0;
  const uint64_t rows = bytes(a.q, a.q_stride_n | a.q_stride_h, c.q) | bytes(a.o, a.o_stride_n | a.o_stride_h, c.o);
  const uint64_t keys = bytes(a.k, a.k_stride_n | a.k_stride_h | pages, c.kv) | bytes(a.v, a.v_stride_n | a.v_stride_h, c.kv);
  return rows % 16 == 0 && keys % (size_of(c.kv) == 1 ? 8 : 16) == 0;
}

std::vector<Part> parts_of(const Plan& p, const AttentionParams& a, std::vector<cuda::AttentionWorkList>* lists) {
  const auto shapes = shapes_of(p);
  const int group = group_of(p);
  int64_t most = 0;
  for (const auto& s : shapes) most = std::max(most, int64_t{s.tokens} * group);
  std::vector<Part> parts;
  const bool cores = !tensor_core_refusal(config_of(p), a).empty();
  for (const bool few : {true, false}) {
    Part part;
    if (cores) part.cores = cuda::attention_cores_config(config_of(p), a);
    else part.config = cuda::attention_config(config_of(p), a, few, most);
    cuda::AttentionWorkList w = cuda::attention_tiles(shapes, group, cores ? part.cores.rows : part.config.rows(), few);
    if (w.tiles.empty()) continue;
    part.tiles = w.tiles.size(), part.cuts = w.cuts.size(), part.partial_rows = w.partial_rows;
    parts.push_back(part);
    if (lists) lists->push_back(std::move(w));
  }
  return parts;
}

/// Arrays of a plan in one piece of device memory.
struct OnDevice {
  // What they were made of: a plan's arrays are replaced, never changed in place.
  std::weak_ptr<void> lengths, mask;
  Device device;
  int group = 0;
  bool alibi = false, cores = false;

  Tensor memory;
  int64_t qo_indptr = -1, kv_indptr = -1, kv_indices = -1, kv_len = -1, mask_bits = -1, mask_indptr = -1, prefix_len = -1, token_pos = -1,
          slopes = -1;
  std::vector<Part> parts;

  template <class T>
  const T* at(int64_t offset) const { return offset < 0 ? nullptr : reinterpret_cast<const T*>(memory.data_as<char>() + offset); }
};

class Packer {
 public:
  int64_t add(const void* data, size_t bytes) {
    const size_t at = (bytes_.size() + 15) / 16 * 16;
    bytes_.resize(at + bytes);
    if (bytes != 0) std::memcpy(bytes_.data() + at, data, bytes);
    return static_cast<int64_t>(at);
  }
  int64_t add(const Tensor& t) { return t.defined() ? add(t.data(), static_cast<size_t>(t.nbytes())) : -1; }
  template <class T>
  int64_t add(const std::vector<T>& v) { return v.empty() ? -1 : add(v.data(), v.size() * sizeof(T)); }
  Tensor send(Device device) const { return to_device(TensorView(std::span<const uint8_t>(bytes_)), device); }

 private:
  std::vector<uint8_t> bytes_;
};

std::shared_ptr<const OnDevice> send(const Plan& p, const AttentionParams& a, const std::vector<float>& slopes, Device device) {
  auto d = std::make_shared<OnDevice>();
  d->lengths = p.kv_len.owner(), d->mask = p.mask.owner();
  d->device = device, d->group = group_of(p), d->alibi = !slopes.empty();
  d->cores = !tensor_core_refusal(config_of(p), a).empty();
  std::vector<cuda::AttentionWorkList> lists;
  d->parts = parts_of(p, a, &lists);
  Packer all;
  d->qo_indptr = all.add(p.qo_indptr), d->kv_indptr = all.add(p.kv_indptr), d->kv_len = all.add(p.kv_len);
  if (p.paged) d->kv_indices = all.add(p.kv_indices);
  d->mask_bits = all.add(p.mask), d->mask_indptr = all.add(p.mask_indptr);
  d->prefix_len = all.add(p.prefix_len), d->token_pos = all.add(p.token_pos);
  d->slopes = all.add(slopes);
  for (size_t i = 0; i < lists.size(); ++i) d->parts[i].tiles_at = all.add(lists[i].tiles), d->parts[i].cuts_at = all.add(lists[i].cuts);
  d->memory = all.send(device);
  return d;
}

/// The last plans' arrays. 32 plans are more than an engine alternates between; those that are gone make room first.
std::shared_ptr<const OnDevice> arrays_of(const Plan& p, const AttentionParams& a, const std::vector<float>& slopes, Device device) {
  constexpr size_t kKept = 32;
  static std::mutex mutex;
  static auto& known = *new std::vector<std::shared_ptr<const OnDevice>>;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& d) { return d->lengths.expired(); });
  for (const auto& d : known)
    if (d->lengths.lock() == p.kv_len.owner() && d->mask.lock() == p.mask.owner() && d->device == device && d->group == group_of(p) &&
        d->alibi == !slopes.empty() && d->cores == !tensor_core_refusal(config_of(p), a).empty())
      return d;
  if (known.size() >= kKept) known.erase(known.begin());
  known.push_back(send(p, a, slopes, device));
  return known.back();
}

}  // namespace

namespace {
/// A plan of use_cuda_graph=True that was read from a dump has no buffers, and runs as any other.
std::string graph_refusal(const Plan& p, const Call& c, Device device) {
  const GraphBuffers& b = p.buffers;
  if (!p.use_cuda_graph || (!p.graph && !b.kv_indptr.defined() && !b.qo_indptr.defined())) return {};
  if (!p.graph) return str("the buffers of use_cuda_graph=True are in host memory, but q is on ", to_string(device));
  if (p.graph->device != device) return str("the buffers of use_cuda_graph=True are on ", to_string(p.graph->device), ", but q is on ", to_string(device));
  if (p.paged) p.graph->pages = c.kv.k.pages;
  return {};
}
}  // namespace

op::Refusal refuse_cuda(const op::Op& op, const void* block, const Plan& p, const Call& c) {
  Device device;
  if (op::Refusal r = op::refuse_unless_gpu(op, block, device); !r.empty()) return r;
  if (!p.jit_args.is_none()) return "custom variants are not compiled for GPUs yet";
  if (op::Refusal r = graph_refusal(p, c, device); !r.empty()) return r;
  if (op::fp8.has(p.q_data_type)) return "8-bit queries are converted by the CPU's way only";
  if (c.q_head_scales || c.k_head_scales || c.v_head_scales) return "scales for each head are served on the CPU only";
  if (c.kv_sf) return "NVFP4 caches are read by the CPU's kernels only";
  const AttentionConfig config = config_of(p);
  if (config.rope) return "the kernel does not rotate on the fly";
  const AttentionParams a = params_of(p, c, {});
  const std::string no_tensor_cores = tensor_core_refusal(config, a);
  if (!no_tensor_cores.empty()) {
    if (op::Refusal r = cuda::attention_cores_refusal(config, a); !r.empty()) return no_tensor_cores + "; without tensor cores: " + r;
    if (!cores_aligned(config, a)) return "rows of q, k, v and out must begin at 16 bytes (8-bit k and v: at 8), which their addresses and strides do not give";
  }
  if (p.graph && p.graph->cores == no_tensor_cores.empty())
    return "with use_cuda_graph=True plan() chose the kernel for rows that begin at 16 bytes: " + no_tensor_cores;
  for (const Part& part : p.graph ? p.graph->parts : parts_of(p, a, nullptr)) {
    const auto& k = no_tensor_cores.empty() ? jit::cuda_kernel<kKernel>(part.config, device) : jit::cuda_kernel<kCores>(part.cores, device);
    if (!k.refusal.empty()) return k.refusal;
    if (part.cuts == 0) continue;
    if (const auto& k = jit::cuda_kernel<kMerge>(cuda::attention_merge_config(config, a), device); !k.refusal.empty()) return k.refusal;
  }
  return {};
}

void launch_part(const Plan& p, const Part& part, bool cores, const AttentionCudaParams& params, Device device) {
  if (cores) ops::launch_cuda<kCores>(part.cores, params, device, cuda::attention_cores_launch(part.cores, params.a, part.tiles, true));
  else ops::launch_cuda<kKernel>(part.config, params, device, cuda::attention_launch(part.config, params.a, part.tiles, true));
  if (!part.cuts) return;
  const auto merge = cuda::attention_merge_config(config_of(p), params.a);
  ops::launch_cuda<kMerge>(merge, params, device, cuda::attention_merge_launch(merge, params.a, part.cuts, true));
}

namespace {
/// The pointers of `d`, an OnDevice or GraphArrays; then each part, whose partial results `partial_of` gives memory for.
template <class Arrays, class PartialOf>
void run_parts(const Plan& p, AttentionCudaParams params, const Arrays& d, const PartialOf& partial_of) {
  AttentionParams& a = params.a;
  a.qo_indptr = d.template at<int32_t>(d.qo_indptr), a.kv_indptr = d.template at<int32_t>(d.kv_indptr), a.kv_len = d.template at<int32_t>(d.kv_len);
  a.mask_indptr = d.template at<int64_t>(d.mask_indptr), a.alibi_slopes = d.template at<float>(d.slopes);
  for (const Part& part : d.parts) {
    const int64_t states = part.partial_rows * p.num_kv_heads;
    const Tensor partial = states ? partial_of(states) : Tensor();
    if (states) a.partial_o = partial.data_as<float>(), a.partial_state = a.partial_o + states * p.head_dim_vo;
    params.tiles = d.template at<AttentionTile>(part.tiles_at);
    params.cuts = part.cuts ? d.template at<AttentionCudaMerge>(part.cuts_at) : nullptr;
    launch_part(p, part, d.cores, params, d.device);
  }
}
}  // namespace

void run_cuda(const Plan& p, const Call& c) {
  const std::vector<float> slopes = slopes_of(p);
  AttentionCudaParams params{params_of(p, c, slopes), nullptr, nullptr};
  AttentionParams& a = params.a;
  a.prefix_len = nullptr, a.token_pos = nullptr;
  if (p.graph) {
    const GraphArrays& g = *p.graph;
    a.kv_indices = g.pages_of_caller ? g.pages_of_caller : g.at<int32_t>(g.kv_indices);
    a.mask = p.mask.defined() ? g.mask_of_caller : nullptr;
    return run_parts(p, params, g, [&](int64_t) { return g.partial; });
  }
  const auto d = arrays_of(p, a, slopes, c.q.device());
  a.kv_indices = d->at<int32_t>(d->kv_indices), a.mask = d->at<uint8_t>(d->mask_bits);
  a.prefix_len = d->at<uint32_t>(d->prefix_len), a.token_pos = d->at<uint16_t>(d->token_pos);
  run_parts(p, params, *d, [&](int64_t states) { return Tensor::empty({states * (p.head_dim_vo + 1)}, DType::kF32, d->device); });
}

}  // namespace flashinfer::attention
