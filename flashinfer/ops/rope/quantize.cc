// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/rope/quantize.h"

#include <cmath>

#include "flashinfer/kernels/common/token_rows.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/paged_kv.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/rope/cases.h"
#include "flashinfer/ops/rope/kernels/params.h"
#include "flashinfer/ops/rope/kernels/quantize_cuda_params.h"
#include "flashinfer/ops/rope/ops.h"
#include "flashinfer/ops/rope/quantize_ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kQuantize{"flashinfer/ops/rope/kernels/cpu/quantize.h", "flashinfer::cpu::rope_quantize",
                                       "flashinfer::RopeQuantizeParams"};
inline constexpr jit::Kernel kQuantizeCuda{"flashinfer/ops/rope/kernels/cuda/quantize.cuh",
                                           "flashinfer::cu::rope_quantize", "flashinfer::RopeQuantizeCudaParams"};
using Plain = RopeQuantizeFp8;
using Append = RopeQuantizeFp8Append;
constexpr const char* kName = "rope_quantize_fp8";
constexpr const char* kMla = "mla_rope_quantize_fp8";
constexpr const char* kAppend = "rope_quantize_fp8_append_paged_kv_cache";

// ---- outputs ----
DType out_dtype(const Plain& a) {
  if (a.quantize_dtype) return *a.quantize_dtype;
  for (const auto* t : {&a.q_rope_out, &a.k_rope_out, &a.q_nope_out, &a.k_nope_out})
    if (*t) return (*t)->dtype();
  return DType::kF8E4M3;
}
DType out_dtype(const Append& a) { return a.quantize_dtype.value_or(a.paged_kv_cache.first.dtype()); }
/// That of `part`, or of `beside` with rows of width 0.
op::Shape shape_like(const std::optional<TensorView>& part, const TensorView& beside) {
  const TensorView& t = part ? *part : beside;
  op::Shape s{t.rank(), {}};
  for (int i = 0; i < t.rank(); ++i) s.size[i] = t.size(i);
  if (!part && t.rank()) s.size[t.rank() - 1] = 0;
  return s;
}
template <class B>
op::Shape q_rope_shape(const B& a) {
  return shape_like(a.q_rope, a.q_rope);
}
template <class B>
op::Shape q_nope_shape(const B& a) {
  return shape_like(a.q_nope, a.q_rope);
}
op::Shape k_rope_shape(const Plain& a) { return shape_like(a.k_rope, a.k_rope); }
op::Shape k_nope_shape(const Plain& a) { return shape_like(a.k_nope, a.k_rope); }

// ---- checks ----
template <class B>
void check_parts(const B& a) {
  const int64_t n = a.q_rope.size(0), rd = a.cos_sin_cache.size(1);
  FI_CHECK(rd >= 2 && rd % 2 == 0, ValueError, "cos_sin_cache.shape[1] is ", rd, ", but must be even and at least 2");
  FI_CHECK(a.k_rope.rank() == 2 || a.k_rope.rank() == 3, ValueError, "k_rope has rank ", a.k_rope.rank(), " (",
           to_string(a.k_rope), "), but must be [n, rd] (one head for all, MLA) or [n, heads, rd]");
  for (const auto& [t, who] : {std::pair(&a.q_rope, "q_rope"), std::pair(&a.k_rope, "k_rope")})
    FI_CHECK(t->size(-1) == rd, ValueError, who, ".shape[", t->rank() - 1, "] is ", t->size(-1),
             ", but cos_sin_cache has rows of ", rd, ": the rope part is rotated as a whole");
  FI_CHECK(a.k_rope.size(0) == n, ValueError, "k_rope.shape[0] is ", a.k_rope.size(0), ", but n is ", n,
           " (from q_rope.shape[0])");
  if (a.k_nope) {
    FI_CHECK(a.k_nope->rank() == a.k_rope.rank(), ValueError, "k_nope has rank ", a.k_nope->rank(),
             ", but k_rope has rank ", a.k_rope.rank());
    for (int i = 0; i + 1 < a.k_rope.rank(); ++i)
      FI_CHECK(a.k_nope->size(i) == a.k_rope.size(i), ValueError, "k_nope.shape[", i, "] is ", a.k_nope->size(i),
               ", but k_rope.shape[", i, "] is ", a.k_rope.size(i));
  }
  const DType to = out_dtype(a);
  FI_CHECK(op::fp8.has(to), ValueError, "quantize_dtype is ", name(to), ", but must be ", to_string(op::fp8));
  for (const auto& [v, who] :
       {std::pair(a.quant_scale_q, "quant_scale_q"), std::pair(a.quant_scale_kv, "quant_scale_kv")})
    FI_CHECK(std::isfinite(static_cast<float>(v)), ValueError, who, " is ", v, ", but must be a finite f32 number");
}
template <const char* const& kOp>
void validate_plain(const Plain& a) {
  check_parts(a);
  op::check_index_range("pos_ids", a.pos_ids, 0, a.cos_sin_cache.size(0), "rows of cos_sin_cache");
}

