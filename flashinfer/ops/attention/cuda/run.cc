// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cuda/run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/attention/cuda/graph.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/plan/rope_table.h"
#include "flashinfer/ops/attention/variant/variant_call.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::attention {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/attention/kernels/cuda/attention.cuh", "flashinfer::cu::attention",
                                     "flashinfer::AttentionCudaParams"};
inline constexpr jit::Kernel kCores{"flashinfer/ops/attention/kernels/cuda/attention_simt.cuh",
                                    "flashinfer::cu::attention_cores", "flashinfer::AttentionCudaParams"};
inline constexpr jit::Kernel kMerge{"flashinfer/ops/attention/kernels/cuda/attention.cuh",
                                    "flashinfer::cu::attention_merge", "flashinfer::AttentionCudaParams"};
constexpr const char *kVariants = "flashinfer/ops/attention/kernels/cuda/variant.cuh",
                     *kVariantParams = "flashinfer::AttentionVariantCudaParams";
inline constexpr jit::Kernel kKernelVariant{kVariants, "flashinfer::cu::attention_variant", kVariantParams};
inline constexpr jit::Kernel kCoresVariant{kVariants, "flashinfer::cu::attention_cores_variant", kVariantParams};
inline constexpr jit::Kernel kMergeVariant{kVariants, "flashinfer::cu::attention_merge_variant", kVariantParams};

/// The kernels of a plan: the built-in ones, or those that are compiled with its custom variant.
class Kernels {
 public:
  Kernels(const Plan& p, Device device)
      : device_(device), merge_(cuda::attention_merge_config(cuda_config(p), p.head_dim_vo)) {
    if (!p.jit_args.is_none()) extension_ = extension_of(variant_from(p.jit_args));
  }
  const jit::CudaLoaded& of(const Part& part, bool cores) const {
    return cores ? get<kCores, kCoresVariant>(part.cores) : get<kKernel, kKernelVariant>(part.config);
  }
  const jit::CudaLoaded& merge() const { return get<kMerge, kMergeVariant>(merge_); }
  const AttentionMergeCudaConfig& merge_config() const { return merge_; }
  void launch(const jit::CudaLoaded& kernel, const AttentionVariantCudaParams& params, const cuda::Launch& l) const {
    if (l.grid[0] == 0 || l.grid[1] == 0) return;
    if (extension_)
      jit::launch(kernel, params, l);
    else
      jit::launch(kernel, params.base, l);
  }

 private:
  template <const jit::Kernel& Plain, const jit::Kernel& Variant, class Config>
  const jit::CudaLoaded& get(const Config& config) const {
    return extension_ ? jit::cuda_kernel<Variant>(config, device_, *extension_)
                      : jit::cuda_kernel<Plain>(config, device_);
  }
  Device device_;
  AttentionMergeCudaConfig merge_;
  std::optional<jit::Extension> extension_;
};

}  // namespace

