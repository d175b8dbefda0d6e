// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/dense/batched.h"

#include <cstring>

#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/gemm/grouped/work.h"
#include "flashinfer/ops/gemm/ops.h"

namespace flashinfer {
namespace {
using Masked = MaskedBmm;
using Ragged = RaggedBmm;
using Added = GemmAlphaBeta;
namespace family = ops::gemm;

/// out[m, n] = a[m, k] . b[n, k] * scale, any strides of a and b.
struct Part {
  TensorView a, b, out;
};
gemm::Product product_of(const Part& x, double scale) {
  gemm::Product p{.k = x.a.size(1), .a = gemm::rows_of(x.a), .b = gemm::rows_of(x.b)};
  p.set_out(x.out);
  p.scale_a = static_cast<float>(scale);
  if (x.a.dtype() == DType::kF16) p.split_k = p.k, p.k = split_depth(p.k);
  return p;
}
TensorView turned(const TensorView& t, bool yes) { return yes ? t.transpose(t.rank() - 2, t.rank() - 1) : t; }
void clear(const TensorView& rows) {
  for (int64_t r = 0; r < rows.size(0); ++r)
    std::memset(static_cast<char*>(rows.data()) + r * rows.stride(0) * rows.item_size(), 0,
                static_cast<size_t>(rows.size(1) * rows.item_size()));
}

// ---- the parts of each op ----
/// f(part) for the valid rows; the others are cleared.
template <class F>
void each_part(const Masked& a, F f) {
  const TensorView x = turned(a.a, a.transpose_a), w = turned(a.b, !a.transpose_b);
  for (int64_t q = 0; q < x.size(0); ++q) {
    const int64_t rows = gemm::index_at(a.masked_m, q);
    const TensorView out = a.out->select(0, q);
    clear(out.slice(0, rows, out.size(0)));
    f(Part{x.select(0, q).slice(0, 0, rows), w.select(0, q), out.slice(0, 0, rows)});
  }
}
template <class F>
void each_part(const Ragged& a, F f) {
  const TensorView x = turned(a.a, a.transpose_a), w = turned(a.b, !a.transpose_b);
  int64_t row = 0;
  for (const gemm::Group& g : gemm::groups_of("m_indptr", a.m_indptr, x.size(0))) {
    clear(a.out->slice(0, row, g.row));
    row = g.row + g.rows;
    f(Part{x.slice(0, g.row, row), w.select(0, g.weight), a.out->slice(0, g.row, row)});
  }
  clear(a.out->slice(0, row, x.size(0)));
}
/// Numbers of rows that are read by each_part.
void check_rows(const Masked& a) {
  const int64_t m = a.a.size(a.transpose_a ? 2 : 1);
  for (int64_t q = 0; q < a.masked_m.size(0); ++q) {
    const int64_t rows = gemm::index_at(a.masked_m, q);
    FI_CHECK(rows >= 0 && rows <= m, ValueError, "masked_m[", q, "] is ", rows, ", but must be in [0, ", m,
             "] (rows of a matrix of a)");
  }
}
void check_rows(const Ragged& a) {
  for (const gemm::Group& g : gemm::groups_of("m_indptr", a.m_indptr, a.a.size(a.transpose_a ? 1 : 0)))
    FI_CHECK(g.rows <= a.max_m, ValueError, "m_indptr makes segment ", g.weight, " ", g.rows,
             " rows long, but max_m is ", a.max_m);
}
/// For all products of operands of this type: strided rows are packed whatever their number.
template <class B>
gemm::Kernels find_kernels(const B& a, ops::Lookup& lookup) {
  const gemm::Operand rows{.format = gemm::format_of(a.a.dtype())};
  return gemm::find_kernels({.m = 9, .n = 16, .k = 32, .a = rows, .b = rows}, lookup);
}
template <class B>
op::Prepared prepare(const B& a) {
  check_rows(a);
  ops::Lookup lookup;
  const gemm::Kernels kernels = find_kernels(a, lookup);
  return lookup.prepared([&a, kernels] { each_part(a, [&](const Part& x) { gemm::run(product_of(x, 1), kernels); }); });
}
/// All matrices together, as the kernel of a GPU takes them.
gemm::Product product_on_gpu(const TensorView& a, const TensorView& b, const TensorView& out) {
  gemm::Product p{.k = a.size(-1), .a = gemm::rows_of(a), .b = gemm::rows_of(b)};
  p.set_out(out);
  return p;
}
/// FLASHINFER_CUDA_CHECK_INDICES.
template <class B>
void check_readable_rows(const B& a, TensorView B::* index) {
  const op::HostIndices host(a.*index);
  if (!host) return;
  B readable = a;
  readable.*index = *host;
  check_rows(readable);
}
op::Prepared prepare_masked_cuda(const Masked& a, const op::Call& call) {
  check_readable_rows(a, &Masked::masked_m);
  const gemm::Product p = product_on_gpu(turned(a.a, a.transpose_a), turned(a.b, !a.transpose_b), *a.out);
  return gemm::prepare_cuda(p, {.index = a.masked_m, .matrices = p.batch}, call.device);
}
op::Prepared prepare_ragged_cuda(const Ragged& a, const op::Call& call) {
  check_readable_rows(a, &Ragged::m_indptr);
  const gemm::Product p = product_on_gpu(turned(a.a, a.transpose_a), turned(a.b, !a.transpose_b), *a.out);
  return gemm::prepare_cuda(
      p, {.kind = GemmGroups::kOffsets, .index = a.m_indptr, .groups = a.m_indptr.size(0) - 1, .matrices = a.b.size(0)},
      call.device);
}
void reference(const Masked& a) {
  check_rows(a);
  const int64_t m = a.out->size(1);
  ref::batched_product(
      {.rows = a.a.size(0) * m,
       .n = a.out->size(2),
       .depth = a.a.size(a.transpose_a ? 1 : 2),
       .matrix_of = ref::by_counts(a.masked_m, m),
       .a =
           [&](int64_t r, int64_t k) {
             return a.transpose_a ? ref::at(a.a, {r / m, k, r % m}) : ref::at(a.a, {r / m, r % m, k});
           },
       .b = [&](int64_t e, int64_t j,
                int64_t k) { return a.transpose_b ? ref::at(a.b, {e, j, k}) : ref::at(a.b, {e, k, j}); }},
      *a.out);
}
void reference(const Ragged& a) {
  check_rows(a);
  ref::grouped_product(
      {.rows = a.out->size(0),
       .n = a.out->size(1),
       .depth = a.a.size(a.transpose_a ? 0 : 1),
       .matrix_of = ref::by_offsets(a.m_indptr),
       .a = [&](int64_t r, int64_t k) { return a.transpose_a ? ref::at(a.a, {k, r}) : ref::at(a.a, {r, k}); },
       .b = [&](int64_t e, int64_t j,
                int64_t k) { return a.transpose_b ? ref::at(a.b, {e, j, k}) : ref::at(a.b, {e, k, j}); }},
      *a.out);
}
Part part_of(const Added& a, const TensorView& out) { return {turned(a.a, a.trans_a), turned(a.b, !a.trans_b), out}; }
template <class T>
void add_rows(const Added& a, const Tensor& product) {
  const int64_t n = a.c.size(1);
  const auto beta = static_cast<float>(a.beta);
  ops::for_rows(a.c.size(0), ops::rows_per_task(a.c.size(0), n * 8), [&](int64_t r) {
    T* c = a.c.data_as<T>() + r * a.c.stride(0);
    const float* p = product.data_as<float>() + r * n;
    for (int64_t i = 0; i < n; ++i) c[i] = T(p[i] + beta * static_cast<float>(c[i]));
  });
}
void run_added(const Added& a, const gemm::Kernels& kernels) {
  if (a.beta == 0) return gemm::run(product_of(part_of(a, a.c), a.alpha), kernels);
  const Tensor product = Tensor::empty(a.c.shape(), DType::kF32);
  gemm::run(product_of(part_of(a, product.view()), a.alpha), kernels);
  if (a.c.dtype() == DType::kBF16)
    add_rows<bf16_t>(a, product);
  else if (a.c.dtype() == DType::kF16)
    add_rows<f16_t>(a, product);
  else
    add_rows<float>(a, product);
}
op::Prepared prepare_added(const Added& a) {
  ops::Lookup lookup;
  const gemm::Kernels kernels = find_kernels(a, lookup);
  return lookup.prepared([&a, kernels] { run_added(a, kernels); });
}
op::Prepared prepare_added_cuda(const Added& a, const op::Call& call) {
  const Part x = part_of(a, a.c);
  gemm::Product p = product_on_gpu(x.a, x.b, x.out);
  p.scale_a = static_cast<float>(a.alpha);
  return gemm::prepare_cuda(p, {.beta = static_cast<float>(a.beta)}, call.device);
}
void reference_added(const Added& a) {
  for (int64_t r = 0; r < a.c.size(0); ++r)
    for (int64_t i = 0; i < a.c.size(1); ++i) {
      double sum = 0;
      for (int64_t k = 0; k < a.a.size(a.trans_a ? 0 : 1); ++k)
        sum += (a.trans_a ? ref::at(a.a, {k, r}) : ref::at(a.a, {r, k})) *
               (a.trans_b ? ref::at(a.b, {i, k}) : ref::at(a.b, {k, i}));
      ref::put(a.c, {r, i}, a.alpha * sum + (a.beta == 0 ? 0.0 : a.beta * ref::at(a.c, {r, i})));
    }
}

// ---- outputs, checks ----
op::Shape masked_shape(const Masked& a) {
  return {3, {a.a.size(0), a.a.size(a.transpose_a ? 2 : 1), a.b.size(a.transpose_b ? 1 : 2)}};
}
op::Shape ragged_shape(const Ragged& a) {
  return {2, {a.a.size(a.transpose_a ? 1 : 0), a.b.size(a.transpose_b ? 1 : 2)}};
}
DType ragged_dtype(const Ragged& a) { return a.out_dtype.value_or(a.a.dtype()); }
void check_depth(const TensorView& a, bool turn_a, const TensorView& b, bool n_first) {
  const int64_t ka = a.size(turn_a ? -2 : -1), kb = b.size(n_first ? -1 : -2);
  FI_CHECK(ka == kb, ValueError, "b is ", to_string(b), " with k = ", kb, ", but a is ", to_string(a),
           " with k = ", ka);
}
void validate_masked(const Masked& a) { check_depth(a.a, a.transpose_a, a.b, a.transpose_b); }
void validate_ragged(const Ragged& a) {
  check_depth(a.a, a.transpose_a, a.b, a.transpose_b);
  gemm::check_out_dtype(ragged_dtype(a), op::floats);
}
void validate_added(const Added& a) {
  check_depth(a.a, a.trans_a, a.b, a.trans_b);
  const int64_t m = a.a.size(a.trans_a ? 1 : 0), n = a.b.size(a.trans_b ? 0 : 1);
  FI_CHECK(a.c.size(0) == m && a.c.size(1) == n, ValueError, "c is ", to_string(a.c), ", but must be [", m, ", ", n,
           "]");
}
template <class B>
op::Cost cost(const B& a) {
  bool n_first;
  if constexpr (std::is_same_v<B, Added>)
    n_first = a.trans_b;
  else
    n_first = a.transpose_b;
  return {.bytes = static_cast<double>(a.a.nbytes() + a.b.nbytes()),
          .flops = 2.0 * static_cast<double>(a.b.size(n_first ? -2 : -1) * a.a.numel())};
}

// ---- tables ----
constexpr op::Field masked_fields[] = {
    op::in<&Masked::a>("a", "q x y", gemm::kHalves),
    op::in<&Masked::b>("b", "q z w", op::same_as("a")),
    op::in<&Masked::masked_m>("masked_m", "q", DType::kI32),
    op::attr<&Masked::transpose_a>("transpose_a"),
    op::attr<&Masked::transpose_b>("transpose_b"),
    op::out<&Masked::out>("out", nullptr, op::same_as("a"), op::shape<masked_shape>),
    op::attr<&Masked::backend>("backend", op::backends("cutile:cuda")),
};
constexpr op::Field ragged_fields[] = {
    op::in<&Ragged::a>("a", "x y", gemm::kHalves),
    op::in<&Ragged::b>("b", "q z w", op::same_as("a")),
    op::in<&Ragged::m_indptr>("m_indptr", "q+1", DType::kI32),
    op::attr<&Ragged::max_m>("max_m", op::required),
    op::in<&Ragged::max_m_device>("max_m_device", nullptr),
    op::attr<&Ragged::transpose_a>("transpose_a"),
    op::attr<&Ragged::transpose_b>("transpose_b"),
    op::attr<&Ragged::out_dtype>("out_dtype"),
    op::attr<&Ragged::backend>("backend", op::backends("cutile:cuda")),
    op::result<&Ragged::out>("out", nullptr, op::floats, op::shape<ragged_shape>, op::dtype<ragged_dtype>),
};
constexpr op::Field added_fields[] = {
    op::in<&Added::a>("a", "x y", gemm::kHalves),
    op::in<&Added::b>("b", "z w", op::same_as("a")),
    op::inout<&Added::c>("c", "m n", op::floats),
    op::attr<&Added::trans_a>("trans_a"),
    op::attr<&Added::trans_b>("trans_b"),
    op::attr<&Added::alpha>("alpha"),
    op::attr<&Added::beta>("beta", op::doc("factor of the previous content of c; 0: c is not read")),
    op::attr<&Added::num_sms>("num_sms"),
    op::attr<&Added::backend>("backend", op::backends("cutile:cuda")),
};
constexpr op::Candidate masked_candidates[] = {op::cuda<prepare_masked_cuda>(), op::cpu<prepare<Masked>>(),
                                               op::reference<static_cast<void (*)(const Masked&)>(reference)>()};
constexpr op::Candidate ragged_candidates[] = {op::cuda<prepare_ragged_cuda>(), op::cpu<prepare<Ragged>>(),
                                               op::reference<static_cast<void (*)(const Ragged&)>(reference)>()};
constexpr op::Candidate added_candidates[] = {op::cuda<prepare_added_cuda>(), op::cpu<prepare_added>(),
                                              op::reference<reference_added>()};

constexpr op::Case kMasked[] = {
    {"rows", "a=bf16:3x10x70 b=bf16:3x70x33 masked_m=i32:[10,0,3]", "cpu", 0, -1, 1e-2},
    {"both_turned_f16", "a=f16:2x70x9 b=f16:2x17x70 masked_m=i32:[9,4] transpose_a=True transpose_b=True", "cpu", 0, -1,
     1e-2},
};
constexpr op::Case kRagged[] = {
    {"segments", "a=bf16:31x64 b=bf16:3x33x64 m_indptr=i32:[0,1,1,31] max_m=30", "cpu", 0, -1, 1e-2},
    {"row_major_f32",
     "a=f16:70x9 b=f16:2x70x17 m_indptr=i32:[2,4,9] max_m=8 transpose_a=True transpose_b=False out_dtype=float32",
     "cpu", 0, -1, 1e-3},
};
constexpr op::Case kAdded[] = {
    {"added", "a=bf16:9x64 b=bf16:33x64 c=bf16:9x33^pad3 alpha=0.5 beta=2.0", "cpu", 0, -1, 5e-2},
    {"alone", "a=f16:64x9 b=f16:64x17 c=f32:9x17 trans_a=True trans_b=False alpha=-1.5", "cpu", 0, -1, 1e-3},
};
std::span<const op::Case> masked_cases() { return kMasked; }
std::span<const op::Case> ragged_cases() { return kRagged; }
std::span<const op::Case> added_cases() { return kAdded; }
}  // namespace

namespace ops::gemm {
constinit const op::Op masked_bmm_op = op::define<Masked, validate_masked, cost<Masked>>(
    "masked_bmm", "flashinfer.gemm", "The first masked_m rows of each matrix of a batch times its weight.",
    masked_fields, masked_candidates, masked_cases);
constinit const op::Op ragged_bmm_op = op::define<Ragged, validate_ragged, cost<Ragged>>(
    "ragged_bmm", "flashinfer.gemm", "Each segment of rows times its matrix.", ragged_fields, ragged_candidates,
    ragged_cases);
constinit const op::Op alpha_beta_op = op::define<Added, validate_added, cost<Added>>(
    "gemm_alpha_beta", "flashinfer.gemm", "c = alpha * a . b + beta * c, in place.", added_fields, added_candidates,
    added_cases);
}  // namespace ops::gemm

Tensor masked_bmm(const Masked& a) { return op::call(family::masked_bmm_op, a); }
Tensor ragged_bmm(const Ragged& a) { return op::call(family::ragged_bmm_op, a); }
void gemm_alpha_beta(const Added& a) { op::call(family::alpha_beta_op, a); }

}  // namespace flashinfer
