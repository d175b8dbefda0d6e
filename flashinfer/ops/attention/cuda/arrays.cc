// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cuda/arrays.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/targets.h"

namespace flashinfer::attention {

AttentionConfig cuda_config(const Plan& p) {
  AttentionConfig c = config_of(p);
  c.q = p.q_data_type;
  return c;
}
std::string plan_refusal(const Plan& p, const AttentionParams& a, Device device) {
  if (!p.jit_args.is_none() && cuda::attention_narrow(p.kv_data_type))
    return "a custom variant transforms keys of 8-bit caches in f32";
  const AttentionConfig config = cuda_config(p);
  const std::string why = cuda::attention_refusal(config, a, jit::arch_of_number(jit::arch_number(device)).async_copy);
  if (!why.empty() || std::max(a.head_dim_qk, a.head_dim_vo) <= 256) return why;
  const cuda::AttentionLimits limits = limits_of(p, device);
  const int bytes = std::max(cuda::attention_config(config, a, true, 64, limits).shared_bytes(),
                             cuda::attention_config(config, a, false, 64, limits).shared_bytes());
  if (bytes <= limits.shared_bytes) return {};
  return str("these head dimensions take ", bytes, " bytes of shared memory, but a block has ", limits.shared_bytes);
}
cuda::AttentionLimits limits_of(const Plan& p, Device device) {
  // A variant's functions take registers that 32 rows a warp leave none of.
  static constinit env::Cached prefill_rows("FLASHINFER_CUDA_PREFILL_ROWS"), fp8("FLASHINFER_CUDA_FP8_ATTENTION");
  const bool wide = p.jit_args.is_none() && prefill_rows.text() != "16";
  const jit::Arch& arch = jit::arch_of_number(jit::arch_number(device));
  const std::string& e4m3 = fp8.text();
  return {.shared_bytes = arch.shared_bytes,
          .wide = wide,
          .e4m3 = !cuda::attention_has_e4m3(arch.number) || e4m3 == "none" ? 0
                  : e4m3 == "all"                                          ? 2
                                                                           : 1};
}
int64_t partial_width(const Plan& p) { return p.head_dim_vo + (p.jit_args.is_none() ? 1 : 2); }

int group_of(const Plan& p) { return static_cast<int>(p.num_qo_heads / p.num_kv_heads); }

std::vector<cuda::AttentionShape> shapes_of(const Plan& p) {
  std::vector<cuda::AttentionShape> s;
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) s.push_back({qo[b + 1] - qo[b], kv[b]});
  return s;
}

std::array<Part, 2> kinds_of(const Plan& p, const AttentionParams& a, bool cores, int64_t most, Device device,
                             bool pair) {
  const AttentionConfig config = cuda_config(p);
  cuda::AttentionLimits limits = limits_of(p, device);
  limits.pair = pair;
  if (pair && !cuda::attention_pair_wide(p.kv_data_type, a.head_dim_qk, a.head_dim_vo, jit::arch_number(device)))
    limits.wide = false;
  std::array<Part, 2> kinds{Part{.few = true}, Part{}};
  for (Part& part : kinds) {
    if (cores)
      part.cores = cuda::attention_cores_config(config, a);
    else
      part.config = cuda::attention_config(config, a, part.few, most, limits);
    part.tile_rows = cores ? part.cores.rows : part.config.rows();
  }
  return kinds;
}

namespace {

class Packer {
 public:
  int64_t add(const void* data, size_t bytes) {
    const size_t at = round_up(bytes_.size(), 16);
    bytes_.resize(at + bytes);
    if (bytes != 0) std::memcpy(bytes_.data() + at, data, bytes);
    return static_cast<int64_t>(at);
  }
  int64_t add(const Tensor& t) { return t.defined() ? add(t.data(), static_cast<size_t>(t.nbytes())) : -1; }
  template <class T>
  int64_t add(const std::vector<T>& v) {
    return v.empty() ? -1 : add(v.data(), v.size() * sizeof(T));
  }
  Tensor send(Device device) const {
    const Tensor t = Tensor::empty({static_cast<int64_t>(bytes_.size())}, DType::kU8, device);
    send_in_order(t.data(), device, bytes_.data(), bytes_.size());
    return t;
  }