AttentionConfig cuda_config(const Plan& p) {
  AttentionConfig c = config_of(p);
  c.q = p.q_data_type;
  return c;
}
int64_t partial_width(const Plan& p) { return p.head_dim_vo + (p.jit_args.is_none() ? 1 : 2); }

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
std::string tensor_core_refusal(const Plan& p, const Call& call, const AttentionParams& a) {
  const bool async_copy = jit::arch_of_number(jit::arch_number(call.q.device())).async_copy;
  if (std::string r = cuda::attention_refusal(cuda_config(p), a, async_copy); !r.empty()) return r;
  if (call.q_head_scales || call.k_head_scales) return "scales for each head are multiplied into f32 queries";
  return cuda::attention_aligned(a) ? "" : "cp.async needs q, k, v and out to begin at 16 bytes in every row";
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

std::vector<Part> parts_of(const Plan& p, const AttentionParams& a, bool cores,
                           std::vector<cuda::AttentionWorkList>* lists) {
  const auto shapes = shapes_of(p);
  const int group = group_of(p);
  int64_t most = 0;
  for (const auto& s : shapes) most = std::max(most, int64_t{s.tokens} * group);
  std::vector<Part> parts;
  const AttentionConfig config = cuda_config(p);
  for (const bool few : {true, false}) {
    Part part;
    if (cores)
      part.cores = cuda::attention_cores_config(config, a);
    else
      part.config = cuda::attention_config(config, a, few, most);
    cuda::AttentionWorkList w = cuda::attention_tiles(shapes, group, cores ? part.cores.rows : part.config.rows(), few);
    if (w.tiles.empty()) continue;
    part.tiles = w.tiles.size(), part.cuts = w.cuts.size(), part.partial_rows = w.partial_rows;
    parts.push_back(part);
    if (lists) lists->push_back(std::move(w));
  }
  return parts;
}

bool rotates(const Plan& p) { return p.pos_encoding_mode == "ROPE_LLAMA"; }

/// Arrays of a plan in one piece of device memory.
struct OnDevice {
  // What they were made of: a plan's arrays are replaced, never changed in place. Plans of a list that was read from a
  // dump share owners.
  std::weak_ptr<void> lengths, mask;
  const void* first_length = nullptr;
  int64_t requests = 0;
  Device device;
  int group = 0;
  bool alibi = false, cores = false, rope = false;  // forward() may choose another pos_encoding_mode

  Tensor memory;
  int64_t qo_indptr = -1, kv_indptr = -1, kv_indices = -1, kv_len = -1, mask_bits = -1, mask_indptr = -1,
          prefix_len = -1, token_pos = -1, slopes = -1;
  std::vector<Part> parts;

  template <class T>
  const T* at(int64_t offset) const {
    return offset < 0 ? nullptr : reinterpret_cast<const T*>(memory.data_as<char>() + offset);
  }
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
  int64_t add(const std::vector<T>& v) {
    return v.empty() ? -1 : add(v.data(), v.size() * sizeof(T));
  }
  Tensor send(Device device) const { return to_device(TensorView(std::span<const uint8_t>(bytes_)), device); }

 private:
  std::vector<uint8_t> bytes_;
};

std::shared_ptr<const OnDevice> send(const Plan& p, const AttentionParams& a, const std::vector<float>& slopes,
                                     bool cores, Device device) {
  auto d = std::make_shared<OnDevice>();
  d->lengths = p.kv_len.owner(), d->mask = p.mask.owner();
  d->first_length = p.kv_len.data(), d->requests = p.batch_size;
  d->device = device, d->group = group_of(p), d->alibi = !slopes.empty();
  d->cores = cores, d->rope = rotates(p);
  std::vector<cuda::AttentionWorkList> lists;
  d->parts = parts_of(p, a, cores, &lists);
  Packer all;
  d->qo_indptr = all.add(p.qo_indptr), d->kv_indptr = all.add(p.kv_indptr), d->kv_len = all.add(p.kv_len);
  if (p.paged) d->kv_indices = all.add(p.kv_indices);
  d->mask_bits = all.add(p.mask), d->mask_indptr = all.add(p.mask_indptr);
  d->prefix_len = all.add(p.prefix_len), d->token_pos = all.add(p.token_pos);
  d->slopes = all.add(slopes);
  for (size_t i = 0; i < lists.size(); ++i)
    d->parts[i].tiles_at = all.add(lists[i].tiles), d->parts[i].cuts_at = all.add(lists[i].cuts);
  d->memory = all.send(device);
  return d;
}

/// The last plans' arrays. 32 plans are more than an engine alternates between; those that are gone make room first.
std::shared_ptr<const OnDevice> arrays_of(const Plan& p, const AttentionParams& a, const std::vector<float>& slopes,
                                          bool cores, Device device) {
  constexpr size_t kKept = 32;
  static std::mutex mutex;
  static auto& known = *new std::vector<std::shared_ptr<const OnDevice>>;
  const BesideGraph beside(device);
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& d) { return d->lengths.expired(); });
  for (const auto& d : known)
    if (d->lengths.lock() == p.kv_len.owner() && d->first_length == p.kv_len.data() && d->requests == p.batch_size &&
        d->mask.lock() == p.mask.owner() && d->device == device && d->group == group_of(p) &&
        d->alibi == !slopes.empty() && d->cores == cores && d->rope == rotates(p)) {
      beside.keep(d);
      return d;
    }
  if (known.size() >= kKept) known.erase(known.begin());
  known.push_back(send(p, a, slopes, cores, device));
  beside.keep(known.back());
  return known.back();
}

}  // namespace

namespace {
/// A plan of use_cuda_graph=True that was read from a dump has no buffers, and runs as any other.
std::string graph_refusal(const Plan& p, const Call& c, Device device) {
  const GraphBuffers& b = p.buffers;
  if (!p.use_cuda_graph || (!p.graph && !b.kv_indptr.defined() && !b.qo_indptr.defined())) return {};
  if (!p.graph) return str("the buffers of use_cuda_graph=True are in host memory, but q is on ", to_string(device));
  if (p.graph->device != device)
    return str("the buffers of use_cuda_graph=True are on ", to_string(p.graph->device), ", but q is on ",
               to_string(device));
  if (p.paged) p.graph->pages = c.kv.k.pages;
  return {};
}
}  // namespace

