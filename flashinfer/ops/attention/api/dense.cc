// SPDX-License-Identifier: Apache-2.0
// The operators without plan(): every call makes a plan whose page table is the caller's.
#include <numbers>

#include "flashinfer/ops/attention/api/context_parallel.h"
#include "flashinfer/ops/attention/api/draft_mask.h"
#include "flashinfer/ops/attention/api/narrow_output.h"
#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/api/page_tables.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr DTypeSet kOutputTypes = op::floats | DType::kF8E4M3;
constexpr const char *kDecode = "trtllm_batch_decode_with_kv_cache", *kContext = "trtllm_batch_context_with_kv_cache";

/// Index arrays of a GPU are read by kernels alone: a plan has the shapes, and their contents are not checked.
bool on_host(const TrtllmBatchDecode& a) { return host_reads(a.block_tables, a.seq_lens, a.cum_seq_lens_q); }
bool on_host(const TrtllmBatchContext& a) { return host_reads(a.block_tables, a.seq_lens, a.cum_seq_lens_q); }
template <class Block>
Planning planning_of(const Block& a) {
  return on_host(a) ? Planning::kArrays : Planning::kShapes;
}

/// `known`: whether the host reads the arrays.
void set_rows_of(Plan& p, const TrtllmBatchDecode& a, bool known) {
  FI_CHECK(a.cum_seq_lens_q.has_value() == a.max_q_len.has_value(), ValueError,
           "cum_seq_lens_q and max_q_len must be given together");
  p.causal = true;
  FI_CHECK(a.cum_seq_lens_q || a.q_len_per_req, ValueError,
           "q_len_per_req is None, so cum_seq_lens_q must say which rows requests have");
  if (!a.cum_seq_lens_q)
    set_equal_rows(p, "q_len_per_req", *a.q_len_per_req);
  else if (known)
    set_rows(p, "cum_seq_lens_q", *a.cum_seq_lens_q);
  else
    set_unknown_rows(p, "cum_seq_lens_q", *a.cum_seq_lens_q, a.query);
  if (a.causal_seqlens_kv_global) {
    const ContextShare share{*a.causal_seqlens_kv_global, a.cp_world, a.cp_rank};
    return known ? set_context_share(p, share) : check_context_share(p, share);
  }
  if (!a.mask) return;
  const int64_t rows = a.cum_seq_lens_q ? *a.max_q_len : *a.q_len_per_req;
  if (!known) return check_draft_mask(p, *a.mask, rows);
  check_max("max_q_len", rows, "query tokens", p.qo_indptr.data_as<int32_t>(), p.batch_size, true);
  check_rows_in_cache(p, rows);
  set_draft_mask(p, *a.mask, rows);
}
void set_rows_of(Plan& p, const TrtllmBatchContext& a, bool known) {
  FI_CHECK(!a.batch_size || *a.batch_size == p.batch_size, ValueError, "batch_size is ", a.batch_size.value_or(0),
           ", but block_tables.shape[0] is ", p.batch_size);
  p.causal = a.causal;
  known ? set_rows(p, "cum_seq_lens_q", a.cum_seq_lens_q)
        : set_unknown_rows(p, "cum_seq_lens_q", a.cum_seq_lens_q, a.query);
}
template <class Block>
DType out_dtype(const Block& a) {
  return a.out ? a.out->dtype() : a.out_dtype.value_or(a.query.dtype());
}
template <class Block>
op::Shape out_shape(const Block& a) {
  const Planes kv = cache_planes(a.kv_cache, a.kv_layout);
  return rows_heads_dim(a.query.size(0), a.query.size(1), kv.v.dim);
}
template <class Block>
op::Shape lse_shape(const Block& a) {
  return rows_heads(a.query.size(0), a.query.size(1));
}

/// Block-sparse attention is a run for each KV head, which has a page table of its own; else one run has all heads.
constexpr int64_t kAllHeads = -1;
template <class Block>
bool is_sparse(const Block& a) {
  if constexpr (requires { a.enable_block_sparse_attention; }) return a.enable_block_sparse_attention;
  return false;
}
template <class Block, class F>
void for_parts(const Block& a, const F& f) {
  if (!is_sparse(a)) return f(kAllHeads);
  for (int64_t h = 0; h < cache_planes(a.kv_cache, a.kv_layout).k.heads; ++h) f(h);
}