 private:
  std::vector<uint8_t> bytes_;
};

void send(const Plan& p, OnDevice& d) {
  Packer all;
  d.qo_indptr = all.add(p.qo_indptr), d.kv_indptr = all.add(p.kv_indptr), d.kv_len = all.add(p.kv_len);
  if (p.paged) d.kv_indices = all.add(p.kv_indices);
  d.mask_bits = all.add(p.mask), d.mask_indptr = all.add(p.mask_indptr);
  d.prefix_len = all.add(p.prefix_len), d.token_pos = all.add(p.token_pos);
  d.slopes = all.add(slopes_of(p));
  for (size_t i = 0; i < d.lists.size(); ++i) d.parts[i].tiles_at = all.add(d.lists[i].tiles);
  d.memory = all.send(d.device);
  d.lists.clear();
  if (d.device.type != DeviceType::kCUDA) return;
  d.filled = std::make_unique<cuda::Event>(d.device.index);
  d.filled->record(Context::current().stream);
}

/// A list for each KV head, one after another, as long as the longest: those that are over have no rows.
cuda::AttentionWorkList tiles_of_heads(std::span<const cuda::AttentionShape> shapes, int64_t requests_a_head,
                                       const Source& source, const Part& part) {
  std::vector<cuda::AttentionWorkList> heads;
  cuda::AttentionWorkList all;
  size_t most = 0;
  for (size_t first = 0; first < shapes.size(); first += static_cast<size_t>(requests_a_head)) {
    const auto own = shapes.subspan(first, std::min(static_cast<size_t>(requests_a_head), shapes.size() - first));
    auto& w = heads.emplace_back(cuda::attention_tiles(own, source.group, part.tile_rows, part.few, source.chunk_of));
    for (AttentionTile& t : w.tiles) t.request += static_cast<int32_t>(first);
    most = std::max(most, w.tiles.size());
    all.cuts = std::max(all.cuts, w.cuts), all.partial_rows = std::max(all.partial_rows, w.partial_rows);
  }
  for (auto& w : heads) {
    w.tiles.resize(most);
    all.tiles.insert(all.tiles.end(), w.tiles.begin(), w.tiles.end());
  }
  return all;
}
std::atomic<int64_t> g_made{0};

std::shared_ptr<OnDevice> work_of(const Plan& p, Source source) {
  g_made.fetch_add(1, std::memory_order_relaxed);
  auto d = std::make_shared<OnDevice>();
  d->device = source.device, d->cores = source.cores;
  const auto shapes = shapes_of(p);
  for (Part part : source.kinds) {
    cuda::AttentionWorkList w =
        p.requests_a_head ? tiles_of_heads(shapes, p.requests_a_head, source, part)
                          : cuda::attention_tiles(shapes, source.group, part.tile_rows, part.few, source.chunk_of);
    if (w.tiles.empty()) continue;
    part.tiles = w.tiles.size(), part.cuts = w.cuts, part.partial_rows = w.partial_rows;
    if (p.requests_a_head)
      part.tiles /= static_cast<size_t>(p.num_kv_heads), part.tiles_a_head = static_cast<uint32_t>(part.tiles);
    d->parts.push_back(part);
    d->lists.push_back(std::move(w));
  }
  d->source = std::move(source);
  return d;
}
}  // namespace

int64_t work_lists_made() { return g_made.load(std::memory_order_relaxed); }

