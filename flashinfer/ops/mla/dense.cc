// SPDX-License-Identifier: Apache-2.0
// Latent attention without plan(): every call makes a plan from its dense page table or its lists of tokens.
#include "flashinfer/ops/mla/dense.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/api/page_tables.h"
#include "flashinfer/ops/common/queries.h"
#include "flashinfer/ops/mla/cases.h"
#include "flashinfer/ops/mla/dense_tables.h"
#include "flashinfer/ops/mla/packed_rows.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer {
namespace mla {
namespace {

using attention::throw_if_given;
constexpr const char* kNeedsGpu = "it belongs to a GPU back end";

DType out_dtype(const T& a) { return a.out ? a.out->dtype() : ops::default_output(a.query.dtype()); }

/// First rows of the requests.
Tensor requests_of(const T& a) {
  if (is_fixed(a)) return equal_rows(a.query.size(0), rows_of_request(a));
  op::check_indptr("cum_seq_lens_q", *a.cum_seq_lens_q);
  return attention::to_int32("cum_seq_lens_q", *a.cum_seq_lens_q, a.cum_seq_lens_q->size(0));
}

/// Rows of 656 bytes (packed_rows.h).
bool is_packed(const T& a) { return a.kv_cache.dtype() == DType::kU8; }

Plan plan_of_block(const T& a) {
  const bool sparse = a.sparse_mla_top_k > 0;
  const Tensor requests = requests_of(a);
  BatchMlaPlan m;
  m.num_heads = a.query.size(-2), m.head_dim_ckv = a.kv_lora_rank, m.head_dim_kpe = a.qk_rope_head_dim;
  m.page_size = sparse ? 1 : pages_of(a).size(1);
  m.causal = !sparse && !a.enable_dcp, m.sm_scale = scale_of("bmm1_scale", a.bmm1_scale).number;
  m.q_data_type = a.query.dtype(), m.kv_data_type = is_packed(a) ? DType::kBF16 : a.kv_cache.dtype();
  m.output_dtype = out_dtype(a);
  m.max_q_len = sparse || a.enable_dcp ? std::nullopt : a.max_q_len;
  Table t;
  if (sparse || a.enable_dcp) {
    t = sparse ? sparse_table(a, requests) : share_table(a, requests);
    m.qo_indptr = t.qo_indptr.view(), m.kv_indptr = t.kv_indptr.view(), m.kv_indices = t.kv_indices.view(),
    m.kv_len_arr = t.kv_len.view();
  } else {
    FI_CHECK(a.seq_lens.has_value(), ValueError, "seq_lens is missing: it has the KV lengths");
    m.cum_seq_lens_q = requests.view(), m.block_tables = table_of(a), m.seq_lens = *a.seq_lens;
  }
  Plan p = plan_of_arguments(m);
  p.use_sinks = a.sinks.has_value();
  return p;
}
/// Pages as they are, or one token each.
TensorView cache_of(const T& a) {
  const TensorView pages = pages_of(a);
  return a.sparse_mla_top_k > 0 ? attention::merged_rows("kv_cache", pages).unsqueeze(1) : pages;
}
Call call_of_block(const T& a, const TensorView& cache, TensorView& lse) {
  const TensorView q = query_rows(a);
  const int64_t ckv = a.kv_lora_rank, width = ckv + a.qk_rope_head_dim;
  Call c;
  c.q_nope = q.slice(2, 0, ckv), c.q_pe = q.slice(2, ckv, width);
  c.packed = cache.dtype() == DType::kU8;
  if (c.packed)
    c.ckv = TensorView(cache.data(), DType::kF8E4M3, cache.shape(), cache.strides(), cache.device());
  else
    c.ckv = cache.slice(2, 0, ckv), c.kpe = cache.slice(2, ckv, width);
  if (a.out) c.out = rows_of(a, "out", *a.out);
  if (a.out && is_fixed(a) && a.out->rank() == 3) c.out = *a.out;
  if (a.lse) lse = a.lse->rank() == 3 ? attention::merged_rows("lse", *a.lse) : *a.lse, c.lse = &lse;
  c.natural_lse = a.return_lse_base == "basee";
  c.set_scales(scale_of("bmm1_scale", a.bmm1_scale), scale_of("bmm2_scale", a.bmm2_scale));
  if (a.sinks) c.sinks = &*a.sinks;
  return c;
}
/// Keys and values are parts of the same rows.
void check_value_pages(const T& a) {
  attention::for_separate_pages(a.block_tables, *a.seq_lens,
                                {.pages = pages_of(a).size(0), .page_size = pages_of(a).size(1)},
                                [](int64_t b, int64_t i, int64_t k, int64_t v) {
                                  FI_CHECK(k == v, ValueError, "block_tables[", b, "][:, ", i, "] is ", k, " and ", v,
                                           ", but keys and values are on the same pages");
                                });
}
void check_shapes(const T& a) {
  const int64_t width = a.kv_lora_rank + a.qk_rope_head_dim;
  FI_CHECK(a.query.rank() == (is_fixed(a) ? 4 : 3), ValueError, "query is ", to_string(a.query), ", but must be ",
           is_fixed(a) ? "[requests, rows, heads, dim]" : "[rows, heads, dim] with cum_seq_lens_q");
  FI_CHECK(a.kv_lora_rank >= 1 && a.qk_rope_head_dim >= 0 && a.query.size(-1) == width, ValueError,
           "query.shape[-1] is ", a.query.size(-1), ", but kv_lora_rank + qk_rope_head_dim is ", a.kv_lora_rank, " + ",
           a.qk_rope_head_dim);
  FI_CHECK(a.kv_cache.rank() == 3 || (a.kv_cache.rank() == 4 && a.kv_cache.size(1) == 1), ValueError, "kv_cache is ",
           to_string(a.kv_cache), ", but must be [pages, page_size, dim] or [pages, 1, page_size, dim]");
  FI_CHECK(is_packed(a) || a.kv_cache.size(-1) == width, ValueError, "kv_cache.shape[-1] is ", a.kv_cache.size(-1),
           ", but kv_lora_rank + qk_rope_head_dim is ", a.kv_lora_rank, " + ", a.qk_rope_head_dim);
  FI_CHECK(!is_packed(a) || (a.kv_cache.size(-1) == kPackedRow && a.kv_lora_rank == kPackedLatent &&
                             a.qk_rope_head_dim == kPackedRope && a.sparse_mla_top_k > 0),
           ValueError, "kv_cache is ", to_string(a.kv_cache), ", but rows of bytes have ", kPackedRow,
           ", for kv_lora_rank 512, qk_rope_head_dim 64 and sparse_mla_top_k, which are ", a.kv_lora_rank, ", ",
           a.qk_rope_head_dim, " and ", a.sparse_mla_top_k);
  FI_CHECK(!a.sinks || (a.sinks->rank() == 1 && a.sinks->size(0) == a.query.size(-2)), ValueError, "sinks is ",
           to_string(*a.sinks), ", but must be [", a.query.size(-2), "] (query heads)");
  FI_CHECK(a.sparse_mla_top_k >= 0, ValueError, "sparse_mla_top_k is ", a.sparse_mla_top_k,
           ", but must be at least 0 (dense)");
  FI_CHECK(a.sparse_mla_top_k == 0 || a.uses_shared_paged_kv_idx, ValueError,
           "uses_shared_paged_kv_idx is False, but block_tables has tokens (sparse_mla_top_k is ", a.sparse_mla_top_k,
           ")");
  FI_CHECK(a.sparse_mla_top_k > 0 || a.block_tables.rank() == 2 + !a.uses_shared_paged_kv_idx, ValueError,
           "block_tables is ", to_string(a.block_tables), ", but must be ",
           a.uses_shared_paged_kv_idx ? "[requests, pages]" : "[requests, 2, pages] (uses_shared_paged_kv_idx=False)");
  if (!a.uses_shared_paged_kv_idx && a.seq_lens) check_value_pages(a);
  FI_CHECK(a.sparse_mla_top_k > 0 || !a.sparse_mla_top_k_lens, ValueError,
           "sparse_mla_top_k_lens belongs to sparse_mla_top_k, which is 0");
}
/// With enable_dcp, and without it.
void check_share(const T& a) {
  if (!a.enable_dcp) {
    const char* need = "DCP arguments require enable_dcp=True; got ";
    FI_CHECK(a.cp_world == 1, ValueError, need, "cp_world=", a.cp_world);
    FI_CHECK(a.cp_rank == 0, ValueError, need, "cp_rank=", a.cp_rank);
    FI_CHECK(!a.causal_seqlens_kv_global, ValueError, need, "causal_seqlens_kv_global");
    return;
  }
  FI_CHECK(a.cp_world >= 1 && a.cp_rank >= 0 && a.cp_rank < a.cp_world, ValueError,
           "cp_rank must satisfy 0 <= cp_rank < cp_world, got cp_rank=", a.cp_rank, ", cp_world=", a.cp_world);
  FI_CHECK(a.return_lse, ValueError,
           "enable_dcp=True requires return_lse=True so that the ranks' results can be merged");
  FI_CHECK(a.causal_seqlens_kv_global.has_value(), ValueError,
           "causal_seqlens_kv_global is required when enable_dcp=True");
  FI_CHECK(a.sparse_mla_top_k == 0, ValueError, "enable_dcp=True is for dense attention, but sparse_mla_top_k is ",
           a.sparse_mla_top_k);
  FI_CHECK(a.seq_lens.has_value(), ValueError, "seq_lens is missing: it has the KV lengths");
}
void validate(const T& given) {
  const OnHost host(given);
  const T& a = host.block;
  attention::check_skip_softmax(a.skip_softmax_threshold_scale_factor);
  throw_if_given("use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  check_share(a);
  check_shapes(a);
  const Plan p = plan_of_block(a);
  FI_CHECK(p.nnz_qo == query_rows(a).size(0), ValueError, "query has ", query_rows(a).size(0),
           " rows, but cum_seq_lens_q ends at ", p.nnz_qo);
  FI_CHECK(p.max_page < cache_of(a).size(0), ValueError, "block_tables has page ", p.max_page, ", but kv_cache has ",
           cache_of(a).size(0), " pages");
  if (a.enable_dcp && a.max_q_len) {
    const Tensor requests = requests_of(a);
    attention::check_max("max_q_len", *a.max_q_len, "query tokens", requests.data_as<int32_t>(), requests.size(0) - 1,
                         true);
  }
  if (a.sparse_mla_top_k == 0)
    attention::check_max("max_seq_len", a.max_seq_len, "tokens in the cache", p.kv_len.data_as<int32_t>(), p.batch_size,
                         false);
}
op::Shape shape_of(const TensorView& t, int rank, int64_t last) {
  op::Shape s{rank, {}};
  for (int i = 0; i < rank - 1; ++i) s.size[i] = t.size(i);
  s.size[rank - 1] = last;
  return s;
}
/// As query; a caller may also pass [B, H, ckv] where requests have one row.
op::Shape out_shape(const T& a) {
  if (a.out && a.out->rank() == 3 && is_fixed(a) && rows_of_request(a) == 1)
    return {3, {a.query.size(0), a.query.size(2), a.kv_lora_rank}};
  return shape_of(a.query, a.query.rank(), a.kv_lora_rank);
}
op::Shape lse_shape(const T& a) {
  if (is_fixed(a) && !(a.lse && a.lse->rank() == 3))
    return {2, {a.query.size(0) * rows_of_request(a), a.query.size(2)}};
  return shape_of(a.query, is_fixed(a) ? 3 : 2, a.query.size(-2));
}
op::Cost cost(const T& a) {
  const Plan p = plan_of_block(OnHost(a).block);
  op::Cost c;
  const double key = static_cast<double>(p.head_dim_ckv + p.head_dim_kpe);
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const double keys = p.kv_len.data_as<int32_t>()[b],
                 rows = p.qo_indptr.data_as<int32_t>()[b + 1] - p.qo_indptr.data_as<int32_t>()[b];
    c.flops += 2.0 * rows * keys * static_cast<double>(p.num_heads) * (key + static_cast<double>(p.head_dim_ckv));
    c.bytes += keys * (is_packed(a) ? kPackedRow : key * static_cast<double>(size_of(p.kv_data_type)));
  }
  c.bytes += static_cast<double>(a.query.nbytes());
  return c;
}

/// The plan of a call, and its cache or the rows of it that the plan needs.
struct Planned {
  explicit Planned(const T& a) : plan(plan_of_block(a)), cache(cache_of(a)) {
    if (!is_packed(a)) return;
    rows.emplace(plan, cache.select(1, 0));
    cache = rows->values();
  }
  Plan plan;
  TensorView cache;
  std::optional<PackedRows> rows;
};
/// prepare() needs a plan that outlives the run.
op::Prepared prepare_block(const T& a) {
  TensorView lse;
  const auto planned = std::make_shared<const Planned>(a);
  const std::shared_ptr<op::Prepared> launch(
      new op::Prepared(prepare(planned->plan, call_of_block(a, planned->cache, lse))));
  if (!launch->supported()) return op::Unsupported{launch->why_not()};
  return [planned, launch] {
    if (planned->rows) planned->rows->unpack();
    launch->run();
  };
}
/// The plan's arrays go to the GPU; those of the call come from there first, if they are there, which waits.
op::Prepared prepare_block_cuda(const T& a) {
  TensorView lse;
  return prepare_cuda(plan_of_block(OnHost(a).block), call_of_block(a, cache_of(a), lse));
}
void reference_block(const T& a) {
  TensorView lse;
  const Planned planned(a);
  if (planned.rows) planned.rows->unpack_reference();
  run_reference(planned.plan, call_of_block(a, planned.cache, lse));
}

// ---- xqa_batch_decode_with_kv_cache_mla: the same call with fewer arguments ----
using X = XqaBatchDecodeMla;
T general(const X& a) {
  T t;
  t.query = a.query, t.kv_cache = a.kv_cache, t.qk_nope_head_dim = a.qk_nope_head_dim;
  t.kv_lora_rank = a.kv_lora_rank, t.qk_rope_head_dim = a.qk_rope_head_dim;
  t.block_tables = a.block_tables, t.seq_lens = a.seq_lens, t.max_seq_len = a.max_seq_len;
  t.out = a.out, t.bmm1_scale = a.bmm1_scale, t.bmm2_scale = a.bmm2_scale;
  return t;
}
void validate(const X& a) {
  throw_if_given("sinks", !a.sinks.is_none(), "trtllm_batch_decode_with_kv_cache_mla takes them");
  FI_CHECK(a.query.rank() == 4 && a.query.size(1) == 1, ValueError, "query is ", to_string(a.query),
           ", but must be [requests, 1, heads, dim]");
  validate(general(a));
}
op::Shape out_shape(const X& a) { return out_shape(general(a)); }
DType out_dtype(const X& a) { return out_dtype(general(a)); }
op::Cost cost(const X& a) { return cost(general(a)); }
op::Prepared prepare_block(const X& a) { return prepare_block(general(a)); }
op::Prepared prepare_block_cuda(const X& a) { return prepare_block_cuda(general(a)); }
void reference_block(const X& a) { reference_block(general(a)); }

template <class Block>
void validate_of(const Block& a) {
  validate(a);
}
template <class Block>
op::Cost cost_of(const Block& a) {
  return cost(a);
}
template <class Block>
op::Prepared prepare_of(const Block& a) {
  return prepare_block(a);
}
template <class Block>
op::Prepared prepare_cuda_of(const Block& a) {
  return prepare_block_cuda(a);
}
template <class Block>
void reference_of(const Block& a) {
  reference_block(a);
}
template <class Block>
op::Shape out_shape_of(const Block& a) {
  return out_shape(a);
}
template <class Block>
DType out_dtype_of(const Block& a) {
  return out_dtype(a);
}
template <class Block>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda_of<Block>>(), op::cpu<prepare_of<Block>>(),
                                        op::reference<reference_of<Block>>()};

constexpr op::Field fields[] = {
    op::in<&T::query>("query", nullptr, ops::kQueryTypes),
    op::paged<&T::kv_cache>("kv_cache", nullptr, op::floats | op::fp8 | DType::kU8),
    op::scratch<&T::workspace_buffer>("workspace_buffer", nullptr),
    op::attr<&T::qk_nope_head_dim>("qk_nope_head_dim", op::required),
    op::attr<&T::kv_lora_rank>("kv_lora_rank", op::required),
    op::attr<&T::qk_rope_head_dim>("qk_rope_head_dim", op::required),
    op::in<&T::block_tables>("block_tables", nullptr, op::indices, op::any_layout),
    op::in<&T::seq_lens>("seq_lens", nullptr, op::indices, op::any_layout, op::required),
    op::attr<&T::max_seq_len>("max_seq_len", op::required),
    op::attr<&T::sparse_mla_top_k>("sparse_mla_top_k"),
    op::out<&T::out>("out", nullptr, op::floats, op::shape<out_shape_of<T>>, op::dtype<out_dtype_of<T>>),
    op::attr<&T::bmm1_scale>("bmm1_scale"),
    op::attr<&T::bmm2_scale>("bmm2_scale"),
    op::in<&T::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
    op::attr<&T::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&T::enable_pdl>("enable_pdl"),
    op::attr<&T::backend>("backend", op::backends("auto|xqa:cuda|cake:cuda|trtllm-gen:cuda|cute-dsl:cuda|sparse:cuda")),
    op::attr<&T::is_var_seq>("is_var_seq"),
    op::attr<&T::uses_shared_paged_kv_idx>("uses_shared_paged_kv_idx"),
    op::out<&T::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>, op::when<&T::return_lse>),
    op::attr<&T::return_lse>("return_lse"),
    op::attr<&T::cute_dsl_impl>("cute_dsl_impl", op::choices("auto|monolithic|modular")),
    op::attr<&T::kv_scale_format>("kv_scale_format", op::choices("auto|pow2_fp32|arbitrary_fp32")),
    op::in<&T::cum_seq_lens_q>("cum_seq_lens_q", "b+1", op::indices, op::any_layout),
    op::attr<&T::max_q_len>("max_q_len"),
    op::scratch<&T::multi_ctas_kv_counter_buffer>("multi_ctas_kv_counter_buffer", nullptr),
    op::in<&T::sparse_mla_top_k_lens>("sparse_mla_top_k_lens", nullptr, op::indices, op::any_layout),
    op::attr<&T::enable_dcp>("enable_dcp"),
    op::attr<&T::cp_world>("cp_world"),
    op::attr<&T::cp_rank>("cp_rank"),
    op::in<&T::causal_seqlens_kv_global>("causal_seqlens_kv_global", nullptr, op::indices, op::any_layout,
                                         op::doc("tokens of each request on all ranks that its last query row sees")),
    op::attr<&T::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&T::return_lse_base>("return_lse_base", op::choices("base2|basee")),
};
constexpr op::Field xqa_fields[] = {
    op::in<&X::query>("query", nullptr, ops::kQueryTypes),
    op::paged<&X::kv_cache>("kv_cache", nullptr, op::floats | op::fp8),
    op::scratch<&X::workspace_buffer>("workspace_buffer", nullptr),
    op::attr<&X::qk_nope_head_dim>("qk_nope_head_dim", op::required),
    op::attr<&X::kv_lora_rank>("kv_lora_rank", op::required),
    op::attr<&X::qk_rope_head_dim>("qk_rope_head_dim", op::required),
    op::in<&X::block_tables>("block_tables", "b x", op::indices, op::any_layout, op::page_ids),
    op::in<&X::seq_lens>("seq_lens", "b", op::indices, op::any_layout),
    op::attr<&X::max_seq_len>("max_seq_len", op::required),
    op::out<&X::out>("out", nullptr, op::floats, op::shape<out_shape_of<X>>, op::dtype<out_dtype_of<X>>),
    op::attr<&X::bmm1_scale>("bmm1_scale"),
    op::attr<&X::bmm2_scale>("bmm2_scale"),
    op::attr<&X::sinks>("sinks"),
    op::attr<&X::enable_pdl>("enable_pdl"),
};
}  // namespace

constinit const op::Op dense_op = op::also_named(
    op::define<T, validate_of<T>, cost_of<T>>(
        "trtllm_batch_decode_with_kv_cache_mla", "flashinfer.mla",
        "Latent attention with a dense page table, or a list of tokens for each query row, and no plan; lse in base 2.",
        fields, candidates<T>, ops::mla::dense_cases),
    "trtllm_prefill_with_kv_cache_mla");
constinit const op::Op xqa_op = op::define<X, validate_of<X>, cost_of<X>>(
    "xqa_batch_decode_with_kv_cache_mla", "flashinfer.mla",
    "Latent attention of one query row a request with a dense page table and no plan.", xqa_fields, candidates<X>,
    ops::mla::xqa_cases);
}  // namespace mla

op::Results trtllm_batch_decode_with_kv_cache_mla(const TrtllmBatchDecodeMla& a) { return op::call(mla::dense_op, a); }
op::Results xqa_batch_decode_with_kv_cache_mla(const XqaBatchDecodeMla& a) { return op::call(mla::xqa_op, a); }

}  // namespace flashinfer