op::Refusal refuse_cuda(const op::Op& op, const void* block, const Plan& p, const Call& c) {
  const Device device = op::device_of(op, block);
  if (op::Refusal r = graph_refusal(p, c, device); !r.empty()) return r;
  if (c.kv_sf) return "NVFP4 caches are read by the CPU's kernels only";
  for (const TensorView* t : {c.q_head_scales, c.k_head_scales, c.v_head_scales})
    if (t && !t->is_contiguous()) return "scales for each head must be contiguous on a GPU";
  if (!p.jit_args.is_none()) {
    const AttentionVariant v = variant_from(p.jit_args);
    const size_t tensors = v.additional_tensor_names.size(), scalars = v.additional_scalar_names.size();
    if (std::max(tensors, scalars) > size_t{kCudaExtras})
      return str("the variant has ", tensors, " additional tensors and ", scalars, " scalars, but a launch carries ",
                 kCudaExtras, " of each");
  }
  const AttentionConfig config = cuda_config(p);
  const AttentionParams a = params_of(p, c, {});
  const std::string no_tensor_cores = tensor_core_refusal(p, c, a);
  const bool cores = !no_tensor_cores.empty();
  if (cores) {
    if (op::Refusal r = cuda::attention_cores_refusal(config, a); !r.empty())
      return no_tensor_cores + "; without tensor cores: " + r;
    if (!cores_aligned(config, a))
      return "rows of k and v must begin at 16 bytes (8-bit ones at 8) and rows of out at 4 elements, which their "
             "addresses and strides do not give";
  }
  if (p.graph && p.graph->cores != cores)
    return "with use_cuda_graph=True plan() chose the kernel for rows that begin at 16 bytes: " + no_tensor_cores;
  const Kernels kernels(p, device);
  for (const Part& part : p.graph ? p.graph->parts : parts_of(p, a, cores, nullptr)) {
    if (const auto& k = kernels.of(part, cores); !k.refusal.empty()) return k.refusal;
    if (part.cuts == 0) continue;
    if (const auto& k = kernels.merge(); !k.refusal.empty()) return k.refusal;
  }
  return {};
}

namespace {
/// The pointers of `d`, an OnDevice or GraphArrays; then each part, whose partial results `partial_of` gives memory
/// for.
template <class Arrays, class PartialOf>
void run_parts(const Plan& p, const Call& c, AttentionVariantCudaParams& params, const Arrays& d,
               const PartialOf& partial_of) {
  AttentionParams& a = params.base.a;
  a.qo_indptr = d.template at<int32_t>(d.qo_indptr), a.kv_indptr = d.template at<int32_t>(d.kv_indptr),
  a.kv_len = d.template at<int32_t>(d.kv_len);
  a.mask_indptr = d.template at<int64_t>(d.mask_indptr), a.alibi_slopes = d.template at<float>(d.slopes);
  if (const std::optional<Extras> extras = extras_of(p, c, a, d.device)) {
    std::copy_n(extras->tensors(), extras->num_tensors(), params.tensors);
    std::copy_n(extras->scalars(), extras->num_scalars(), params.scalars);
  }
  const Kernels kernels(p, d.device);
  for (const Part& part : d.parts) {
    const int64_t states = part.partial_rows * p.num_kv_heads;
    const Tensor partial = states ? partial_of(states) : Tensor();
    if (states) a.partial_o = partial.data_as<float>(), a.softmax_state = a.partial_o + states * p.head_dim_vo;
    params.base.tiles = d.template at<AttentionTile>(part.tiles_at);
    params.base.cuts = part.cuts ? d.template at<AttentionCudaMerge>(part.cuts_at) : nullptr;
    kernels.launch(kernels.of(part, d.cores), params,
                   d.cores ? cuda::attention_cores_launch(part.cores, a, part.tiles, true)
                           : cuda::attention_launch(part.config, a, part.tiles, true));
    if (part.cuts)
      kernels.launch(kernels.merge(), params, cuda::attention_merge_launch(kernels.merge_config(), a, part.cuts, true));
  }
}
}  // namespace

void run_cuda(const Plan& p, const Call& c) {
  const std::vector<float> slopes = slopes_of(p);
  const auto scales = [](const TensorView* t) { return t ? t->data_as<float>() : nullptr; };
  AttentionVariantCudaParams params{};
  params.base.q_head_scales = scales(c.q_head_scales), params.base.k_head_scales = scales(c.k_head_scales);
  AttentionParams& a = params.base.a;
  a = params_of(p, c, slopes);
  a.v_head_scales = scales(c.v_head_scales);
  a.prefix_len = nullptr, a.token_pos = nullptr;
  if (p.graph) {
    const GraphArrays& g = *p.graph;
    a.kv_indices = g.pages_of_caller ? g.pages_of_caller : g.at<int32_t>(g.kv_indices);
    a.mask = p.mask.defined() ? g.mask_of_caller : nullptr;
    a.prefix_len = g.at<uint32_t>(g.prefix_len), a.token_pos = g.at<uint16_t>(g.token_pos),
    a.token_pos_len = g.token_pos_len;
    if (g.rope.defined()) a.rope = g.rope.data_as<float>(), a.rope_first = g.rope_first;
    return run_parts(p, c, params, g, [&](int64_t) { return g.partial; });
  }
  const Device device = c.q.device();
  const auto d = arrays_of(p, a, slopes, !tensor_core_refusal(p, c, a).empty(), device);
  a.kv_indices = d->at<int32_t>(d->kv_indices), a.mask = d->at<uint8_t>(d->mask_bits);
  a.prefix_len = d->at<uint32_t>(d->prefix_len), a.token_pos = d->at<uint16_t>(d->token_pos);
  Tensor rope;
  if (rotates(p)) {
    const auto table = rope_table_of(p);
    const BesideGraph beside(device);
    rope = values_on(table, device);
    beside.keep(rope.owner());
    a.rope = rope.data_as<float>(), a.rope_first = table->first;
  }
  run_parts(p, c, params, *d,
            [&](int64_t states) { return Tensor::empty({states * partial_width(p)}, DType::kF32, device); });
}

}  // namespace flashinfer::attention