// 32 plans are more than an engine alternates between; those that are gone make room first.
std::shared_ptr<OnDevice> arrays_of(const Plan& p, const std::array<Part, 2>& kinds, bool cores, Device device,
                                    cuda::ChunkOf chunk_of) {
  constexpr size_t kKept = 32;
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static auto& known = *new std::vector<std::shared_ptr<OnDevice>>;
  const auto is_of = [&, group = group_of(p), alibi = p.pos_encoding_mode == "ALIBI"](const Source& s) {
    const auto same = [](const auto& x, const auto& y) { return !x.owner_before(y) && !y.owner_before(x); };
    const auto same_kernels = [](const Part& x, const Part& y) {
      return x.config == y.config && x.cores == y.cores && x.tile_rows == y.tile_rows;
    };
    return s.first_length == p.kv_len.data() && same(s.lengths, p.kv_len.owner()) && same(s.mask, p.mask.owner()) &&
           s.requests == p.batch_size && s.rows == p.nnz_qo && s.device == device && s.group == group &&
           s.alibi == alibi && s.cores == cores && s.chunk_of == chunk_of &&
           std::equal(kinds.begin(), kinds.end(), s.kinds.begin(), same_kernels);
  };
  const std::lock_guard lock(mutex);
  for (const auto& d : known)
    if (is_of(d->source)) return d;
  std::erase_if(known, [](const auto& d) { return d->source.lengths.expired(); });
  if (known.size() >= kKept) known.erase(known.begin());
  known.push_back(work_of(p, {.lengths = p.kv_len.owner(),
                              .mask = p.mask.owner(),
                              .first_length = p.kv_len.data(),
                              .requests = p.batch_size,
                              .rows = p.nnz_qo,
                              .device = device,
                              .group = group_of(p),
                              .alibi = p.pos_encoding_mode == "ALIBI",
                              .cores = cores,
                              .kinds = kinds,
                              .chunk_of = chunk_of}));
  return known.back();
}

std::shared_ptr<OnDevice> arrays_of(const Plan& p, const AttentionParams& a, bool cores, Device device, bool pair) {
  return arrays_of(p, kinds_of(p, a, cores, longest_rows(p) * group_of(p), device, pair), cores, device,
                   cuda::attention_chunk);
}

namespace {
void wait_until_sent(OnDevice& d, cuda::Handle stream) {
  if (!d.filled || d.seen_filled.load(std::memory_order_acquire)) return;
  if (cuda::capturing(d.device.index, stream))
    d.filled->wait();
  else if (!d.filled->done())
    return d.filled->wait_on(stream);
  d.seen_filled.store(true, std::memory_order_release);
}
}  // namespace

void make_ready(const Plan& p, const std::shared_ptr<OnDevice>& d) {
  cuda::Handle const stream = Context::current().stream;
  const BesideGraph beside(d->device);
  std::call_once(d->sent, [&] { send(p, *d); });
  wait_until_sent(*d, stream);
  beside.keep(d);
}
namespace {
/// Memory of streams: driver, device, stream.
using Counters = std::map<std::tuple<const void*, int, cuda::Handle>, Tensor>;
constinit ForkMutex counters_mutex(ForkLayer::kOps);
Counters& counters() {
  static auto& all = *new Counters;
  return all;
}
void drop_counters(int index, cuda::Handle stream) {
  Tensor gone;  // released without the lock
  const std::lock_guard lock(counters_mutex);
  if (const auto it = counters().find({&cuda::driver(), index, stream}); it != counters().end())
    gone = std::move(it->second), counters().erase(it);
}
/// cuStreamPerThread: one handle for the streams of all threads.
const cuda::Handle kPerThread = reinterpret_cast<cuda::Handle>(uintptr_t{2});
constexpr int64_t kLeastCounters = 16384;
}  // namespace

Tensor counters_of(Device device, int64_t words) {
  cuda::Handle const stream = Context::current().stream;
  const auto fresh = [&](int64_t n) { return Tensor::zeros({n}, DType::kU32, device); };
  if (words == 0) return {};
  if (device.type != DeviceType::kCUDA || stream == kPerThread) return fresh(words);
  if (const BesideGraph beside(device); cuda::capturing(device.index, stream)) {
    Tensor t = fresh(words);
    cuda::Event filled(device.index);
    filled.record(Context::current().stream);
    filled.wait();
    beside.keep(t.owner());
    return t;
  }
  static std::once_flag once;  // a later stream may have the handle of one that is gone, and must not take its memory
  std::call_once(once, [] { cuda::on_stream_end(drop_counters); });
  const std::lock_guard lock(counters_mutex);
  Tensor& t = counters()[{&cuda::driver(), device.index, stream}];
  if (!t.defined() || t.size(0) < words) t = fresh(std::max(words, kLeastCounters));
  return t;
}
void used_on_current_stream(const OnDevice& d) {
  if (d.device.type == DeviceType::kCUDA) cuda::used_on(d.memory.data(), d.device.index, Context::current().stream);
}

}  // namespace flashinfer::attention