/// Where K's rope part, its other part and V go. MLA: (rope, latent, none).
struct CachePlanes {
  ops::KvPlane rope, nope, v;
};
CachePlanes planes_of(const Append& a) {
  const TensorView &first = a.paged_kv_cache.first, &second = a.paged_kv_cache.second;
  if (a.k_rope.rank() == 2)
    return {ops::kv_plane(second.unsqueeze(2), true), ops::kv_plane(first.unsqueeze(2), true), {}};
  CachePlanes p;
  p.rope = p.nope = ops::kv_plane(first, a.kv_layout == "NHD");
  p.nope.data = static_cast<char*>(p.nope.data) + a.k_rope.size(-1);  // a byte an element
  p.v = ops::kv_plane(second, a.kv_layout == "NHD");
  return p;
}
void check_width(const char* who, int64_t has, int64_t wants, const char* why) {
  FI_CHECK(has == wants, ValueError, who, " has rows of ", has, " elements, but must have ", wants, " (", why, ")");
}
void check_cache(const Append& a) {
  const bool mla = a.k_rope.rank() == 2;
  const op::PagedKv& kv = a.paged_kv_cache;
  FI_CHECK(!kv.stacked, ValueError,
           "paged_kv_cache is one tensor, but must be a pair: ", mla ? "(latent, rope)" : "(K, V)");
  for (const auto& [t, i] : {std::pair(&kv.first, 0), std::pair(&kv.second, 1)}) {
    FI_CHECK(t->rank() == (mla ? 3 : 4), ValueError, "paged_kv_cache[", i, "] has rank ", t->rank(), " (",
             to_string(*t), "), but must have ", mla ? 3 : 4, " with k_rope of rank ", a.k_rope.rank());
    FI_CHECK(t->dtype() == out_dtype(a), ValueError, "paged_kv_cache[", i, "].dtype is ", name(t->dtype()),
             ", but quantize_dtype is ", name(out_dtype(a)));
  }
  FI_CHECK(a.v.has_value() != mla, ValueError, kAppend,
           mla ? ": v is given, but an MLA cache (k_rope of rank 2) holds no V"
               : ": v is missing, but the cache holds K and V (k_rope has rank 3)");
  const int64_t dk = a.k_nope ? a.k_nope->size(-1) : 0, rd = a.k_rope.size(-1);
  const CachePlanes p = planes_of(a);
  for (const ops::KvPlane* q : {&p.rope, mla ? &p.nope : &p.v}) {
    FI_CHECK(q->page_size == a.page_size, ValueError, "page_size is ", a.page_size,
             ", but paged_kv_cache has pages of ", q->page_size, " tokens");
    FI_CHECK(q->pages == p.rope.pages, ValueError, "paged_kv_cache has ", kv.first.size(0), " pages in one tensor and ",
             kv.second.size(0), " in the other");
    FI_CHECK(mla || q->heads == a.k_rope.size(1), ValueError, "paged_kv_cache has ", q->heads,
             " heads, but k_rope has ", a.k_rope.size(1));
  }
  check_width("paged_kv_cache[0]", kv.first.size(-1), mla ? dk : rd + dk, mla ? "k_nope" : "k_rope, then k_nope");
  check_width("paged_kv_cache[1]", kv.second.size(-1), mla ? rd : a.v->size(-1), mla ? "k_rope" : "v");
  if (!mla)
    for (int i = 0; i < 2; ++i)
      FI_CHECK(a.v->size(i) == a.k_rope.size(i), ValueError, "v.shape[", i, "] is ", a.v->size(i),
               ", but k_rope.shape[", i, "] is ", a.k_rope.size(i));
}
void validate_append(const Append& a) {
  check_parts(a);
  check_cache(a);
  // On a GPU the host cannot look at the indices without waiting for the stream: tokens without a page are skipped.
  if (a.kv_indptr.device().type == DeviceType::kCUDA) return;
  ops::check_page_table(a.kv_indices, a.kv_indptr, nullptr, a.page_size);
  ops::check_append({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, a.paged_kv_cache.first.size(0),
                    a.page_size);
  for (int64_t t = 0, most = a.cos_sin_cache.size(0); t < a.pos_ids.size(0); ++t) {
    const int64_t id = op::index_at(a.pos_ids, t);
    FI_CHECK(op::index_at(a.batch_indices, t) < 0 || (id >= 0 && id < most), ValueError, "pos_ids[", t, "] is ", id,
             ", but must be in [0, ", most, ") (rows of cos_sin_cache)");
  }
}

// ---- launches ----
TokenRows rows_of(const TensorView& t) {
  return {t.data(), TokenRows::kOnePage, 0, t.stride(0), t.rank() == 3 ? t.stride(1) : 0};
}
TokenRows rows_of(const ops::KvPlane& p) { return {p.data, p.page_size, p.stride_page, p.stride_n, p.stride_h}; }
RopeQuantizePart part_of(const TensorView* from, const TokenRows& to, double scale, bool rotate, bool paged) {
  if (!from || from->size(-1) == 0) return {};
  return {rows_of(*from),
          to,
          from->rank() == 3 ? from->size(1) : 1,
          from->size(-1),
          static_cast<float>(scale),
          static_cast<unsigned char>(rotate),
          static_cast<unsigned char>(paged)};
}
const TensorView* pointer(const std::optional<TensorView>& t) { return t ? &*t : nullptr; }

template <class B>
RopeQuantizeConfig config_of(const B& a) {
  return {a.q_rope.dtype(), out_dtype(a), static_cast<unsigned char>(!a.is_neox)};
}
template <class B>
op::Prepared prepare(const B& a, RopeQuantizeParams p, std::vector<int64_t> slots = {}) {
  p.rope.rotary = a.cos_sin_cache.size(1);
  p.rope.positions = {a.pos_ids.data(), a.pos_ids.dtype() == DType::kI64};
  p.rope.table = a.cos_sin_cache.template data_as<float>();
  p.rope.table_stride = a.cos_sin_cache.stride(0);
  p.tokens = a.q_rope.size(0);
  int64_t elements = 0;
  for (const RopeQuantizePart& r : p.part) elements += r.heads * r.dim;
  p.tokens_per_task = ops::rows_per_task(p.tokens, elements * (a.q_rope.item_size() + 1));
  return ops::with_kernel<kQuantize>(config_of(a), [p, slots = std::move(slots)](jit::CpuFn fn) mutable {
    p.slot = slots.data();
    ops::run_rows(fn, p, p.tokens, p.tokens_per_task);
  });
}
void set_parts(const Plain& a, RopeQuantizePart* part) {
  part[0] = part_of(&a.q_rope, rows_of(*a.q_rope_out), a.quant_scale_q, true, false);
  part[1] = part_of(pointer(a.q_nope), rows_of(*a.q_nope_out), a.quant_scale_q, false, false);
  part[2] = part_of(&a.k_rope, rows_of(*a.k_rope_out), a.quant_scale_kv, true, false);
  part[3] = part_of(pointer(a.k_nope), rows_of(*a.k_nope_out), a.quant_scale_kv, false, false);
}
void set_parts(const Append& a, const CachePlanes& c, RopeQuantizePart* part) {
  part[0] = part_of(&a.q_rope, rows_of(*a.q_rope_out), a.quant_scale_q, true, false);
  part[1] = part_of(pointer(a.q_nope), rows_of(*a.q_nope_out), a.quant_scale_q, false, false);
  part[2] = part_of(&a.k_rope, rows_of(c.rope), a.quant_scale_kv, true, true);
  part[3] = part_of(pointer(a.k_nope), rows_of(c.nope), a.quant_scale_kv, false, true);
  part[4] = part_of(pointer(a.v), rows_of(c.v), a.quant_scale_kv, false, true);
}
op::Prepared prepare_plain(const Plain& a) {
  RopeQuantizeParams p{};
  set_parts(a, p.part);
  return prepare(a, p);
}
op::Prepared prepare_append(const Append& a) {
  const CachePlanes c = planes_of(a);
  std::vector<int64_t> slots =
      ops::append_slots({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, c.rope.pages, a.page_size);
  RopeQuantizeParams p{};
  set_parts(a, c, p.part);
  return prepare(a, p, std::move(slots));
}

// ---- on a GPU ----
/// Every part in whole pieces of 16 bytes whose codes are aligned too; `bits` of all addresses and strides.
bool aligned(const RopeQuantizePart& r, int64_t item, bool interleave) {
  const int64_t n = 16 / item, width = r.rotate && !interleave ? r.dim / 2 : r.dim;
  const uint64_t from = reinterpret_cast<uintptr_t>(r.from.data) |
                        static_cast<uint64_t>((r.from.stride_n | (r.heads > 1 ? r.from.stride_h : 0) | width) * item),
                 to = reinterpret_cast<uintptr_t>(r.to.data) |
                      static_cast<uint64_t>(r.to.stride_n | (r.heads > 1 ? r.to.stride_h : 0) |
                                            (r.paged ? r.to.stride_page : 0) | width);
  return from % 16 == 0 && to % static_cast<uint64_t>(n) == 0;
}
template <class B>
op::Prepared launch_cuda(const B& a, RopeQuantizeCudaParams p, Device device) {
  p.positions = {a.pos_ids.data(), a.pos_ids.dtype() == DType::kI64};
  p.table = a.cos_sin_cache.template data_as<float>();
  p.table_stride = a.cos_sin_cache.stride(0), p.table_rows = a.cos_sin_cache.size(0);
  p.tokens = a.q_rope.size(0);
  const RopeQuantizeConfig c = config_of(a);
  const int64_t half = a.cos_sin_cache.size(1) / 2, pairs = 16 / a.q_rope.item_size() / (c.interleave ? 2 : 1);
  const uint64_t table = reinterpret_cast<uintptr_t>(p.table) | static_cast<uint64_t>((p.table_stride | half) * 4);
  const bool whole = table % 16 == 0 && pairs % 2 == 0 && half % pairs == 0;
  RopeQuantizeCudaConfig config{c.dtype, c.out, c.interleave, whole, 128};
  for (const RopeQuantizePart& r : p.part)
    if (r.dim && !aligned(r, a.q_rope.item_size(), c.interleave != 0)) config.aligned = 0;
  if (p.tokens >= int64_t{1} << 31) return op::Unsupported{"there are 2^31 or more tokens"};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(p.tokens), l.block[0] = static_cast<unsigned>(config.threads);
  l.pdl = a.enable_pdl;
  return ops::prepare_cuda<kQuantizeCuda>(config, p, device, l);
}
op::Prepared prepare_plain_cuda(const Plain& a, const op::Call& call) {
  RopeQuantizeCudaParams p{};
  set_parts(a, p.part);
  return launch_cuda(a, p, call.device);
}
op::Prepared prepare_append_cuda(const Append& a, const op::Call& call) {
  RopeQuantizeCudaParams p{};
  const CachePlanes c = planes_of(a);
  set_parts(a, c, p.part);
  p.paged = 1;
  p.pages = ops::append_pages({a.batch_indices, a.positions, a.kv_indices, a.kv_indptr}, c.rope.pages, a.page_size,
                              a.kv_indptr.size(0) - 1);
  return launch_cuda(a, p, call.device);
}

template <class B>
op::Cost cost(const B& a) {
  double n = static_cast<double>(a.q_rope.numel() + a.k_rope.numel());
  for (const auto* t : {&a.q_nope, &a.k_nope}) n += *t ? static_cast<double>((*t)->numel()) : 0;
  if constexpr (requires { a.v; }) n += a.v ? static_cast<double>(a.v->numel()) : 0;
  return {.bytes = n * static_cast<double>(a.q_rope.item_size() + 1)};
}
// ---- tables ----
#define FI_PARTS(B)                                                                                                  \
  op::in<&B::q_rope>("q_rope", "n hq rd", op::floats), op::in<&B::k_rope>("k_rope", nullptr, op::same_as("q_rope")), \
      op::in<&B::q_nope>("q_nope", "n hq dq", op::same_as("q_rope"), op::required),                                  \
      op::in<&B::k_nope>("k_nope", nullptr, op::same_as("q_rope"), op::required)
#define FI_TABLE(B)                                                      \
  op::in<&B::cos_sin_cache>("cos_sin_cache", "max_pos rd", DType::kF32), \
      op::in<&B::pos_ids>("pos_ids", "n", op::indices)
#define FI_QUANTIZE(B)                                                              \
  op::attr<&B::is_neox>("is_neox"), op::attr<&B::quantize_dtype>("quantize_dtype"), \
      op::attr<&B::quant_scale_q>("quant_scale_q"), op::attr<&B::quant_scale_kv>("quant_scale_kv")
#define FI_OUT(B, member, shape_function)                                                                \
  op::out<&B::member>(#member, nullptr, op::fp8, op::dtype<static_cast<DType (*)(const B&)>(out_dtype)>, \
                      op::shape<shape_function>)
#define FI_PLAIN_FIELDS                                                                                 \
  FI_PARTS(Plain), FI_TABLE(Plain), FI_QUANTIZE(Plain), FI_OUT(Plain, q_rope_out, q_rope_shape<Plain>), \
      FI_OUT(Plain, k_rope_out, k_rope_shape), FI_OUT(Plain, q_nope_out, q_nope_shape<Plain>),          \
      FI_OUT(Plain, k_nope_out, k_nope_shape), op::attr<&Plain::enable_pdl>("enable_pdl")
constexpr op::Field plain_fields[] = {FI_PLAIN_FIELDS,
                                      op::attr<&Plain::backend>("backend", op::backends("cuda:cuda|cutile:cuda"))};
constexpr op::Field mla_fields[] = {FI_PLAIN_FIELDS};
constexpr op::Field append_fields[] = {
    FI_PARTS(Append),
    op::in<&Append::v>("v", "n hk dv", op::same_as("q_rope"), op::required),
    FI_TABLE(Append),
    op::paged_inout<&Append::paged_kv_cache>("paged_kv_cache", nullptr, op::fp8),
    op::in<&Append::kv_indices>("kv_indices", "pages", op::indices, op::any_layout, op::page_ids),
    op::in<&Append::kv_indptr>("kv_indptr", "b+1", op::indices, op::any_layout),
    op::in<&Append::batch_indices>("batch_indices", "n", op::indices, op::any_layout),
    op::in<&Append::positions>("positions", "n", op::indices, op::any_layout),
    FI_QUANTIZE(Append),
    op::attr<&Append::page_size>("page_size"),
    op::attr<&Append::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    FI_OUT(Append, q_rope_out, q_rope_shape<Append>),
    FI_OUT(Append, q_nope_out, q_nope_shape<Append>),
    op::attr<&Append::enable_pdl>("enable_pdl")};

namespace family = ops::rope;
constexpr op::Candidate plain_candidates[] = {op::cuda<prepare_plain_cuda>(), op::cpu<prepare_plain>(),
                                              op::reference<ref::rope_quantize_fp8>()};
constexpr op::Candidate mla_candidates[] = {op::cuda<prepare_plain_cuda>(), op::cpu<prepare_plain>(),
                                            op::reference<ref::rope_quantize_fp8>()};
constexpr op::Candidate append_candidates[] = {op::cuda<prepare_append_cuda>(), op::cpu<prepare_append>(),
                                               op::reference<ref::rope_quantize_fp8_append>()};
constexpr const char* kModule = "flashinfer.rope";
constexpr const char* kDoc =
    "Rotates the rope parts of q and k by a table, multiplies all parts by their scales and casts them to FP8.";

RopeQuantizeFp8Result result_of(const op::Results& r) { return {r[0], r[1], r[2], r[3]}; }
}  // namespace

namespace ops::rope {
constinit const op::Op quantize_op = op::define<Plain, validate_plain<kName>, cost<Plain>>(
    kName, kModule, kDoc, plain_fields, plain_candidates, quantize_cases);
constinit const op::Op mla_quantize_op = op::define<Plain, validate_plain<kMla>, cost<Plain>>(
    kMla, kModule, kDoc, mla_fields, mla_candidates, mla_quantize_cases);
constinit const op::Op quantize_append_op = op::define<Append, validate_append, cost<Append>>(
    kAppend, kModule, "rope_quantize_fp8 with K and V (or MLA's latent and rope part) written to a paged FP8 cache.",
    append_fields, append_candidates, quantize_append_cases);
}  // namespace ops::rope

RopeQuantizeFp8Result rope_quantize_fp8(const Plain& a) { return result_of(op::call(family::quantize_op, a)); }
RopeQuantizeFp8Result mla_rope_quantize_fp8(const Plain& a) { return result_of(op::call(family::mla_quantize_op, a)); }
std::pair<Tensor, Tensor> rope_quantize_fp8_append_paged_kv_cache(const Append& a) {
  return op::call(family::quantize_append_op, a);
}

}  // namespace flashinfer
