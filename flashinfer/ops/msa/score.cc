// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/msa/cases.h"
#include "flashinfer/ops/msa/cuda.h"
#include "flashinfer/ops/msa/inputs.h"
#include "flashinfer/ops/msa/ops.h"
#include "flashinfer/ops/msa/ref.h"

namespace flashinfer {
namespace {
using namespace msa;
using S = MsaProxyScore;
using F = MsaProxyScoreFp4;
inline constexpr jit::Kernel kScoresCuda{"flashinfer/ops/msa/kernels/cuda/score.cuh", "flashinfer::cu::msa_scores",
                                         "flashinfer::MsaCudaParams"};
inline constexpr jit::Kernel kScores{"flashinfer/ops/msa/kernels/cpu/msa.h", "flashinfer::cpu::msa_scores",
                                     "flashinfer::MsaParams"};

/// The two blocks seen as one.
struct Inputs {
  const TensorView &q, &k;
  std::optional<TensorView> q_scale{}, k_scale{};
  double factor = 1;
  const char *q_name = "q", *k_name = "k";
};
Inputs inputs_of(const S& a) { return {a.q, a.k}; }
Inputs inputs_of(const F& a) {
  return {a.q_fp4, a.k_fp4, a.q_scale, a.k_scale, a.q_global_scale * a.k_global_scale, "q_fp4", "k_fp4"};
}

template <class B>
int64_t tiles_of(const B& a) {
  return a.max_k_tiles.value_or(batch_of(a).most_blocks());
}
template <class B>
op::Shape score_shape(const B& a) {
  const Inputs in = inputs_of(a);
  return {3, {a.reduce_heads ? 1 : in.q.size(1), tiles_of(a), in.q.size(0)}};
}

void check_pages(const Batch& b, const TensorView& k, const char* k_name) {
  if (!b.page_table) return;
  for (int64_t r = 0; r < b.requests(); ++r) {
    const int64_t rows = b.first_row(r + 1) - b.first_row(r);
    const int64_t seen = rows > 0 ? b.visible(r, rows - 1) : 0;
    for (int64_t t = 0; t < ceil_div(seen, kMsaBlock); ++t) check_page(b, r, t, k.size(0), k_name);
  }
}
template <class B>
void validate(const B& a) {
  const Inputs in = inputs_of(a);
  const int64_t width = in.q_scale ? kMsaDim / 2 : kMsaDim;
  FI_CHECK(in.k.size(-1) == width, ValueError, in.k_name, ".shape[-1] is ", in.k.size(-1), ", but must be ", width);
  const Batch batch = batch_of(a);
  check_batch(batch, in.q.size(0), in.k_name, in.k);
  check_heads(in.q.size(1), in.k, in.k_name);
  FI_CHECK(!a.reduce_heads || in.q.size(1) > 0, ValueError, "reduce_heads is True, but q has no heads");
  if (in.q_scale) {
    check_nvfp4("q_fp4", in.q, "q_scale", in.q_scale);
    check_nvfp4("k_fp4", in.k, "k_scale", in.k_scale);
  } else if (in.q.dtype() == DType::kF8E4M3) {
    FI_CHECK(in.k.dtype() == DType::kF8E4M3, ValueError, "q is ", name(in.q.dtype()), ", but k is ", name(in.k.dtype()),
             ": fp8 q requires fp8 k");
  } else {
    FI_CHECK(in.k.dtype() == in.q.dtype() || in.k.dtype() == DType::kF8E4M3, ValueError, "k is ", name(in.k.dtype()),
             ", but must be q's ", name(in.q.dtype()), " or float8_e4m3fn");
  }
  if (!batch.readable()) return;
  const int64_t most = batch.most_blocks();
  FI_CHECK(tiles_of(a) >= most, ValueError, "max_k_tiles is ", tiles_of(a), ", but a request has ", most,
           " blocks of 128 keys");
  for (int64_t b = 0; a.max_seqlen_q && b < batch.requests(); ++b)
    FI_CHECK(batch.first_row(b + 1) - batch.first_row(b) <= *a.max_seqlen_q, ValueError, "max_seqlen_q is ",
             *a.max_seqlen_q, ", but request ", b, " has ", batch.first_row(b + 1) - batch.first_row(b), " rows");
  check_pages(batch, in.k, in.k_name);
}

template <class B>
op::Prepared prepare(const B& a) {
  const Inputs in = inputs_of(a);
  const Batch batch = batch_of(a);
  MsaParams p{};
  p.q = tensor_of(in.q, in.q_scale), p.k = tensor_of(in.k, in.k_scale);
  p.n = in.q.size(0), p.heads = in.q.size(1), p.kv_heads = heads_of(in.k);
  if (batch.page_table)
    p.pages = batch.page_table->template data_as<int32_t>(), p.page_table_stride = batch.page_table->stride(0);
  p.factor = static_cast<float>(in.factor), p.reduce_heads = a.reduce_heads;
  p.score = a.output->template data_as<float>(), p.tiles = a.output->size(1);
  p.score_head = a.output->stride(0), p.score_tile = a.output->stride(1), p.score_row = a.output->stride(2);
  // An item is at least a task's bytes of keys, so that few rows still use all threads.
  const int64_t block_bytes = p.kv_heads * kMsaBlock * in.k.size(-1) * in.k.item_size();
  p.tiles_per_item = std::max<int64_t>(1, ops::kMaxTaskBytes / block_bytes);
  const int64_t items = p.n * ceil_div(p.tiles, p.tiles_per_item);
  p.items_per_task = ops::rows_per_task(items, std::min(p.tiles, p.tiles_per_item) * block_bytes);
  const Tensor rows = rows_of(batch, p.n);
  p.rows = reinterpret_cast<const MsaRow*>(rows.data_as<int64_t>());
  return ops::with_kernel<kScores>(
      MsaConfig{.q = kernel_dtype(in.q), .kv = kernel_dtype(in.k), .out = DType::kF32},
      [p, items, rows](jit::CpuFn kernel) { ops::run_rows(kernel, p, items, p.items_per_task); });
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const Inputs in = inputs_of(a);
  MsaCudaParams p{};
  set_batch(p, batch_of(a), in.k);
  p.q = tensor_of(in.q, in.q_scale), p.k = tensor_of(in.k, in.k_scale);
  p.n = in.q.size(0), p.heads = in.q.size(1), p.kv_heads = heads_of(in.k);
  p.factor = static_cast<float>(in.factor), p.reduce_heads = a.reduce_heads;
  p.score = a.output->template data_as<float>(), p.tiles = a.output->size(1);
  p.score_head = a.output->stride(0), p.score_tile = a.output->stride(1), p.score_row = a.output->stride(2);
  if (p.tiles > 65535) return op::Unsupported{"on a GPU a request has at most 65535 blocks"};
  const bool cores = on_cores(in.q, in.k, call.device);
  const MsaCudaConfig c{.q = kernel_dtype(in.q), .kv = kernel_dtype(in.k), .out = DType::kF32, .cores = cores};
  const MsaShape shape = msa_shape(std::max<int64_t>(p.heads / p.kv_heads, 1), cores, false);
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(ceil_div(p.n, shape.rows)), l.grid[1] = cuda::grid_size(p.tiles);
  l.grid[2] = cuda::grid_size(p.reduce_heads ? 1 : p.kv_heads * shape.head_tiles);
  l.block[0] = kMsaThreads, l.shared_bytes = static_cast<unsigned>(msa_shared(cores)), l.pdl = true;
  return ops::prepare_cuda<kScoresCuda>(c, p, call.device, p.heads ? l : ops::kNoBlocks);
}
template <class B>
void reference(const B& a) {
  const Inputs in = inputs_of(a);
  const auto bytes = [](const std::optional<TensorView>& t) {
    return t ? static_cast<const uint8_t*>(t->data()) : nullptr;
  };
  ref::msa_scores(batch_of(a), {in.q, bytes(in.q_scale)}, {in.k, bytes(in.k_scale)}, in.factor, a.reduce_heads,
                  *a.output);
}
template <class B>
op::Cost cost(const B& a) {
  const Inputs in = inputs_of(a);
  const double keys = static_cast<double>(tiles_of(a) * kMsaBlock) * static_cast<double>(in.q.size(0));
  return {.bytes = keys * static_cast<double>(heads_of(in.k) * in.k.size(-1) * in.k.item_size()),
          .flops = keys * 2 * kMsaDim * static_cast<double>(in.q.size(1))};
}

#define FI_REQUESTS(B)                                                                                      \
  op::in<&B::cu_seqlens_q>("cu_seqlens_q", "b+1", op::indices, op::any_layout),                             \
      op::in<&B::cu_seqlens_k>("cu_seqlens_k", "b+1", op::indices, op::any_layout),                         \
      op::in<&B::page_table>("page_table", "b x", DType::kI32, op::keyword_only),                           \
      op::in<&B::seqused_k>("seqused_k", "b", op::indices, op::any_layout), op::attr<&B::causal>("causal"), \
      op::attr<&B::max_seqlen_q>("max_seqlen_q"), op::attr<&B::max_k_tiles>("max_k_tiles"),                 \
      op::out<&B::output>("output", nullptr, DType::kF32, op::shape<score_shape<B>>),                       \
      op::attr<&B::reduce_heads>("reduce_heads"), op::attr<&B::q_offset>("q_offset")
constexpr op::Field score_fields[] = {
    op::in<&S::q>("q", "n h 128", op::floats | DType::kF8E4M3),
    op::in<&S::k>("k", nullptr, op::floats | DType::kF8E4M3),
    FI_REQUESTS(S),
};
constexpr op::Field score_fp4_fields[] = {
    op::in<&F::q_fp4>("q_fp4", "n h 64", ops::kFp4Bytes),
    op::in<&F::k_fp4>("k_fp4", nullptr, ops::kFp4Bytes),
    op::in<&F::q_scale>("q_scale", nullptr, ops::kScaleBytes, op::contiguous),
    op::in<&F::k_scale>("k_scale", nullptr, ops::kScaleBytes, op::contiguous),
    op::attr<&F::q_global_scale>("q_global_scale", op::required),
    op::attr<&F::k_global_scale>("k_global_scale", op::required),
    FI_REQUESTS(F),
};
#undef FI_REQUESTS
template <class B>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare<B>>(),
                                        op::reference<reference<B>>()};
}  // namespace

namespace ops::msa {
constinit const op::Op score_op = op::define<S, validate<S>, cost<S>>(
    "msa_proxy_score", "flashinfer.msa_ops", "The largest logit q.k of each row, head and block of 128 keys.",
    score_fields, candidates<S>, score_cases);
constinit const op::Op score_fp4_op = op::define<F, validate<F>, cost<F>>(
    "msa_proxy_score_fp4", "flashinfer.msa_ops", "The largest logit of each block, of NVFP4 queries and keys.",
    score_fp4_fields, candidates<F>, score_fp4_cases);
}  // namespace ops::msa

Tensor msa_proxy_score(const S& a) { return op::call(ops::msa::score_op, a); }
Tensor msa_proxy_score_fp4(const F& a) { return op::call(ops::msa::score_fp4_op, a); }

}  // namespace flashinfer