template <class Block>
TensorView tables_of(const Block& a, int64_t head) {
  if (head != kAllHeads) return a.block_tables.select(0, head);
  return a.uses_shared_paged_kv_idx ? a.block_tables : k_tables(a.block_tables);
}
template <class Block>
TensorView lengths_of(const Block& a, int64_t head) {
  return head == kAllHeads ? a.seq_lens : a.seq_lens.select(0, head);
}
/// What scores are multiplied by; bmm1_scale_log2 is for exponents of base 2.
template <class Block>
Scale score_scale(const Block& a) {
  if constexpr (requires { a.bmm1_scale_log2; })
    if (a.bmm1_scale_log2) {
      Scale s = scale_of("bmm1_scale_log2", *a.bmm1_scale_log2);
      s.number *= std::numbers::ln2;
      return s;
    }
  return scale_of("bmm1_scale", a.bmm1_scale);
}
template <class Block>
Plan plan_of_part(const Block& a, int64_t head, Planning what) {
  const bool known = what != Planning::kShapes;
  const Planes kv = cache_planes(a.kv_cache, a.kv_layout);
  Plan p;
  p.kv_layout = a.kv_layout;
  p.num_kv_heads = head == kAllHeads ? kv.k.heads : 1;
  p.num_qo_heads = head == kAllHeads ? a.query.size(1) : a.query.size(1) / kv.k.heads;
  p.head_dim_qk = a.query.size(2), p.head_dim_vo = kv.v.dim;
  p.page_size = kv.k.page_size;
  p.q_data_type = a.query.dtype(), p.kv_data_type = kv.k.dtype, p.o_data_type = computed_dtype(out_dtype(a));
  set_options(p, {.window_left = a.window_left,
                  .sm_scale = score_scale(a).number,
                  .logits_soft_cap = {},
                  .rope_scale = {},
                  .rope_theta = {}});
  const std::string table = head == kAllHeads ? "block_tables" : str("block_tables[", head, "]"),
                    lengths = head == kAllHeads ? "seq_lens" : str("seq_lens[", head, "]");
  set_tables(p, tables_of(a, head), lengths_of(a, head), {table.c_str(), lengths.c_str()}, what);
  if (known && !a.uses_shared_paged_kv_idx) p.v_indices = compact_table("block_tables", v_tables(a.block_tables));
  set_rows_of(p, a, known);
  if (what == Planning::kWork) set_work(p);
  return p;
}
/// `sinks`: a place for a view that the call points to.
template <class Block>
Call call_of_part(const Block& a, int64_t head, TensorView& sinks) {
  Call c;
  c.q = a.query, c.kv = cache_planes(a.kv_cache, a.kv_layout);
  c.kv_sf = scale_planes(a.kv_cache_sf, a.kv_layout, c.kv, true);
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  if (a.sinks) sinks = *a.sinks, c.sinks = &sinks;
  const Scale output = scale_of("bmm2_scale", a.bmm2_scale);
  c.v_scale = output.number, c.v_scale_on_device = output.on_device;
  c.scales_on_device[0] = score_scale(a).on_device;
  if (head == kAllHeads) return c;
  const int64_t group = a.query.size(1) / c.kv.k.heads, first = head * group, end = first + group;
  c.q = c.q.slice(1, first, end);
  if (a.out) c.out = c.out.slice(1, first, end);
  if (c.lse) c.lse = c.lse->slice(1, first, end);
  if (c.sinks) sinks = sinks.slice(0, first, end);
  c.kv = planes_of_head(c.kv, head);
  if (c.kv_sf) c.kv_sf = planes_of_head(*c.kv_sf, head);
  return c;
}

