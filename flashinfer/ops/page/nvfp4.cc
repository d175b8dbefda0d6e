// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/page/nvfp4.h"

#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/nvfp4.h"
#include "flashinfer/ops/common/nvfp4_cuda.h"
#include "flashinfer/ops/page/cases.h"
#include "flashinfer/ops/page/nvfp4_ref.h"
#include "flashinfer/ops/page/ops.h"

namespace flashinfer {
namespace {

constexpr const char* kAppend = "nvfp4_quantize_append_paged_kv_cache";
constexpr const char* kSlots = "nvfp4_quantize_append_paged_kv_cache_with_slot_mapping";
constexpr const char* kMla = "nvfp4_quantize_append_paged_mla_kv_cache";

constexpr const char* kDecodeScale =
    "a positive finite global decode scale, a normal f32 number";  // FlashInfer's words
constexpr const char* kBothScales =
    "a normal f32 number: k_scale and v_scale must be positive finite global decode scales";

struct Planes {
  ops::KvPlanes data, scale;
};
template <class Block>
Planes planes_of(const Block& a) {
  return {ops::kv_planes(a.paged_kv_cache, a.kv_layout), ops::kv_planes(a.kv_cache_sf, a.kv_layout, "kv_cache_sf")};
}
template <class Block>
Planes check_planes(const Block& a) {
  const Planes p = planes_of(a);
  for (const auto& [x, data, scale, who] : {std::tuple(&a.append_key, &p.data.k, &p.scale.k, "append_key"),
                                            std::tuple(&a.append_value, &p.data.v, &p.scale.v, "append_value")}) {
    FI_CHECK(x->size(1) == data->heads, ValueError, who, ".shape[1] is ", x->size(1), ", but paged_kv_cache has ",
             data->heads, " heads");
    ops::check_nvfp4_plane("paged_kv_cache", *data, "kv_cache_sf", *scale, x->size(2));
  }
  return p;
}

Nvfp4Tensor tensor_of(const TensorView& x, const ops::KvPlane& data, const ops::KvPlane& scale, double global) {
  return {ops::token_rows(x),
          ops::token_rows(data),
          ops::token_rows(scale),
          data.heads,
          x.size(-1),
          static_cast<float>(global),
          0};
}
/// p.tensor[..] say what is written; `slots` says where.
op::Prepared prepare(const TensorView& x, const Nvfp4Params& params, std::vector<int64_t> slots) {
  return ops::with_kernel<ops::kNvfp4Quantize>(Nvfp4Config{x.dtype()},
                                               [p = params, slots = std::move(slots)](jit::CpuFn fn) mutable {
                                                 p.slot = slots.data();
                                                 p.tokens = static_cast<int64_t>(slots.size());
                                                 ops::run_nvfp4(fn, p);
                                               });
}

// ---- on a GPU ----
template <class B>
TokenPlaces places_of(const B& a, int64_t pages, int64_t page_size) {
  TokenPlaces p{};
  p.kind = TokenPlace::kPages;
  p.pages = ops::append_pages({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, pages, page_size,
                              a.kv_last_page_len.size(0));
  return p;
}
op::Prepared prepare_append_cuda(const Nvfp4AppendPagedKvCache& a, const op::Call& call) {
  const Planes c = planes_of(a);
  Nvfp4CudaParams p{};
  p.tensor[0] = ops::nvfp4_cuda_tensor(tensor_of(a.append_key, c.data.k, c.scale.k, 1), ops::nvfp4_factor(a.k_scale));
  p.tensor[1] = ops::nvfp4_cuda_tensor(tensor_of(a.append_value, c.data.v, c.scale.v, 1), ops::nvfp4_factor(a.v_scale));
  p.places = places_of(a, c.data.k.pages, c.data.k.page_size);
  p.tokens = a.append_key.size(0);
  return ops::prepare_nvfp4_cuda<ops::kNvfp4QuantizeCuda>(a.append_key.dtype(), p, call.device);
}
op::Prepared prepare_slots_cuda(const Nvfp4AppendWithSlotMapping& a, const op::Call& call) {
  const Planes c = planes_of(a);
  Nvfp4CudaParams p{};
  p.tensor[0] = ops::nvfp4_cuda_tensor(tensor_of(a.append_key, c.data.k, c.scale.k, 1), ops::nvfp4_factor(a.k_scale));
  p.tensor[1] = ops::nvfp4_cuda_tensor(tensor_of(a.append_value, c.data.v, c.scale.v, 1), ops::nvfp4_factor(a.v_scale));
  p.places.kind = TokenPlace::kSlots;
  p.places.pool = c.data.k.pages * c.data.k.page_size;
  p.places.slots = ops::strided_indices(a.slot_mapping);
  p.tokens = a.slot_mapping.size(0);
  return ops::prepare_nvfp4_cuda<ops::kNvfp4QuantizeCuda>(a.append_key.dtype(), p, call.device);
}
op::Prepared prepare_mla_cuda(const Nvfp4AppendPagedMlaKvCache& a, const op::Call& call) {
  const ops::KvPlane data = ops::kv_plane(a.ckv_cache.unsqueeze(2), true),
                     scale = ops::kv_plane(a.ckv_sf_cache.unsqueeze(2), true);
  Nvfp4CudaParams p{};
  p.tensor[0] = ops::nvfp4_cuda_tensor(tensor_of(a.append_ckv, data, scale, 1), ops::nvfp4_factor(a.ckv_scale));
  Nvfp4CudaTensor& rope = p.tensor[1];
  rope.plain = ops::token_rows(a.append_kpe);
  rope.data = ops::token_rows(ops::kv_plane(a.kpe_cache.unsqueeze(2), true));
  rope.heads = 1, rope.dim = static_cast<uint32_t>(a.append_kpe.size(1)), rope.fp8 = 1;
  rope.global = ops::nvfp4_factor(a.kpe_scale);
  p.places = places_of(a, data.pages, data.page_size);
  p.tokens = a.append_ckv.size(0);
  return ops::prepare_nvfp4_cuda<ops::kNvfp4QuantizeCuda>(a.append_ckv.dtype(), p, call.device);
}
/// On a GPU the host cannot look at the indices without waiting for the stream: kernels skip tokens without a page.
template <class B>
void check_tokens(const B& a, int64_t pages, int64_t page_size) {
  op::check_indptr_room("kv_indptr", a.kv_indptr, a.kv_last_page_len.size(0), "kv_last_page_len");
  if (a.kv_indptr.device().type == DeviceType::kCUDA) return;
  const TensorView kv_indptr = ops::check_page_table(a.kv_indices, a.kv_indptr, &a.kv_last_page_len, page_size);
  ops::check_append({a.batch_indices, a.positions, a.kv_indices, kv_indptr}, pages, page_size);
}

void validate_append(const Nvfp4AppendPagedKvCache& a) {
  const Planes p = check_planes(a);
  for (const auto& [scale, who] : {std::pair(a.k_scale, "k_scale"), std::pair(a.v_scale, "v_scale")})
    ops::nvfp4_global(who, scale, kBothScales);
  check_tokens(a, p.data.k.pages, p.data.k.page_size);
}
op::Prepared prepare_append(const Nvfp4AppendPagedKvCache& a) {
  const Planes c = planes_of(a);
  Nvfp4Params p{};
  p.tensor[0] = tensor_of(a.append_key, c.data.k, c.scale.k, a.k_scale);
  p.tensor[1] = tensor_of(a.append_value, c.data.v, c.scale.v, a.v_scale);
  return prepare(
      a.append_key, p,
      ops::append_slots({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, c.data.k.pages, c.data.k.page_size));
}

double scale_of(const op::ScalarOrTensor& s) { return s.tensor() ? ref::load_element(*s.tensor(), 0) : s.number(); }
void validate_slots(const Nvfp4AppendWithSlotMapping& a) {
  check_planes(a);
  for (const auto& [s, who] : {std::pair(&a.k_scale, "k_scale"), std::pair(&a.v_scale, "v_scale")}) {
    if (const TensorView* t = s->tensor())
      FI_CHECK(t->numel() == 1 && t->dtype() == DType::kF32, ValueError, who, " is ", to_string(*t),
               ", but must be a number or one f32");
    if (!s->tensor() || s->tensor()->device() == kCpu) ops::nvfp4_global(who, scale_of(*s), kDecodeScale);
  }
  const int64_t n = a.slot_mapping.size(0), rows = a.append_key.size(0);
  FI_CHECK(rows >= n, ValueError, "append_key.shape[0] is ", rows, ", but slot_mapping has ", n, " tokens");
}
op::Prepared prepare_slots(const Nvfp4AppendWithSlotMapping& a) {
  const Planes c = planes_of(a);
  const int64_t pool = c.data.k.pages * c.data.k.page_size;
  std::vector<int64_t> slots(static_cast<size_t>(a.slot_mapping.size(0)));
  for (size_t t = 0; t < slots.size(); ++t) {
    const int64_t slot = op::index_at(a.slot_mapping, static_cast<int64_t>(t));
    slots[t] = slot < pool ? slot : -1;
  }
  Nvfp4Params p{};
  p.tensor[0] = tensor_of(a.append_key, c.data.k, c.scale.k, scale_of(a.k_scale));
  p.tensor[1] = tensor_of(a.append_value, c.data.v, c.scale.v, scale_of(a.v_scale));
  return prepare(a.append_key, p, std::move(slots));
}

void validate_mla(const Nvfp4AppendPagedMlaKvCache& a) {
  const int64_t pages = a.ckv_cache.size(0), page_size = a.ckv_cache.size(1);
  ops::check_nvfp4_plane("ckv_cache", ops::kv_plane(a.ckv_cache.unsqueeze(2), true), "ckv_sf_cache",
                         ops::kv_plane(a.ckv_sf_cache.unsqueeze(2), true), a.append_ckv.size(1));
  ops::nvfp4_global("ckv_scale", a.ckv_scale);
  ops::nvfp4_global("kpe_scale", a.kpe_scale);
  check_tokens(a, pages, page_size);
}
op::Prepared prepare_mla(const Nvfp4AppendPagedMlaKvCache& a) {
  const ops::KvPlane data = ops::kv_plane(a.ckv_cache.unsqueeze(2), true),
                     scale = ops::kv_plane(a.ckv_sf_cache.unsqueeze(2), true);
  Nvfp4Params p{};
  p.tensor[0] = tensor_of(a.append_ckv, data, scale, a.ckv_scale);
  p.fp8_from = ops::token_rows(a.append_kpe);
  p.fp8_to = ops::token_rows(ops::kv_plane(a.kpe_cache.unsqueeze(2), true));
  p.fp8_dim = a.append_kpe.size(1);
  p.fp8_factor = 1.0f / static_cast<float>(a.kpe_scale);
  return prepare(
      a.append_ckv, p,
      ops::append_slots({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, data.pages, data.page_size));
}

#define FI_PAGE_TABLE(B)                                                                \
  op::in<&B::kv_indices>("kv_indices", "n", op::indices, op::any_layout, op::page_ids), \
      op::in<&B::kv_indptr>("kv_indptr", "r", op::indices, op::any_layout),             \
      op::in<&B::kv_last_page_len>("kv_last_page_len", "b", op::indices, op::any_layout)
#define FI_TOKENS(B)                                                              \
  op::in<&B::batch_indices>("batch_indices", "nnz", op::indices, op::any_layout), \
      op::in<&B::positions>("positions", "nnz", op::indices, op::any_layout)
#define FI_CACHES(B)                                                              \
  op::paged_inout<&B::paged_kv_cache>("paged_kv_cache", nullptr, ops::kFp4Bytes), \
      op::paged_inout<&B::kv_cache_sf>("kv_cache_sf", nullptr, ops::kScaleBytes)

using Paged = Nvfp4AppendPagedKvCache;
constexpr op::Field append_fields[] = {
    op::in<&Paged::append_key>("append_key", "nnz hkv dk", ops::kHalves),
    op::in<&Paged::append_value>("append_value", "nnz hkv dv", op::same_as("append_key")),
    FI_TOKENS(Paged),
    FI_CACHES(Paged),
    FI_PAGE_TABLE(Paged),
    op::attr<&Paged::k_scale>("k_scale", op::required),
    op::attr<&Paged::v_scale>("v_scale", op::required),
    op::attr<&Paged::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError))};
using Slots = Nvfp4AppendWithSlotMapping;
constexpr op::Field slots_fields[] = {
    op::in<&Slots::append_key>("append_key", "rows hkv dk", ops::kHalves),
    op::in<&Slots::append_value>("append_value", "rows hkv dv", op::same_as("append_key")),
    op::in<&Slots::slot_mapping>("slot_mapping", "nnz", op::indices, op::any_layout),
    FI_CACHES(Slots),
    op::in<&Slots::k_scale>("k_scale", nullptr, op::required),
    op::in<&Slots::v_scale>("v_scale", nullptr, op::required),
    op::attr<&Slots::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError))};
using Mla = Nvfp4AppendPagedMlaKvCache;
constexpr op::Field mla_fields[] = {op::in<&Mla::append_ckv>("append_ckv", "nnz dc", ops::kHalves),
                                    op::in<&Mla::append_kpe>("append_kpe", "nnz dr", op::same_as("append_ckv")),
                                    FI_TOKENS(Mla),
                                    op::paged_inout<&Mla::ckv_cache>("ckv_cache", "p ps db", ops::kFp4Bytes),
                                    op::paged_inout<&Mla::ckv_sf_cache>("ckv_sf_cache", "p ps ds", ops::kScaleBytes),
                                    op::paged_inout<&Mla::kpe_cache>("kpe_cache", "p ps dr", DType::kF8E4M3),
                                    FI_PAGE_TABLE(Mla),
                                    op::attr<&Mla::ckv_scale>("ckv_scale", op::required),
                                    op::attr<&Mla::kpe_scale>("kpe_scale", op::required)};
#undef FI_PAGE_TABLE
#undef FI_TOKENS
#undef FI_CACHES

template <class B>
op::Cost cost(const B& a) {
  double n = 0;
  if constexpr (requires { a.append_key; })
    n = static_cast<double>(a.append_key.numel() + a.append_value.numel());
  else
    n = static_cast<double>(a.append_ckv.numel() + a.append_kpe.numel());
  return {.bytes = n * (2 + 0.5 + 1.0 / 16)};
}
constexpr op::Candidate append_candidates[] = {op::cuda<prepare_append_cuda>(), op::cpu<prepare_append>(),
                                               op::reference<ref::nvfp4_append>()};
constexpr op::Candidate slots_candidates[] = {op::cuda<prepare_slots_cuda>(), op::cpu<prepare_slots>(),
                                              op::reference<ref::nvfp4_append_slots>()};
constexpr op::Candidate mla_candidates[] = {op::cuda<prepare_mla_cuda>(), op::cpu<prepare_mla>(),
                                            op::reference<ref::nvfp4_append_mla>()};
constexpr const char* kModule = "flashinfer.page";
}  // namespace

