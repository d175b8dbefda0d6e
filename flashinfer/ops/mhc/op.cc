// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/mhc/op.h"

#include <algorithm>
#include <string>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/mhc/kernels/params.h"
#include "flashinfer/ops/mhc/ref.h"

namespace flashinfer {
namespace {
using Post = MhcPost;
using Pre = MhcPreBigFuse;
using Prenorm = MhcPreBigFuseWithPrenorm;
inline constexpr jit::Kernel kMhc{"flashinfer/ops/mhc/kernels/cpu/mhc.h", "flashinfer::cpu::mhc",
                                  "flashinfer::MhcParams"};

// ---- checks ----
int64_t rows_of(const TensorView& residual) {
  int64_t n = 1;
  for (int i = 0; i + 2 < residual.rank(); ++i) n *= residual.size(i);
  return n;
}
void check_residual(const TensorView& t) {
  FI_CHECK(t.rank() >= 2 && t.size(-2) == kMhcStreams, ValueError, "residual is ", to_string(t),
           ", but must be [..., 4, hidden]");
}
/// `t` is [lead, .., tail], the outer axes those of residual.
void check_rows(const char* name, const TensorView& t, const TensorView& residual, std::vector<int64_t> lead,
                const std::vector<int64_t>& tail) {
  lead.insert(lead.end(), residual.shape().begin(), residual.shape().end() - 2);
  lead.insert(lead.end(), tail.begin(), tail.end());
  if (std::equal(lead.begin(), lead.end(), t.shape().begin(), t.shape().end())) return;
  std::string shape;
  for (int64_t n : lead) shape += (shape.empty() ? "" : ", ") + std::to_string(n);
  throw ValueError(str(name, " is ", to_string(t), ", but must be [", shape, "] (from residual)"));
}
void check_positive(const char* name, double x) {
  FI_CHECK(x > 0, ValueError, name, " is ", x, ", but must be positive");
}
void validate_post(const Post& a) {
  check_residual(a.residual);
  check_rows("x", a.x, a.residual, {}, {a.residual.size(-1)});
  if (a.post_layer_mix.rank() == a.residual.rank())
    check_rows("post_layer_mix", a.post_layer_mix, a.residual, {}, {4, 1});
  else
    check_rows("post_layer_mix", a.post_layer_mix, a.residual, {}, {4});
  check_rows("comb_res_mix", a.comb_res_mix, a.residual, {}, {4, 4});
}
template <class B>
void validate_numbers(const B& a) {
  check_residual(a.residual);
  check_positive("rms_eps", a.rms_eps);
  check_positive("mhc_pre_eps", a.mhc_pre_eps);
  check_positive("mhc_sinkhorn_eps", a.mhc_sinkhorn_eps);
  FI_CHECK(a.sinkhorn_repeat >= 1, ValueError, "sinkhorn_repeat is ", a.sinkhorn_repeat, ", but must be at least 1");
}
void validate_pre(const Pre& a) {
  validate_numbers(a);
  const int64_t s = a.num_splits;
  FI_CHECK(s == 1 || s == 2 || s == 4 || s == 8 || s == 16, ValueError, "num_splits is ", s,
           ", but must be 1, 2, 4, 8 or 16");
  FI_CHECK(a.k >= 1, ValueError, "k is ", a.k, ", but must be at least 1");
  // With one split its axis may be left out.
  const bool lead = s > 1 || a.dot_mix.rank() == a.residual.rank();
  check_rows("dot_mix", a.dot_mix, a.residual, lead ? std::vector<int64_t>{s} : std::vector<int64_t>{}, {kMhcMixes});
  const bool squares = s > 1 || a.sqrsum.rank() == a.residual.rank() - 1;
  check_rows("sqrsum", a.sqrsum, a.residual, squares ? std::vector<int64_t>{s} : std::vector<int64_t>{}, {});
}
void validate_prenorm(const Prenorm& a) {
  validate_numbers(a);
  const bool lead = a.dot_mix.rank() == a.residual.rank();
  check_rows("dot_mix", a.dot_mix, a.residual, lead ? std::vector<int64_t>{1} : std::vector<int64_t>{}, {kMhcMixes});
}

// ---- launches ----
MhcParams rows_params(const TensorView& residual) {
  MhcParams p{};
  p.residual = residual.data(), p.rows = rows_of(residual), p.hidden = residual.size(-1);
  p.rows_per_task = ops::rows_per_task(p.rows, 2 * kMhcStreams * p.hidden * residual.item_size());
  return p;
}
MhcParams post_params(const Post& a) {
  MhcParams p = rows_params(a.residual);
  p.x = a.x.data(), p.out = a.out->data();
  p.post_in = a.post_layer_mix.data_as<float>(), p.comb_in = a.comb_res_mix.data_as<float>();
  return p;
}
op::Prepared prepare_post(const Post& a) {
  const MhcParams p = post_params(a);
  return ops::prepare_rows<kMhc>(MhcConfig{a.residual.dtype(), 1}, p, p.rows, p.rows_per_task);
}
template <class B>
MhcParams pre_params(const B& a) {
  MhcParams p = rows_params(a.residual);
  p.out = a.layer_input->data(), p.dot_mix = a.dot_mix.template data_as<float>(), p.splits = 1;
  double k = static_cast<double>(kMhcStreams * p.hidden);
  if constexpr (requires { a.sqrsum; })
    p.sqrsum = a.sqrsum.template data_as<float>(), p.splits = a.num_splits, k = static_cast<double>(a.k);
  p.scale = a.mhc_scale.template data_as<float>(), p.base = a.mhc_base.template data_as<float>();
  p.post_out = a.post_mix->template data_as<float>(), p.comb_out = a.comb_mix->template data_as<float>();
  p.inverse_k = static_cast<float>(1 / k), p.rms_eps = static_cast<float>(a.rms_eps);
  p.pre_eps = static_cast<float>(a.mhc_pre_eps), p.sinkhorn_eps = static_cast<float>(a.mhc_sinkhorn_eps);
  p.post_factor = static_cast<float>(a.mhc_post_mult_value), p.repeat = a.sinkhorn_repeat;
  return p;
}
template <class B>
op::Prepared prepare_pre(const B& a) {
  const MhcParams p = pre_params(a);
  return ops::prepare_rows<kMhc>(MhcConfig{a.residual.dtype(), 0}, p, p.rows, p.rows_per_task);
}

// ---- on a GPU ----
inline constexpr jit::Kernel kPostCuda{"flashinfer/ops/mhc/kernels/cuda/mhc.cuh", "flashinfer::cu::mhc_post",
                                       "flashinfer::MhcParams"};
inline constexpr jit::Kernel kPreCuda{"flashinfer/ops/mhc/kernels/cuda/mhc.cuh", "flashinfer::cu::mhc_pre",
                                      "flashinfer::MhcParams"};
/// A block for a row's sum of squares; else blocks of a piece of 16 bytes a thread.
MhcCudaConfig cuda_config(const TensorView& residual, const MhcParams& p, bool squares) {
  const uint64_t places = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.residual) |
                          reinterpret_cast<uintptr_t>(p.out) | static_cast<uint64_t>(p.hidden * residual.item_size());
  return {.dtype = residual.dtype(),
          .squares = squares,
          .aligned = places % 16 == 0,
          .threads = static_cast<short>(squares ? 512 : 128)};
}
cuda::Launch cuda_launch(const TensorView& residual, const MhcParams& p, const MhcCudaConfig& c) {
  const int64_t columns = c.threads * (16 / residual.item_size());
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(p.rows);
  if (!c.squares) l.grid[1] = static_cast<unsigned>(std::clamp<int64_t>(ceil_div(p.hidden, columns), 1, 65535));
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(kMhcStreams + c.threads / 32) * sizeof(float);
  l.pdl = true;
  return l;
}
op::Prepared prepare_post_cuda(const Post& a, const op::Call& call) {
  const MhcParams p = post_params(a);
  const MhcCudaConfig c = cuda_config(a.residual, p, false);
  return ops::prepare_cuda<kPostCuda>(c, p, call.device, cuda_launch(a.residual, p, c));
}
template <class B>
op::Prepared prepare_pre_cuda(const B& a, const op::Call& call) {
  const MhcParams p = pre_params(a);
  const MhcCudaConfig c = cuda_config(a.residual, p, p.sqrsum == nullptr);
  return ops::prepare_cuda<kPreCuda>(c, p, call.device, cuda_launch(a.residual, p, c));
}

// ---- shapes ----
op::Shape shape_of(const TensorView& t, int dims, std::initializer_list<int64_t> tail) {
  op::Shape s{dims, {}};
  for (int i = 0; i < dims; ++i) s.size[i] = t.size(i);
  for (int64_t x : tail) s.size[s.rank++] = x;
  return s;
}
op::Shape post_shape(const Post& a) { return shape_of(a.residual, a.residual.rank(), {}); }
template <class B>
op::Shape post_mix_shape(const B& a) {
  return shape_of(a.residual, a.residual.rank() - 2, {kMhcStreams, 1});
}
template <class B>
op::Shape comb_mix_shape(const B& a) {
  return shape_of(a.residual, a.residual.rank() - 2, {kMhcStreams, kMhcStreams});
}
template <class B>
op::Shape layer_input_shape(const B& a) {
  return shape_of(a.residual, a.residual.rank() - 2, {a.residual.size(-1)});
}
op::Cost cost_post(const Post& a) {
  return {.bytes = 2.25 * static_cast<double>(a.residual.nbytes()),
          .flops = 10.0 * static_cast<double>(a.residual.numel())};
}
template <class B>
op::Cost cost_pre(const B& a) {
  return {.bytes = 1.25 * static_cast<double>(a.residual.nbytes()),
          .flops = 2.0 * static_cast<double>(a.residual.numel())};
}

// ---- tables ----
constexpr op::Field post_fields[] = {
    op::in<&Post::x>("x", nullptr, op::same_as("residual"), op::contiguous),
    op::in<&Post::residual>("residual", nullptr, op::floats, op::contiguous),
    op::in<&Post::post_layer_mix>("post_layer_mix", nullptr, DType::kF32, op::contiguous),
    op::in<&Post::comb_res_mix>("comb_res_mix", nullptr, DType::kF32, op::contiguous),
    op::result<&Post::out>("out", nullptr, op::same_as("residual"), op::contiguous, op::shape<post_shape>),
};
#define FI_NUMBERS(B)                                                                                               \
  op::attr<&B::rms_eps>("rms_eps"), op::attr<&B::mhc_pre_eps>("mhc_pre_eps"),                                       \
      op::attr<&B::mhc_sinkhorn_eps>("mhc_sinkhorn_eps"), op::attr<&B::mhc_post_mult_value>("mhc_post_mult_value"), \
      op::attr<&B::sinkhorn_repeat>("sinkhorn_repeat")
#define FI_RESULTS(B)                                                                                           \
  op::attr<&B::block_size>("block_size", op::doc("CUDA only")),                                                 \
      op::result<&B::post_mix>("post_mix", nullptr, DType::kF32, op::contiguous, op::shape<post_mix_shape<B>>), \
      op::result<&B::comb_mix>("comb_mix", nullptr, DType::kF32, op::contiguous, op::shape<comb_mix_shape<B>>), \
      op::result<&B::layer_input>("layer_input", nullptr, op::same_as("residual"), op::contiguous,              \
                                  op::shape<layer_input_shape<B>>)
constexpr op::Field pre_fields[] = {
    op::in<&Pre::dot_mix>("dot_mix", nullptr, DType::kF32, op::contiguous),
    op::in<&Pre::sqrsum>("sqrsum", nullptr, DType::kF32, op::contiguous),
    op::in<&Pre::residual>("residual", nullptr, op::floats, op::contiguous),
    op::in<&Pre::mhc_scale>("mhc_scale", "3", DType::kF32),
    op::in<&Pre::mhc_base>("mhc_base", "24", DType::kF32),
    op::attr<&Pre::k>("k", op::required, op::doc("elements that sqrsum is the sum of")),
    FI_NUMBERS(Pre),
    op::attr<&Pre::num_splits>("num_splits"),
    FI_RESULTS(Pre),
};
constexpr op::Field prenorm_fields[] = {
    op::in<&Prenorm::dot_mix>("dot_mix", nullptr, DType::kF32, op::contiguous),
    op::in<&Prenorm::residual>("residual", nullptr, op::floats, op::contiguous),
    op::in<&Prenorm::mhc_scale>("mhc_scale", "3", DType::kF32),
    op::in<&Prenorm::mhc_base>("mhc_base", "24", DType::kF32),
    FI_NUMBERS(Prenorm),
    FI_RESULTS(Prenorm),
};
#undef FI_NUMBERS
#undef FI_RESULTS
constexpr op::Candidate post_candidates[] = {op::cuda<prepare_post_cuda>(), op::cpu<prepare_post>(),
                                             op::reference<ref::mhc_post>()};
constexpr op::Candidate pre_candidates[] = {op::cuda<prepare_pre_cuda<Pre>>(), op::cpu<prepare_pre<Pre>>(),
                                            op::reference<ref::mhc_pre_big_fuse>()};
constexpr op::Candidate prenorm_candidates[] = {op::cuda<prepare_pre_cuda<Prenorm>>(), op::cpu<prepare_pre<Prenorm>>(),
                                                op::reference<ref::mhc_pre_with_prenorm>()};
constexpr op::Case kPost[] = {
    {"bf16", "x=bf16:5x4096 residual=bf16:5x4x4096 post_layer_mix=f32:5x4 comb_res_mix=f32:5x4x4", "cpu",
     op::kAot | op::kTrace},
    {"odd", "x=f16:2x3x127 residual=f16:2x3x4x127 post_layer_mix=f32:2x3x4x1 comb_res_mix=f32:2x3x4x4"},
    {"no_rows", "x=f32:0x8 residual=f32:0x4x8 post_layer_mix=f32:0x4 comb_res_mix=f32:0x4x4"},
    {"bench", "x=bf16:4096x4096 residual=bf16:4096x4x4096 post_layer_mix=f32:4096x4 comb_res_mix=f32:4096x4x4", "cpu",
     op::kBench},
};
constexpr op::Case kPre[] = {
    {"bf16",
     "dot_mix=f32:5x24 sqrsum=f32:5:uniform(1,500) residual=bf16:5x4x4096:normal(0,0.1) mhc_scale=f32:3 "
     "mhc_base=f32:24 "
     "k=16384",
     "cpu", op::kAot | op::kTrace},
    {"splits",
     "dot_mix=f32:4x2x3x24 sqrsum=f32:4x2x3:uniform(1,50) residual=f16:2x3x4x127 mhc_scale=f32:3 mhc_base=f32:24 k=508 "
     "num_splits=4 rms_eps=1e-5 mhc_pre_eps=1e-3 mhc_sinkhorn_eps=1e-3 mhc_post_mult_value=2.0 sinkhorn_repeat=3"},
};
constexpr op::Case kPrenorm[] = {
    {"bf16", "dot_mix=f32:5x24:normal(0,20) residual=bf16:5x4x4096 mhc_scale=f32:3 mhc_base=f32:24", "cpu",
     op::kAot | op::kTrace},
    {"one_split_odd",
     "dot_mix=f32:1x3x24 residual=f32:3x4x55 mhc_scale=f32:3 mhc_base=f32:24 sinkhorn_repeat=1 "
     "mhc_post_mult_value=2.0"},
};
std::span<const op::Case> post_cases() { return kPost; }
std::span<const op::Case> pre_cases() { return kPre; }
std::span<const op::Case> prenorm_cases() { return kPrenorm; }

constexpr const char* kModule = "flashinfer.mhc";
constinit const op::Op post_op = op::define<Post, validate_post, cost_post>(
    "mhc_post", kModule, "out_j = x * post_layer_mix_j + sum_i residual_i * comb_res_mix_ij, of four residual streams.",
    post_fields, post_candidates, post_cases);
constinit const op::Op pre_op = op::define<Pre, validate_pre, cost_pre<Pre>>(
    "mhc_pre_big_fuse", kModule, "How four residual streams are mixed before and after a layer, and the layer's input.",
    pre_fields, pre_candidates, pre_cases);
constinit const op::Op prenorm_op = op::define<Prenorm, validate_prenorm, cost_pre<Prenorm>>(
    "mhc_pre_big_fuse_with_prenorm", kModule, "mhc_pre_big_fuse with the sum of squares of residual.", prenorm_fields,
    prenorm_candidates, prenorm_cases);
constexpr const op::Op* kOps[] = {&post_op, &pre_op, &prenorm_op};
}  // namespace

Tensor mhc_post(const Post& a) { return op::call(post_op, a); }
std::tuple<Tensor, Tensor, Tensor> mhc_pre_big_fuse(const Pre& a) { return op::call(pre_op, a); }
std::tuple<Tensor, Tensor, Tensor> mhc_pre_big_fuse_with_prenorm(const Prenorm& a) { return op::call(prenorm_op, a); }

namespace ops::mhc {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::mhc

}  // namespace flashinfer
