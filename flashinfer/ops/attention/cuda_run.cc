// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cuda_run.h"

#include <cstring>
#include <memory>
#include <mutex>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/cuda_launch.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::attention {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/attention/cuda.cuh", "flashinfer::cu::attention", "flashinfer::AttentionCudaParams"};
inline constexpr jit::Kernel kMerge{"flashinfer/ops/attention/cuda.cuh", "flashinfer::cu::attention_merge", "flashinfer::AttentionCudaParams"};

int group_of(const Plan& p) { return static_cast<int>(p.num_qo_heads / p.num_kv_heads); }

/// A plan that was made for refusing has no arrays: one request.
std::vector<cuda::AttentionShape> shapes_of(const Plan& p) {
  std::vector<cuda::AttentionShape> s;
  if (!p.kv_len.defined()) return {{static_cast<int32_t>(p.nnz_qo), static_cast<int32_t>(p.nnz_kv)}};
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) s.push_back({qo[b + 1] - qo[b], kv[b]});
  return s;
}

/// One of the two kinds of work, on the device.
struct Part {
  bool few = false;
  AttentionCudaConfig config;
  size_t tiles = 0, cuts = 0;
  int64_t partial_rows = 0, tiles_at = 0, cuts_at = 0;  // bytes into the arrays
};
std::vector<Part> parts_of(const Plan& p, const AttentionParams& a, std::vector<cuda::AttentionWorkList>* lists) {
  const auto shapes = shapes_of(p);
  const int group = group_of(p);
  int64_t most = 0;
  for (const auto& s : shapes) most = std::max(most, int64_t{s.tokens} * group);
  std::vector<Part> parts;
  for (const bool few : {true, false}) {
    Part part{.few = few, .config = cuda::attention_config(config_of(p), a, few, most)};
    cuda::AttentionWorkList w = cuda::attention_tiles(shapes, group, part.config.rows(), few);
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
  bool alibi = false;

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
        d->alibi == !slopes.empty())
      return d;
  if (known.size() >= kKept) known.erase(known.begin());
  known.push_back(send(p, a, slopes, device));
  return known.back();
}

}  // namespace

op::Refusal refuse_cuda(const op::Op& op, const void* block, const Plan& p, const Call& c) {
  Device device;
  if (op::Refusal r = op::refuse_unless_gpu(op, block, device); !r.empty()) return r;
  if (!p.jit_args.is_none()) return "custom variants are not compiled for GPUs yet";
  if (p.use_cuda_graph) return "use_cuda_graph=True is not served on GPUs: plan() does not write into device buffers";
  if (c.kv_sf) return "NVFP4 caches are read by the CPU's kernels only";
  const AttentionConfig config = config_of(p);
  if (config.rope) return "the kernel does not rotate on the fly";
  const AttentionParams a = params_of(p, c, {});
  if (op::Refusal r = cuda::attention_refusal(config, a); !r.empty()) return r;
  if (!cuda::attention_aligned(a)) return "cp.async needs q, k, v and out to begin at 16 bytes in every row";
  for (const Part& part : parts_of(p, a, nullptr)) {
    if (const auto& k = jit::cuda_kernel<kKernel>(part.config, device); !k.refusal.empty()) return k.refusal;
    if (part.cuts == 0) continue;
    if (const auto& k = jit::cuda_kernel<kMerge>(cuda::attention_merge_config(config, a), device); !k.refusal.empty()) return k.refusal;
  }
  return {};
}

void run_cuda(const Plan& p, const Call& c) {
  const std::vector<float> slopes = slopes_of(p);
  const Device device = c.q.device();
  AttentionCudaParams params{params_of(p, c, slopes), nullptr, nullptr};
  AttentionParams& a = params.a;
  const auto d = arrays_of(p, a, slopes, device);
  a.qo_indptr = d->at<int32_t>(d->qo_indptr), a.kv_indptr = d->at<int32_t>(d->kv_indptr), a.kv_indices = d->at<int32_t>(d->kv_indices);
  a.kv_len = d->at<int32_t>(d->kv_len), a.alibi_slopes = d->at<float>(d->slopes);
  a.mask = d->at<uint8_t>(d->mask_bits), a.mask_indptr = d->at<int64_t>(d->mask_indptr);
  a.prefix_len = d->at<uint32_t>(d->prefix_len), a.token_pos = d->at<uint16_t>(d->token_pos);
  const auto merge = cuda::attention_merge_config(config_of(p), a);
  for (const Part& part : d->parts) {
    Tensor partial;
    if (part.partial_rows) {
      const int64_t states = part.partial_rows * p.num_kv_heads;
      partial = Tensor::empty({states * (p.head_dim_vo + 1)}, DType::kF32, device);
      a.partial_o = partial.data_as<float>(), a.partial_state = a.partial_o + states * p.head_dim_vo;
    }
    params.tiles = d->at<AttentionTile>(part.tiles_at), params.cuts = part.cuts ? d->at<AttentionCudaMerge>(part.cuts_at) : nullptr;
    ops::launch_cuda<kKernel>(part.config, params, device, cuda::attention_launch(part.config, a, part.tiles, true));
    if (part.cuts) ops::launch_cuda<kMerge>(merge, params, device, cuda::attention_merge_launch(merge, a, part.cuts, true));
  }
}

}  // namespace flashinfer::attention
