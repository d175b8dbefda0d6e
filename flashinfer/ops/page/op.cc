// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/page/op.h"

#include <limits>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/copy.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/paged_kv.h"
#include "flashinfer/ops/page/cases.h"
#include "flashinfer/ops/page/cuda_launch.h"
#include "flashinfer/ops/page/ops.h"
#include "flashinfer/ops/page/ref.h"

namespace flashinfer {
namespace {

constexpr const char* kAppend = "append_paged_kv_cache";
inline constexpr jit::Kernel kAppendCuda{"flashinfer/ops/page/kernels/cuda/page.cuh", "flashinfer::cu::append_paged",
                                         "flashinfer::AppendParams"};

void validate_append(const AppendPagedKvCache& a) {
  const ops::KvPlanes kv = ops::kv_planes(a.paged_kv_cache, a.kv_layout);
  for (const auto& [plane, from, who] :
       {std::tuple(&kv.k, &a.append_key, "append_key"), std::tuple(&kv.v, &a.append_value, "append_value")}) {
    FI_CHECK(from->dtype() == plane->dtype, ValueError, who, ".dtype is ", name(from->dtype()),
             ", but paged_kv_cache.dtype is ", name(plane->dtype),
             ": elements are copied as they are, convert (and scale) first");
    FI_CHECK(from->size(1) == plane->heads, ValueError, who, ".shape[1] is ", from->size(1),
             ", but paged_kv_cache has ", plane->heads, " heads");
    FI_CHECK(from->size(2) == plane->dim, ValueError, who, ".shape[2] is ", from->size(2),
             ", but paged_kv_cache has a head dim of ", plane->dim);
  }
  // On a GPU the host cannot look at them without waiting for the stream: the kernel leaves out tokens whose page is
  // not in the pool.
  op::check_indptr_room("kv_indptr", a.kv_indptr, a.kv_last_page_len.size(0), "kv_last_page_len");
  if (a.kv_indptr.device().type == DeviceType::kCUDA) return;
  const TensorView kv_indptr = ops::check_page_table(a.kv_indices, a.kv_indptr, &a.kv_last_page_len, kv.k.page_size);
  ops::check_append({a.batch_indices, a.positions, a.kv_indices, kv_indptr}, kv.k.pages, kv.k.page_size);
}

/// Copies a token's heads; heads that are neighbours on both sides in one piece.
void copy_heads(const ops::RowCopy& copy, const TensorView& from, int64_t token, const ops::KvPlane& to, int64_t page,
                int64_t entry) {
  const int64_t item = from.item_size(), row = to.dim * item;
  const char* src = from.data_as<char>() + token * from.stride(0) * item;
  char* dst = static_cast<char*>(to.data) + (page * to.stride_page + entry * to.stride_n) * item;
  if (from.stride(1) == to.dim && to.stride_h == to.dim) {
    copy(dst, src, row * to.heads);
    return;
  }
  for (int64_t h = 0; h < to.heads; ++h) copy(dst + h * to.stride_h * item, src + h * from.stride(1) * item, row);
}

void launch_append(const AppendPagedKvCache& a) {
  const ops::KvPlanes kv = ops::kv_planes(a.paged_kv_cache, a.kv_layout);
  const int64_t n = a.append_key.size(0), page_size = kv.k.page_size;
  const ops::RowCopy copy(a.append_key.nbytes() + a.append_value.nbytes());
  auto append = [&](int64_t t) {
    const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
    if (b < 0) return;
    const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / page_size);
    copy_heads(copy, a.append_key, t, kv.k, page, position % page_size);
    copy_heads(copy, a.append_value, t, kv.v, page, position % page_size);
  };
  // One token of a decode step is less than waking a thread costs: tasks of about 32 KB.
  const int64_t bytes = kv.k.heads * (kv.k.dim + kv.v.dim) * a.append_key.item_size();
  const int64_t per_task = std::max<int64_t>(1, 32768 / std::max<int64_t>(bytes, 1)), tasks = ceil_div(n, per_task);
  auto task = [&](int64_t i) {
    for (int64_t t = i * per_task; t < std::min(n, (i + 1) * per_task); ++t) append(t);
    copy.finish();
  };
  if (tasks == 1) return task(0);
  if (tasks > 1) parallel_for(tasks, task);
}

AppendPlane plane_of(const TensorView& from, const ops::KvPlane& to) {
  return {from.data(),    to.data,        to.heads,    to.dim,     from.stride(0),
          from.stride(1), to.stride_page, to.stride_n, to.stride_h};
}
AppendParams append_params(const AppendPagedKvCache& a) {
  const ops::KvPlanes kv = ops::kv_planes(a.paged_kv_cache, a.kv_layout);
  return {{plane_of(a.append_key, kv.k), plane_of(a.append_value, kv.v)},
          ops::append_pages({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, kv.k.pages, kv.k.page_size,
                            a.kv_last_page_len.size(0)),
          a.append_key.size(0)};
}
AppendCudaConfig append_config(const AppendPagedKvCache& a, const AppendParams& p) {
  return cuda::append_config(static_cast<int>(a.append_key.item_size()), p);
}
op::Prepared prepare_append_cuda(const AppendPagedKvCache& a, const op::Call& call) {
  const AppendParams p = append_params(a);
  const AppendCudaConfig c = append_config(a, p);
  return ops::prepare_cuda<kAppendCuda>(c, p, call.device, cuda::append_launch(c, p, true));
}

op::Cost cost_append(const AppendPagedKvCache& a) {
  return {.bytes = 2.0 * static_cast<double>(a.append_key.nbytes() + a.append_value.nbytes())};
}

constexpr const char* kPositions = "get_batch_indices_positions";

void validate_positions(const GetBatchIndicesPositions& a) {
  FI_CHECK(a.append_indptr.size(0) >= 1, ValueError,
           "append_indptr is empty, but must have one entry more than there are requests");
  FI_CHECK(a.seq_lens.size(0) >= a.append_indptr.size(0) - 1, ValueError, "seq_lens.shape[0] is ", a.seq_lens.size(0),
           ", but append_indptr describes ", a.append_indptr.size(0) - 1, " requests");
  if (a.append_indptr.device().type == DeviceType::kCUDA) return;  // as validate_append
  const int64_t total = op::check_indptr("append_indptr", a.append_indptr);
  FI_CHECK(total <= std::numeric_limits<int32_t>::max(), ValueError, "append_indptr[-1] is ", total,
           ", but positions are int32");
  FI_CHECK(a.nnz >= total, ValueError, "nnz is ", a.nnz, ", but append_indptr[-1] is ", total,
           ": there is no room for every new token");
  const int64_t batch = a.append_indptr.size(0) - 1;
  op::check_index_range("seq_lens", a.seq_lens.slice(0, 0, batch), 0, std::numeric_limits<int32_t>::max(),
                        "lengths are int32");
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t appended = op::index_at(a.append_indptr, b + 1) - op::index_at(a.append_indptr, b);
    FI_CHECK(appended <= op::index_at(a.seq_lens, b), ValueError, "seq_lens[", b, "] is ", op::index_at(a.seq_lens, b),
             ", but append_indptr gives request ", b, " ", appended, " new tokens");
  }
}
void launch_positions(const GetBatchIndicesPositions& a) {
  int32_t* request = a.batch_indices->data_as<int32_t>();
  int32_t* position = a.positions->data_as<int32_t>();
  const int64_t rs = a.batch_indices->stride(0), ps = a.positions->stride(0);
  int64_t t = 0;
  for (int64_t b = 0; b + 1 < a.append_indptr.size(0); ++b) {
    const int64_t end = op::index_at(a.append_indptr, b + 1), shift = op::index_at(a.seq_lens, b) - end;
    for (; t < end; ++t) {
      request[t * rs] = static_cast<int32_t>(b);
      position[t * ps] = static_cast<int32_t>(shift + t);
    }
  }
  for (; t < a.nnz; ++t) request[t * rs] = -1, position[t * ps] = 0;
}

inline constexpr jit::Kernel kPositionsCuda{"flashinfer/ops/page/kernels/cuda/page.cuh",
                                            "flashinfer::cu::batch_positions", "flashinfer::PositionsParams"};
inline constexpr jit::Kernel kSeqLensCuda{"flashinfer/ops/page/kernels/cuda/page.cuh", "flashinfer::cu::seq_lens",
                                          "flashinfer::SeqLensParams"};
constexpr IndexCudaConfig kIndexConfig{128};
/// A thread for each of n elements.
template <const jit::Kernel& K, class Params>
op::Prepared prepare_index_cuda(const Params& p, int64_t n, Device device) {
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(kIndexConfig.threads);
  l.grid[0] = cuda::grid_size(ceil_div(n, kIndexConfig.threads));
  l.pdl = true;
  return ops::prepare_cuda<K>(kIndexConfig, p, device, l);
}
op::Prepared prepare_positions_cuda(const GetBatchIndicesPositions& a, const op::Call& call) {
  const PositionsParams p{ops::strided_indices(a.append_indptr),
                          ops::strided_indices(a.seq_lens),
                          a.batch_indices->data_as<int32_t>(),
                          a.positions->data_as<int32_t>(),
                          a.batch_indices->stride(0),
                          a.positions->stride(0),
                          a.nnz,
                          a.append_indptr.size(0) - 1};
  return prepare_index_cuda<kPositionsCuda>(p, a.nnz, call.device);
}

constexpr const char* kSeqLens = "get_seq_lens";

void validate_seq_lens(const GetSeqLens& a) {
  FI_CHECK(a.page_size >= 1, ValueError, "page_size is ", a.page_size, ", but must be at least 1");
  if (a.kv_indptr.device().type == DeviceType::kCUDA) return;
  const int64_t pages = op::check_indptr("kv_indptr", a.kv_indptr);
  FI_CHECK(pages <= std::numeric_limits<int32_t>::max() / a.page_size, ValueError, pages, " pages of ", a.page_size,
           " tokens are more than an int32 length holds");
  op::check_index_range("kv_last_page_len", a.kv_last_page_len, 0, a.page_size + 1, "0..page_size");
}
void launch_seq_lens(const GetSeqLens& a) {
  int32_t* out = a.out->data_as<int32_t>();
  for (int64_t b = 0; b < a.kv_last_page_len.size(0); ++b) {
    const int64_t pages = op::index_at(a.kv_indptr, b + 1) - op::index_at(a.kv_indptr, b);
    out[b * a.out->stride(0)] =
        static_cast<int32_t>(std::max<int64_t>(pages - 1, 0) * a.page_size + op::index_at(a.kv_last_page_len, b));
  }
}

op::Prepared prepare_seq_lens_cuda(const GetSeqLens& a, const op::Call& call) {
  const SeqLensParams p{ops::strided_indices(a.kv_indptr),
                        ops::strided_indices(a.kv_last_page_len),
                        a.out->data_as<int32_t>(),
                        a.out->stride(0),
                        a.page_size,
                        a.kv_last_page_len.size(0)};
  return prepare_index_cuda<kSeqLensCuda>(p, p.batch, call.device);
}

constexpr op::Field append_fields[] = {
    op::in<&AppendPagedKvCache::append_key>("append_key", "nnz hkv dk", op::floats | op::fp8),
    op::in<&AppendPagedKvCache::append_value>("append_value", "nnz hkv dv", op::floats | op::fp8),
    op::in<&AppendPagedKvCache::batch_indices>("batch_indices", "nnz", op::indices, op::any_layout),
    op::in<&AppendPagedKvCache::positions>("positions", "nnz", op::indices, op::any_layout),
    op::paged_inout<&AppendPagedKvCache::paged_kv_cache>("paged_kv_cache", nullptr, op::floats | op::fp8),
    op::in<&AppendPagedKvCache::kv_indices>("kv_indices", "n", op::indices, op::any_layout, op::page_ids),
    op::in<&AppendPagedKvCache::kv_indptr>("kv_indptr", "r", op::indices, op::any_layout),
    op::in<&AppendPagedKvCache::kv_last_page_len>("kv_last_page_len", "b", op::indices, op::any_layout),
    op::attr<&AppendPagedKvCache::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
};
constexpr op::Field positions_fields[] = {
    op::in<&GetBatchIndicesPositions::append_indptr>("append_indptr", "b+1", op::indices, op::any_layout),
    op::in<&GetBatchIndicesPositions::seq_lens>("seq_lens", "s", op::indices, op::any_layout),
    op::attr<&GetBatchIndicesPositions::nnz>("nnz", op::required),
    op::out<&GetBatchIndicesPositions::batch_indices>("batch_indices", "nnz", DType::kI32),
    op::out<&GetBatchIndicesPositions::positions>("positions", "nnz", DType::kI32),
};
constexpr op::Field seq_lens_fields[] = {
    op::in<&GetSeqLens::kv_indptr>("kv_indptr", "b+1", op::indices, op::any_layout),
    op::in<&GetSeqLens::kv_last_page_len>("kv_last_page_len", "b", op::indices, op::any_layout),
    op::attr<&GetSeqLens::page_size>("page_size", op::required),
    op::result<&GetSeqLens::out>("out", "b", DType::kI32),
};

constexpr op::Candidate append_candidates[] = {op::cuda<prepare_append_cuda>(), op::cpu<launch_append>(),
                                               op::reference<ref::append_paged_kv_cache>()};
constexpr op::Candidate positions_candidates[] = {op::cuda<prepare_positions_cuda>(), op::cpu<launch_positions>(),
                                                  op::reference<ref::get_batch_indices_positions>()};
constexpr op::Candidate seq_lens_candidates[] = {op::cuda<prepare_seq_lens_cuda>(), op::cpu<launch_seq_lens>(),
                                                 op::reference<ref::get_seq_lens>()};

constinit const op::Op append_op = op::define<AppendPagedKvCache, validate_append, cost_append>(
    kAppend, "flashinfer.page", "Copies new keys and values to their slots of a paged cache.", append_fields,
    append_candidates, ops::page::append_cases);
constinit const op::Op positions_op = op::define<GetBatchIndicesPositions, validate_positions>(
    kPositions, "flashinfer.page", "Request and position of every appended token; -1 and 0 for padding.",
    positions_fields, positions_candidates, ops::page::batch_indices_cases);
constinit const op::Op seq_lens_op =
    op::define<GetSeqLens, validate_seq_lens>(kSeqLens, "flashinfer.page", "Lengths of requests from their page table.",
                                              seq_lens_fields, seq_lens_candidates, ops::page::seq_lens_cases);

constexpr const op::Op* kOps[] = {&append_op,
                                  &positions_op,
                                  &seq_lens_op,
                                  &ops::page::nvfp4_append_op,
                                  &ops::page::nvfp4_append_slots_op,
                                  &ops::page::nvfp4_append_mla_op,
                                  &ops::page::gather_rows_op,
                                  &ops::page::advance_op};
}  // namespace

void append_paged_kv_cache(const AppendPagedKvCache& a) { op::call(append_op, a); }
std::pair<Tensor, Tensor> get_batch_indices_positions(const GetBatchIndicesPositions& a) {
  return op::call(positions_op, a);
}
Tensor get_seq_lens(const GetSeqLens& a) { return op::call(seq_lens_op, a); }

namespace ops::page {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::page

}  // namespace flashinfer
