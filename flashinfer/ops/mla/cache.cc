// SPDX-License-Identifier: Apache-2.0
// append_paged_mla_kv_cache and concat_mla_k: copies of rows.
#include <algorithm>
#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/strided_copy.h"
#include "flashinfer/ops/mla/cases.h"
#include "flashinfer/ops/mla/plan.h"
#include "flashinfer/ops/mla/ref.h"
#include "flashinfer/ops/page/cuda_launch.h"

namespace flashinfer {
namespace mla {
namespace {

constexpr const char* kAppend = "append_paged_mla_kv_cache";

/// The two caches with what goes there; a cache may be absent.
struct Append {
  const char *name, *from_name;
  const TensorView* from;
  const std::optional<TensorView>* cache;
};
std::array<Append, 2> caches(const AppendPagedMlaKvCache& a) {
  return {{{"ckv_cache", "append_ckv", &a.append_ckv, &a.ckv_cache},
           {"kpe_cache", "append_kpe", &a.append_kpe, &a.kpe_cache}}};
}

void validate_append(const AppendPagedMlaKvCache& a) {
  FI_CHECK(a.ckv_cache || a.kpe_cache, ValueError,
           "ckv_cache is missing, and so is kpe_cache: there is nothing to write");
  if (a.ckv_cache && a.kpe_cache)
    FI_CHECK(a.ckv_cache->size(0) == a.kpe_cache->size(0) && a.ckv_cache->size(1) == a.kpe_cache->size(1), ValueError,
             "kpe_cache has ", a.kpe_cache->size(0), " pages of ", a.kpe_cache->size(1), " tokens, but ckv_cache ",
             a.ckv_cache->size(0), " of ", a.ckv_cache->size(1));
  for (const Append& x : caches(a)) {
    if (!*x.cache) continue;
    const TensorView& cache = **x.cache;
    FI_CHECK(x.from->dtype() == cache.dtype(), ValueError, x.from_name, ".dtype is ", name(x.from->dtype()), ", but ",
             x.name, ".dtype is ", name(cache.dtype()), ": elements are copied as they are, convert (and scale) first");
    FI_CHECK(x.from->size(1) == cache.size(2), ValueError, x.from_name, ".shape[1] is ", x.from->size(1), ", but ",
             x.name, ".shape[2] is ", cache.size(2));
    FI_CHECK(cache.size(1) >= 1, ValueError, x.name, ".shape[1] is 0, but a page holds at least one token");
  }
  const TensorView& any = a.ckv_cache ? *a.ckv_cache : *a.kpe_cache;
  op::check_indptr_room("kv_indptr", a.kv_indptr, a.kv_last_page_len.size(0), "kv_last_page_len");
  if (a.kv_indptr.device().type == DeviceType::kCUDA) return;  // as append_paged_kv_cache
  const TensorView kv_indptr = ops::check_page_table(a.kv_indices, a.kv_indptr, &a.kv_last_page_len, any.size(1));
  ops::check_append({a.batch_indices, a.positions, a.kv_indices, kv_indptr}, any.size(0), any.size(1));
}

void launch_append(const AppendPagedMlaKvCache& a) {
  const int64_t n = a.append_ckv.size(0),
                bytes = (a.append_ckv.size(1) + a.append_kpe.size(1)) * a.append_ckv.item_size();
  const int64_t per_task = ops::rows_per_task(n, 2 * bytes);
  auto append = [&](int64_t t) {
    const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
    if (b < 0) return;
    for (const Append& x : caches(a)) {
      if (!*x.cache) continue;
      const TensorView& cache = **x.cache;
      const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / cache.size(1)),
                    item = cache.item_size();
      std::memcpy(cache.data_as<char>() + (page * cache.stride(0) + position % cache.size(1) * cache.stride(1)) * item,
                  x.from->data_as<char>() + t * x.from->stride(0) * item, static_cast<size_t>(cache.size(2) * item));
    }
  };
  ops::for_rows(n, per_task, append);
}
inline constexpr jit::Kernel kAppendCuda{"flashinfer/ops/page/kernels/cuda/page.cuh", "flashinfer::cu::append_paged",
                                         "flashinfer::AppendParams"};
op::Prepared prepare_append_cuda(const AppendPagedMlaKvCache& a, const op::Call& call) {
  const TensorView& any = a.ckv_cache ? *a.ckv_cache : *a.kpe_cache;
  AppendParams p{.plane = {},
                 .pages = ops::append_pages({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, any.size(0),
                                            any.size(1), a.kv_last_page_len.size(0)),
                 .tokens = a.append_ckv.size(0)};
  const auto both = caches(a);
  for (size_t i = 0; i < 2; ++i) {
    if (!*both[i].cache) continue;
    const TensorView &from = *both[i].from, &to = **both[i].cache;
    p.plane[i] = {from.data(), to.data(), 1, to.size(2), from.stride(0), 0, to.stride(0), to.stride(1), 0};
  }
  if (a.ckv_cache && a.kpe_cache && a.append_ckv.item_size() != a.append_kpe.item_size())
    return op::Unsupported{"the two caches have elements of different sizes"};
  const AppendCudaConfig c = cuda::append_config(static_cast<int>(any.item_size()), p);
  return ops::prepare_cuda<kAppendCuda>(c, p, call.device, cuda::append_launch(c, p, true));
}
op::Cost cost_append(const AppendPagedMlaKvCache& a) {
  return {.bytes = 2.0 * static_cast<double>((a.ckv_cache ? a.append_ckv.nbytes() : 0) +
                                             (a.kpe_cache ? a.append_kpe.nbytes() : 0))};
}

constexpr const char* kConcat = "concat_mla_k";

void validate_concat(const ConcatMlaK& a) {
  for (const auto& [who, t] : {std::pair("k_nope", &a.k_nope), std::pair("k_rope", &a.k_rope)})
    FI_CHECK(t->dtype() == a.k.dtype(), RuntimeError, who, ".dtype is ", name(t->dtype()), ", but k.dtype is ",
             name(a.k.dtype()));  // FlashInfer's type for this mistake
  const int64_t sum = a.k_nope.size(2) + a.k_rope.size(2);
  FI_CHECK(a.k.size(2) == sum, ValueError, "k.shape[2] is ", a.k.size(2), ", but must be ", sum, " (", a.k_nope.size(2),
           " of k_nope and ", a.k_rope.size(2), " of k_rope)");
}
void launch_concat(const ConcatMlaK& a) {
  const int64_t heads = a.k.size(1), item = a.k.item_size(), row = a.k.size(2) * item;
  const auto nope = static_cast<size_t>(a.k_nope.size(2) * item), rope = static_cast<size_t>(a.k_rope.size(2) * item);
  auto token = [&](int64_t t) {
    const char* from = a.k_nope.data_as<char>() + t * a.k_nope.stride(0) * item;
    const char* shared = a.k_rope.data_as<char>() + t * a.k_rope.stride(0) * item;
    char* to = a.k.data_as<char>() + t * a.k.stride(0) * item;
    for (int64_t h = 0; h < heads; ++h) {
      std::memcpy(to + h * a.k.stride(1) * item, from + h * a.k_nope.stride(1) * item, nope);
      std::memcpy(to + h * a.k.stride(1) * item + nope, shared, rope);
    }
  };
  ops::for_rows(a.k.size(0), ops::rows_per_task(a.k.size(0), 2 * heads * row), token);
}
/// Two copies: the part of each head, and the one of all heads.
op::Prepared prepare_concat_cuda(const ConcatMlaK& a, const op::Call& call) {
  const int64_t item = a.k.item_size(), nope = a.k_nope.size(2);
  const auto copy = [&](const TensorView& x, int64_t head_stride, int64_t at) {
    const ops::CopyAxis axes[] = {
        {a.k.size(0), x.stride(0), a.k.stride(0)}, {a.k.size(1), head_stride, a.k.stride(1)}, {x.size(2), 1, 1}};
    char* const to = a.k.data_as<char>() + at * item;
    std::optional<ops::StridedCopy> c =
        ops::strided_copy(axes, item, reinterpret_cast<uintptr_t>(x.data()) | reinterpret_cast<uintptr_t>(to));
    if (c) c->params.from = x.data_as<char>(), c->params.to = to;
    return c;
  };
  const std::optional<ops::StridedCopy> first = copy(a.k_nope, a.k_nope.stride(1), 0), second = copy(a.k_rope, 0, nope);
  if (!first || !second) return op::Unsupported{"k has 2^32 elements or more"};
  const jit::CudaLoaded &one = jit::cuda_kernel<ops::kStridedCopy>(first->config, call.device),
                        &two = jit::cuda_kernel<ops::kStridedCopy>(second->config, call.device);
  for (const jit::CudaLoaded* k : {&one, &two})
    if (!k->why_not.empty()) return op::Unsupported{k->why_not};
  return [&one, &two, first = *first, second = *second] {
    ops::launch_unless_empty(one, first.params, first.launch);
    ops::launch_unless_empty(two, second.params, second.launch);
  };
}
op::Cost cost_concat(const ConcatMlaK& a) {
  return {.bytes = static_cast<double>(a.k.nbytes() + a.k_nope.nbytes() + a.k_rope.nbytes())};
}

constexpr op::Field append_fields[] = {
    op::in<&AppendPagedMlaKvCache::append_ckv>("append_ckv", "nnz dc", op::floats | op::fp8),
    op::in<&AppendPagedMlaKvCache::append_kpe>("append_kpe", "nnz dp", op::floats | op::fp8),
    op::in<&AppendPagedMlaKvCache::batch_indices>("batch_indices", "nnz", op::indices, op::any_layout),
    op::in<&AppendPagedMlaKvCache::positions>("positions", "nnz", op::indices, op::any_layout),
    op::paged_inout<&AppendPagedMlaKvCache::ckv_cache>("ckv_cache", "p ps d", op::floats | op::fp8, op::required),
    op::paged_inout<&AppendPagedMlaKvCache::kpe_cache>("kpe_cache", "p2 ps2 d2", op::floats | op::fp8, op::required),
    op::in<&AppendPagedMlaKvCache::kv_indices>("kv_indices", "n", op::indices, op::any_layout, op::page_ids),
    op::in<&AppendPagedMlaKvCache::kv_indptr>("kv_indptr", "r", op::indices, op::any_layout),
    op::in<&AppendPagedMlaKvCache::kv_last_page_len>("kv_last_page_len", "b", op::indices, op::any_layout),
};
constexpr op::Field concat_fields[] = {
    op::inout<&ConcatMlaK::k>("k", "n h d", op::floats | op::fp8),
    op::in<&ConcatMlaK::k_nope>("k_nope", "n h dn", op::floats | op::fp8),
    op::in<&ConcatMlaK::k_rope>("k_rope", "n 1 dr", op::floats | op::fp8),
    op::attr<&ConcatMlaK::backend>("backend", op::choices("default"), op::keyword_only),
};
constexpr op::Candidate append_candidates[] = {op::cuda<prepare_append_cuda>(), op::cpu<launch_append>(),
                                               op::reference<ref::append_paged_mla_kv_cache>()};
constexpr op::Candidate concat_candidates[] = {op::cuda<prepare_concat_cuda>(), op::cpu<launch_concat>(),
                                               op::reference<ref::concat_mla_k>()};
}  // namespace

constinit const op::Op append_op = op::define<AppendPagedMlaKvCache, validate_append, cost_append>(
    kAppend, "flashinfer.page", "Copies new latent rows to their slots of a paged cache.", append_fields,
    append_candidates, ops::mla::append_cases);
constinit const op::Op concat_op = op::define<ConcatMlaK, validate_concat, cost_concat>(
    kConcat, "flashinfer.concat_ops", "k = (k_nope, k_rope of the token for every head).", concat_fields,
    concat_candidates, ops::mla::concat_cases);

}  // namespace mla

void append_paged_mla_kv_cache(const AppendPagedMlaKvCache& a) { op::call(mla::append_op, a); }
void concat_mla_k(const ConcatMlaK& a) { op::call(mla::concat_op, a); }

}  // namespace flashinfer