namespace ops::page {
constinit const op::Op nvfp4_append_op = op::define<Paged, validate_append, cost<Paged>>(
    kAppend, kModule, "Quantises new keys and values to NVFP4 and writes them to their slots of a paged cache.",
    append_fields, append_candidates, nvfp4_append_cases);
constinit const op::Op nvfp4_append_slots_op = op::define<Slots, validate_slots, cost<Slots>>(
    kSlots, kModule, "Quantises new keys and values to NVFP4 and writes them to given slots of a paged cache.",
    slots_fields, slots_candidates, nvfp4_append_slots_cases);
constinit const op::Op nvfp4_append_mla_op = op::define<Mla, validate_mla, cost<Mla>>(
    kMla, kModule, "Quantises new latents to NVFP4 and their rope parts to e4m3 and writes them to a paged MLA cache.",
    mla_fields, mla_candidates, nvfp4_append_mla_cases);
}  // namespace ops::page

void nvfp4_quantize_append_paged_kv_cache(const Paged& a) { op::call(ops::page::nvfp4_append_op, a); }
void nvfp4_quantize_append_paged_kv_cache_with_slot_mapping(const Slots& a) {
  op::call(ops::page::nvfp4_append_slots_op, a);
}
void nvfp4_quantize_append_paged_mla_kv_cache(const Mla& a) { op::call(ops::page::nvfp4_append_mla_op, a); }

}  // namespace flashinfer