template <class Block>
void check_sparse(const Block& a) {
  const char* what = "block-sparse attention (enable_block_sparse_attention=True)";
  FI_CHECK(a.backend != "xqa", ValueError, what, " is only supported by the trtllm-gen back end, but backend is 'xqa'");
  FI_CHECK(a.window_left < 0, ValueError, what, " has no sliding window, but window_left is ", a.window_left);
  FI_CHECK(!a.skip_softmax_threshold_scale_factor, ValueError, what,
           " does not take skip_softmax_threshold_scale_factor");
  FI_CHECK(a.uses_shared_paged_kv_idx, ValueError, what,
           " needs shared paged-KV tables, but uses_shared_paged_kv_idx is False");
  const int64_t heads = cache_planes(a.kv_cache, a.kv_layout).k.heads;
  FI_CHECK(a.block_tables.rank() == 3, ValueError, "block_tables must be 3D, [num_kv_heads, requests, pages], with ",
           what, ", but is ", to_string(a.block_tables));
  FI_CHECK(a.block_tables.size(0) == heads, ValueError, "block_tables.shape[0] is ", a.block_tables.size(0),
           ", but num_kv_heads is ", heads);
  FI_CHECK(a.seq_lens.rank() == 2 && a.seq_lens.size(0) == heads && a.seq_lens.size(1) == a.block_tables.size(1),
           ValueError, "seq_lens is ", to_string(a.seq_lens), ", but ", what, " needs seq_lens of shape [", heads, ", ",
           a.block_tables.size(1), "] (num_kv_heads, requests)");
  FI_CHECK(heads >= 1 && a.query.size(1) % heads == 0, ValueError, "query.shape[1] is ", a.query.size(1),
           ", but must be a multiple of the cache's ", heads, " heads");
}
template <class Block>
void check_tables(const Block& a) {
  if constexpr (requires { a.enable_block_sparse_attention; })
    if (is_sparse(a)) return check_sparse(a);
  if (!a.uses_shared_paged_kv_idx) {
    check_separate_shape(a.block_tables, a.seq_lens);
    if (on_host(a))
      for_separate_pages(a.block_tables, a.seq_lens, cache_planes(a.kv_cache, a.kv_layout).v, [](auto...) {});
    return;
  }
  FI_CHECK(a.block_tables.rank() == 2, ValueError, "block_tables is ", to_string(a.block_tables),
           ", but must be [requests, pages]");
  FI_CHECK(a.seq_lens.rank() == 1, ValueError, "seq_lens is ", to_string(a.seq_lens), ", but must be [requests]");
}
/// What both ops check; `more` sees the plan of each part.
template <class Block, class More>
void check_block(const Block& a, const More& more) {
  throw_if_given("o_sf_scale", a.o_sf_scale.has_value(), "it belongs to an FP4 output");
  throw_if_given("o_sf_vec_size", a.o_sf_vec_size.has_value(), "it belongs to an FP4 output");
  check_tables(a);
  check_skip_softmax(a.skip_softmax_threshold_scale_factor);
  FI_CHECK(!a.out_dtype || kOutputTypes.has(*a.out_dtype), ValueError, "out_dtype is ", name(*a.out_dtype),
           ", but must be ", to_string(kOutputTypes));
  FI_CHECK(kOutputTypes.has(out_dtype(a)), ValueError, "out_dtype is None, which means query's, ",
           name(a.query.dtype()), ", but outputs are ", to_string(kOutputTypes), ": say which");
  FI_CHECK(!a.out_dtype || !a.out || *a.out_dtype == a.out->dtype(), ValueError, "out.dtype is ", name(a.out->dtype()),
           ", but out_dtype is ", name(*a.out_dtype));
  FI_CHECK(!a.sinks || (a.sinks->rank() == 1 && a.sinks->size(0) == a.query.size(1)), ValueError, "sinks is ",
           to_string(*a.sinks), ", but must be [", a.query.size(1), "] (num_qo_heads)");
  for_parts(a, [&](int64_t head) {
    const Plan p = plan_of_part(a, head, planning_of(a));
    TensorView sinks;
    const Call c = call_of_part(a, head, sinks);
    check_run(p, c.q, c.kv, "kv_cache (K)", "kv_cache (V)");
    FI_CHECK(p.max_page < c.kv.k.pages, ValueError, "block_tables has page ", p.max_page, ", but kv_cache has ",
             c.kv.k.pages, " pages");
    more(p);
  });
}
/// Arguments that choose among kernels of FlashInfer, and do not change the result.
void check_kernel_options(const TrtllmBatchDecode& a) {
  if (const op::Value& mode = a.bf16q_fp8kv_transform_mode; !mode.is_none()) {
    const auto* text = std::get_if<std::string>(&mode);
    FI_CHECK(text && (*text == "k_only" || *text == "separate_kv"), ValueError, "bf16q_fp8kv_transform_mode is ",
             op::python_repr(mode), ", but must be one of 'k_only' or 'separate_kv'");
    FI_CHECK(a.backend == "auto" || a.backend == "trtllm-gen", ValueError,
             "bf16q_fp8kv_transform_mode is only supported by backend='trtllm-gen', but backend is ",
             op::python_repr(a.backend));
  }
  throw_if_given("request_order_plan", !a.request_order_plan.is_none(), kNeedsGpu);
  if (a.request_order.is_none()) return;
  FI_CHECK(a.backend == "cake", ValueError, "request_order requires the explicit backend='cake', but backend is ",
           op::python_repr(a.backend));
  FI_CHECK(!a.causal_seqlens_kv_global, ValueError, "request_order is not supported beside causal_seqlens_kv_global");
  const TensorView* order = a.request_order.tensor();
  FI_CHECK(order && order->dtype() == DType::kI32 && order->rank() == 1 && order->size(0) == a.seq_lens.numel(),
           ValueError, "request_order is ", order ? to_string(*order) : op::python_repr(a.request_order),
           ", but must be int32 [", a.seq_lens.numel(), "] (requests)");
}
void validate_decode(const TrtllmBatchDecode& a) {
  check_output_scale(a.o_scale, out_dtype(a));
  FI_CHECK(a.causal_seqlens_kv_global || (a.cp_world == 1 && a.cp_rank == 0), ValueError,
           "cp_world and cp_rank require causal_seqlens_kv_global, which is None");
  for (const auto& [name, given] : {std::pair("mask", a.mask.has_value()), std::pair("window_left", a.window_left >= 0),
                                    std::pair("enable_block_sparse_attention", a.enable_block_sparse_attention)})
    FI_CHECK(!a.causal_seqlens_kv_global || !given, ValueError, name,
             " was given beside causal_seqlens_kv_global, which says what rows see");
  check_kernel_options(a);
  check_block(a, [&](const Plan& p) {
    check_max("max_seq_len", a.max_seq_len, "tokens in the cache", p.kv_len.data_as<int32_t>(), p.batch_size, false);
    if (a.max_q_len)
      check_max("max_q_len", *a.max_q_len, "query tokens", p.qo_indptr.data_as<int32_t>(), p.batch_size, true);
  });
}
void validate_context(const TrtllmBatchContext& a) {
  throw_if_given("use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  throw_if_given("uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  check_block(a, [&](const Plan& p) {
    check_max("max_kv_len", a.max_kv_len, "tokens in the cache", p.kv_len.data_as<int32_t>(), p.batch_size, false);
    check_max("max_q_len", a.max_q_len, "query tokens", p.qo_indptr.data_as<int32_t>(), p.batch_size, true);
    FI_CHECK(!a.cum_seq_lens_kv || a.cum_seq_lens_kv->numel() > p.batch_size, ValueError, "cum_seq_lens_kv is ",
             to_string(*a.cum_seq_lens_kv), ", but there are ", p.batch_size, " requests");
  });
}
template <class Block>
op::Cost cost(const Block& given) {
  HostCopies copies;
  Block a = given;
  copies.read(a.block_tables), copies.read(a.seq_lens), copies.read(a.cum_seq_lens_q);
  if constexpr (requires { a.mask; }) copies.read(a.mask), copies.read(a.causal_seqlens_kv_global);
  op::Cost all;
  for_parts(a, [&](int64_t head) {
    TensorView sinks;
    const op::Cost one = cost_of(plan_of_part(a, head, Planning::kArrays), call_of_part(a, head, sinks).q);
    all.flops += one.flops, all.bytes += one.bytes;
  });
  return all;
}
/// What a kernel plans from.
template <class Block>
CallTables device_tables(const Block& a, int64_t head) {
  CallTables t{.pages = tables_of(a, head), .lengths = lengths_of(a, head)};
  if (!a.uses_shared_paged_kv_idx) t.v_pages = v_tables(a.block_tables);
  if constexpr (requires { a.max_seq_len; }) {
    t.keys = a.max_seq_len, t.rows = a.cum_seq_lens_q ? *a.max_q_len : *a.q_len_per_req;
    t.first_rows = a.cum_seq_lens_q, t.before = a.causal_seqlens_kv_global;
    t.world = a.cp_world, t.rank = a.cp_rank;
    if (a.mask) t.words = draft_words(*a.mask, t.rows);
  } else {
    t.keys = a.max_kv_len, t.rows = a.max_q_len, t.first_rows = a.cum_seq_lens_q;
  }
  return t;
}
template <class Block>
struct Parts {
  static op::Prepared cuda(const Block& a) {
    Launches launches;
    for_parts(a, [&](int64_t head) {
      TensorView sinks;
      launches.add([&] {
        Plan p = plan_of_part(a, head, Planning::kShapes);
        p.o_data_type = out_dtype(a);  // e4m3 is rounded by the kernel
        return prepare_tables_cuda(owned(std::move(p)), call_of_part(a, head, sinks), device_tables(a, head));
      });
    });
    return std::move(launches).prepared();
  }
  static op::Prepared cpu(const Block& a) {
    if (!is_sparse(a)) {
      TensorView sinks;
      return prepare_cpu(owned(plan_of_part(a, kAllHeads, Planning::kWork)), call_of_part(a, kAllHeads, sinks));
    }
    Launches launches;
    for_parts(a, [&](int64_t head) {
      TensorView sinks;
      launches.add(
          [&] { return prepare_cpu(owned(plan_of_part(a, head, Planning::kWork)), call_of_part(a, head, sinks)); });
    });
    return std::move(launches).prepared();
  }
  static void reference(const Block& a) {
    for_parts(a, [&](int64_t head) {
      TensorView sinks;
      run_reference(plan_of_part(a, head, Planning::kArrays), call_of_part(a, head, sinks));
    });
  }
};

using D = TrtllmBatchDecode;
constexpr op::Field decode_fields[] = {
    op::in<&D::query>("query", "n h d", ops::kQueryTypes),
    op::paged<&D::kv_cache>("kv_cache", nullptr, kCacheTypes),
    op::scratch<&D::workspace_buffer>("workspace_buffer", nullptr),
    op::in<&D::block_tables>("block_tables", nullptr, op::indices, op::any_layout, op::page_ids),
    op::in<&D::seq_lens>("seq_lens", nullptr, op::indices | DType::kU32, op::any_layout),
    op::attr<&D::max_seq_len>("max_seq_len", op::required),
    op::attr<&D::bmm1_scale>("bmm1_scale"),
    op::attr<&D::bmm2_scale>("bmm2_scale"),
    op::attr<&D::window_left>("window_left"),
    op::out<&D::out>("out", nullptr, kOutputTypes, op::shape<out_shape<D>>, op::dtype<out_dtype<D>>),
    op::attr<&D::out_dtype>("out_dtype"),
    op::attr<&D::o_sf_scale>("o_sf_scale"),
    op::attr<&D::o_sf_vec_size>("o_sf_vec_size"),
    op::in<&D::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
    op::attr<&D::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&D::enable_pdl>("enable_pdl"),
    op::attr<&D::backend>("backend", op::backends("auto|xqa:cuda|trtllm-gen:cuda|cake:cuda")),
    op::attr<&D::q_len_per_req>("q_len_per_req"),
    op::attr<&D::o_scale>("o_scale"),
    op::in<&D::mask>("mask", nullptr, kMaskWords, op::doc("bits: which rows of its request a row sees")),
    op::attr<&D::max_q_len>("max_q_len"),
    op::in<&D::cum_seq_lens_q>("cum_seq_lens_q", "b+1", op::indices, op::any_layout),
    op::attr<&D::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::paged<&D::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&D::uses_shared_paged_kv_idx>("uses_shared_paged_kv_idx"),
    op::out<&D::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<D>>, op::when<&D::return_lse>),
    op::attr<&D::return_lse>("return_lse"),
    op::in<&D::bmm1_scale_log2>("bmm1_scale_log2", "1", DType::kF32),
    op::scratch<&D::multi_ctas_kv_counter_buffer>("multi_ctas_kv_counter_buffer", nullptr),
    op::attr<&D::enable_block_sparse_attention>("enable_block_sparse_attention"),
    op::attr<&D::cp_world>("cp_world"),
    op::attr<&D::cp_rank>("cp_rank"),
    op::in<&D::causal_seqlens_kv_global>("causal_seqlens_kv_global", nullptr, op::indices, op::any_layout),
    op::attr<&D::bf16q_fp8kv_transform_mode>("bf16q_fp8kv_transform_mode"),
    op::attr<&D::request_order>("request_order"),
    op::attr<&D::request_order_plan>("request_order_plan"),
};
using P = TrtllmBatchContext;
constexpr op::Field context_fields[] = {
    op::in<&P::query>("query", "n h d", ops::kQueryTypes),
    op::paged<&P::kv_cache>("kv_cache", nullptr, kCacheTypes),
    op::scratch<&P::workspace_buffer>("workspace_buffer", nullptr),
    op::in<&P::block_tables>("block_tables", nullptr, op::indices, op::any_layout, op::page_ids),
    op::in<&P::seq_lens>("seq_lens", nullptr, op::indices | DType::kU32, op::any_layout),
    op::attr<&P::max_q_len>("max_q_len", op::required),
    op::attr<&P::max_kv_len>("max_kv_len", op::required),
    op::attr<&P::bmm1_scale>("bmm1_scale", op::required),
    op::attr<&P::bmm2_scale>("bmm2_scale", op::required),
    op::attr<&P::batch_size>("batch_size", op::required),
    op::in<&P::cum_seq_lens_q>("cum_seq_lens_q", "b+1", op::indices, op::any_layout),
    op::in<&P::cum_seq_lens_kv>("cum_seq_lens_kv", nullptr, op::indices, op::any_layout, op::required),
    op::attr<&P::window_left>("window_left"),
    op::out<&P::out>("out", nullptr, kOutputTypes, op::shape<out_shape<P>>, op::dtype<out_dtype<P>>),
    op::attr<&P::out_dtype>("out_dtype"),
    op::attr<&P::o_sf_scale>("o_sf_scale"),
    op::attr<&P::o_sf_vec_size>("o_sf_vec_size"),
    op::attr<&P::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&P::enable_pdl>("enable_pdl"),
    op::in<&P::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
    op::paged<&P::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&P::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::attr<&P::uses_shared_paged_kv_idx>("uses_shared_paged_kv_idx"),
    op::attr<&P::causal>("causal"),
    op::out<&P::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<P>>, op::when<&P::return_lse>),
    op::attr<&P::return_lse>("return_lse"),
    op::scratch<&P::multi_ctas_kv_counter_buffer>("multi_ctas_kv_counter_buffer", nullptr),
    op::attr<&P::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&P::uses_spcompress>("uses_spcompress"),
    op::attr<&P::backend>("backend", op::backends("auto|trtllm-gen:cuda")),
};
template <class Block>
constexpr auto& candidates = NarrowOutput<Block, Parts<Block>, &Block::out>::candidates;
}  // namespace

constinit const op::Op dense_decode_op = op::define<D, validate_decode, cost<D>>(
    kDecode, "flashinfer.decode", "Batch decode with a dense page table and no plan; lse in base 2.", decode_fields,
    candidates<D>, ops::attention::dense_decode_cases);
constinit const op::Op dense_context_op = op::define<P, validate_context, cost<P>>(
    kContext, "flashinfer.prefill", "Batch prefill with a dense page table and no plan; lse in base 2.", context_fields,
    candidates<P>, ops::attention::dense_context_cases);
}  // namespace attention

AttentionResult trtllm_batch_decode_with_kv_cache(const TrtllmBatchDecode& a) {
  return op::call(attention::dense_decode_op, a);
}
AttentionResult trtllm_batch_context_with_kv_cache(const TrtllmBatchContext& a) {
  return op::call(attention::dense_context_op, a);
}

}  // namespace flashinfer
