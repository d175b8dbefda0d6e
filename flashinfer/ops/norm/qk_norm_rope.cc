// SPDX-License-Identifier: Apache-2.0
// fused_qk_rmsnorm_rope.
#include <array>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/diffusion.h"
#include "flashinfer/ops/norm/diffusion_ref.h"
#include "flashinfer/ops/norm/kernels/diffusion_params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/ops.h"

namespace flashinfer {
namespace {
using QkRope = FusedQkRmsNormRope;
inline constexpr jit::Kernel kQkRope{"flashinfer/ops/norm/kernels/cpu/diffusion.h", "flashinfer::cpu::qk_norm_rope",
                                     "flashinfer::QkNormRopeParams"};

/// cos and sin of a part's angles at every place, each [extent][pairs].
struct Tables {
  std::vector<float> cos[3], sin[3];
};
std::array<int64_t, 3> extents_of(const QkRope& a) { return {a.ppf, a.pph, a.ppw}; }
std::array<int64_t, 3> channels_of(const QkRope& a) {
  return {a.num_frame_channels, a.num_height_channels, a.num_width_channels};
}
std::array<int64_t, 3> heads_of(const QkRope& a) { return {a.num_heads_q, a.num_heads_k, a.num_heads_v}; }
std::shared_ptr<const Tables> tables_of(const QkRope& a) {
  auto t = std::make_shared<Tables>();
  for (size_t part = 0; part < 3; ++part) {
    const int64_t channels = channels_of(a)[part];
    for (int64_t place = 0; place < extents_of(a)[part]; ++place)
      for (int64_t i = 0; i < channels / 2; ++i) {
        const double angle = static_cast<double>(place) *
                             std::pow(a.base, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
        t->cos[part].push_back(static_cast<float>(std::cos(angle) * a.attention_factor));
        t->sin[part].push_back(static_cast<float>(std::sin(angle) * a.attention_factor));
      }
  }
  return t;
}
DType rope_out_dtype(const QkRope& a) { return a.output_fp8 ? DType::kF8E4M3 : a.qkv.dtype(); }
template <int kPart>
op::Shape rope_shape(const QkRope& a) {
  const int64_t heads = heads_of(a)[kPart];
  if (a.qkv.rank() == 3) return {4, {a.qkv.size(0), a.qkv.size(1), heads, a.head_dim}};
  return {3, {a.qkv.size(0), heads, a.head_dim}};
}
QkNormRopeParams rope_params(const QkRope& a) {
  QkNormRopeParams p{};
  const bool batched = a.qkv.rank() == 3;
  p.qkv = a.qkv.data();
  ops::norm::row_strides(a.qkv, p.qkv_stride);
  p.weight[0] = a.is_qk_norm ? a.q_weight.data() : nullptr, p.weight[1] = a.is_qk_norm ? a.k_weight.data() : nullptr;
  const TensorView* outs[] = {&*a.q_out, &*a.k_out, &*a.v_out};
  for (size_t i = 0; i < 3; ++i) {
    p.out[i] = outs[i]->data();
    p.out_stride[i][0] = outs[i]->stride(0), p.out_stride[i][1] = batched ? outs[i]->stride(1) : 0,
    p.out_stride[i][2] = outs[i]->stride(-2);
    p.heads[i] = heads_of(a)[i], p.extent[i] = extents_of(a)[i], p.pairs[i] = channels_of(a)[i] / 2;
    const double scale = i < 2 ? a.output_quant_scale : a.v_quant_scale;
    p.out_scale[i] = a.output_fp8 ? static_cast<float>(scale) : 1.0f;
  }
  p.dim = a.head_dim, p.eps = static_cast<float>(a.eps);
  p.inner = batched ? std::max<int64_t>(a.qkv.size(1), 1) : 1;
  p.rows = batched ? a.qkv.size(0) * a.qkv.size(1) : a.qkv.size(0);
  p.rows_per_task = ops::rows_per_task(p.rows, a.qkv.size(-1) * (a.qkv.item_size() + size_of(rope_out_dtype(a))));
  return p;
}
op::Prepared prepare_rope(const QkRope& a) {
  QkNormRopeParams p = rope_params(a);
  const auto tables = tables_of(a);
  for (size_t i = 0; i < 3; ++i) p.cos[i] = tables->cos[i].data(), p.sin[i] = tables->sin[i].data();
  const QkNormRopeConfig config{a.qkv.dtype(), rope_out_dtype(a), static_cast<unsigned char>(a.interleave)};
  return ops::with_kernel<kQkRope>(config,
                                   [p, tables](jit::CpuFn fn) { ops::run_rows(fn, p, p.rows, p.rows_per_task); });
}

inline constexpr jit::Kernel kQkRopeCuda{"flashinfer/ops/norm/kernels/cuda/qk_norm_rope.cuh",
                                         "flashinfer::cu::qk_norm_rope", "flashinfer::QkNormRopeCudaParams"};
/// Frequencies of a head's pairs on a GPU or the emulator: copied once for each base and split of the head and kept, so
/// that later calls, captured ones too, find them.
const double* rope_frequencies_on(Device device, const QkRope& a) {
  using Key = std::tuple<Device, double, std::array<int64_t, 3>>;
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static auto& known = *new std::vector<std::pair<Key, Tensor>>;
  const Key key{device, a.base, channels_of(a)};
  const std::lock_guard lock(mutex);
  for (const auto& [k, values] : known)
    if (k == key) return values.data_as<double>();
  std::vector<double> f;
  for (const int64_t channels : channels_of(a))
    for (int64_t i = 0; i < channels / 2; ++i)
      f.push_back(std::pow(a.base, -2.0 * static_cast<double>(i) / static_cast<double>(channels)));
  known.emplace_back(key, to_device(TensorView(std::span<const double>(f)), device));
  return known.back().second.data_as<double>();
}
bool rope_aligned(const QkRope& a, const QkNormRopeParams& p) {
  const int64_t size = a.qkv.item_size(), out_size = size_of(rope_out_dtype(a)), n = 16 / size;
  const auto place = [](const void* x) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(x)); };
  uint64_t in = place(p.qkv) | place(p.weight[0]) | place(p.weight[1]) |
                static_cast<uint64_t>((p.qkv_stride[0] | p.qkv_stride[1] | (a.interleave ? p.dim : p.dim / 2)) * size);
  uint64_t out = 0;
  for (size_t i = 0; i < 3; ++i)
    out |= place(p.out[i]) |
           static_cast<uint64_t>((p.out_stride[i][0] | p.out_stride[i][1] | p.out_stride[i][2]) * out_size);
  return in % 16 == 0 && out % static_cast<uint64_t>(n * out_size) == 0;
}
op::Prepared prepare_rope_cuda(const QkRope& a, const op::Call& call) {
  const QkNormRopeCudaParams p{rope_params(a), rope_frequencies_on(call.device, a)};
  const QkNormRopeCudaConfig c{.dtype = a.qkv.dtype(),
                               .out = rope_out_dtype(a),
                               .interleave = a.interleave,
                               .aligned = rope_aligned(a, p.rows),
                               .threads = 256};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(p.rows.rows);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = static_cast<unsigned>(c.threads / 32 + p.rows.dim) * sizeof(float);
  l.pdl = true;
  return ops::prepare_cuda<kQkRopeCuda>(c, p, call.device, l);
}
void validate_rope(const QkRope& a) {
  FI_CHECK(a.qkv.rank() == 2 || a.qkv.rank() == 3, ValueError, "qkv is ", to_string(a.qkv),
           ", but must be [rows, dim] or [batch, rows, dim]");
  for (const auto& [name, x] :
       {std::pair("ppf", a.ppf), std::pair("pph", a.pph), std::pair("ppw", a.ppw), std::pair("head_dim", a.head_dim)})
    FI_CHECK(x >= 1, ValueError, name, " is ", x, ", but must be at least 1");
  FI_CHECK(a.head_dim % 2 == 0 && a.head_dim <= kMaxQkNormRopeDim, ValueError, "head_dim is ", a.head_dim,
           ", but must be even and at most ", kMaxQkNormRopeDim);
  for (const auto& [name, x] : {std::pair("num_heads_q", a.num_heads_q), std::pair("num_heads_k", a.num_heads_k),
                                std::pair("num_heads_v", a.num_heads_v)})
    FI_CHECK(x >= 0, ValueError, name, " is ", x, ", but must be at least 0");
  int64_t channels = 0;
  for (const auto& [name, x] :
       {std::pair("num_frame_channels", a.num_frame_channels), std::pair("num_height_channels", a.num_height_channels),
        std::pair("num_width_channels", a.num_width_channels)}) {
    FI_CHECK(x >= 0 && x % 2 == 0, ValueError, name, " is ", x, ", but must be even");
    channels += x;
  }
  FI_CHECK(channels == a.head_dim, ValueError, "num_frame_channels, num_height_channels and num_width_channels sum to ",
           channels, ", but head_dim is ", a.head_dim);
  const int64_t width = (a.num_heads_q + a.num_heads_k + a.num_heads_v) * a.head_dim, seq = a.ppf * a.pph * a.ppw;
  FI_CHECK(a.qkv.size(-1) == width, ValueError, "qkv.shape[-1] is ", a.qkv.size(-1), ", but the heads have ", width,
           " elements (", a.num_heads_q, " + ", a.num_heads_k, " + ", a.num_heads_v, " of ", a.head_dim, ")");
  FI_CHECK(a.qkv.rank() == 3 ? a.qkv.size(1) == seq : a.qkv.size(0) % seq == 0, ValueError, "qkv is ", to_string(a.qkv),
           ", but a video has ", seq, " rows (ppf * pph * ppw)");
  for (const auto& [name, w, heads] :
       {std::tuple("q_weight", &a.q_weight, a.num_heads_q), std::tuple("k_weight", &a.k_weight, a.num_heads_k)})
    FI_CHECK(w->rank() == 1 && w->size(0) == heads * a.head_dim, ValueError, name, " is ", to_string(*w),
             ", but must be [", heads * a.head_dim, "]");
  FI_CHECK(a.eps >= 0, ValueError, "eps is ", a.eps, ", but must be at least 0");
  FI_CHECK(a.base > 0, ValueError, "base is ", a.base, ", but must be positive");
  if (a.factor != 1.0)
    throw NotImplementedError(str("factor=", a.factor, " is not supported: YARN's scaling is not available"));
  FI_CHECK(a.attention_factor == 1.0, ValueError, "attention_factor is ", a.attention_factor,
           ", but must be 1.0 when factor is 1.0");
}
op::Cost cost_rope(const QkRope& a) {
  return {.bytes = static_cast<double>(a.qkv.nbytes() + a.qkv.numel() * size_of(rope_out_dtype(a))),
          .flops = 8.0 * static_cast<double>(a.qkv.numel())};
}

#define FI_OUT(name, part) \
  op::out<&QkRope::name>(#name, nullptr, op::floats | op::fp8, op::shape<rope_shape<part>>, op::dtype<rope_out_dtype>)
constexpr op::Field rope_fields[] = {
    op::in<&QkRope::qkv>("qkv", nullptr, op::floats),
    op::in<&QkRope::q_weight>("q_weight", nullptr, op::same_as("qkv")),
    op::in<&QkRope::k_weight>("k_weight", nullptr, op::same_as("qkv")),
    op::attr<&QkRope::ppf>("ppf", op::required, op::keyword_only),
    op::attr<&QkRope::pph>("pph", op::required),
    op::attr<&QkRope::ppw>("ppw", op::required),
    op::attr<&QkRope::num_frame_channels>("num_frame_channels", op::required),
    op::attr<&QkRope::num_height_channels>("num_height_channels", op::required),
    op::attr<&QkRope::num_width_channels>("num_width_channels", op::required),
    op::attr<&QkRope::num_heads_q>("num_heads_q", op::required),
    op::attr<&QkRope::num_heads_k>("num_heads_k", op::required),
    op::attr<&QkRope::num_heads_v>("num_heads_v", op::required),
    op::attr<&QkRope::head_dim>("head_dim", op::required),
    op::attr<&QkRope::eps>("eps"),
    op::attr<&QkRope::base>("base"),
    op::attr<&QkRope::interleave>("interleave"),
    op::attr<&QkRope::factor>("factor"),
    op::attr<&QkRope::low>("low"),
    op::attr<&QkRope::high>("high"),
    op::attr<&QkRope::attention_factor>("attention_factor"),
    op::attr<&QkRope::is_qk_norm>("is_qk_norm"),
    op::attr<&QkRope::output_fp8>("output_fp8"),
    op::attr<&QkRope::output_quant_scale>("output_quant_scale"),
    op::attr<&QkRope::v_quant_scale>("v_quant_scale"),
    FI_OUT(q_out, 0),
    FI_OUT(k_out, 1),
    FI_OUT(v_out, 2),
};
#undef FI_OUT
constexpr op::Candidate rope_candidates[] = {op::cuda<prepare_rope_cuda>(), op::cpu<prepare_rope>(),
                                             op::reference<ref::qk_norm_rope>()};
}  // namespace

namespace ops::norm {
constinit const op::Op qk_norm_rope_op = op::define<QkRope, validate_rope, cost_rope>(
    "fused_qk_rmsnorm_rope", "flashinfer.norm",
    "RMSNorm of all heads of Q and of K, a rotation by a video's frame, height and width, and a copy of V.",
    rope_fields, rope_candidates, qk_norm_rope_cases);
}  // namespace ops::norm

std::tuple<Tensor, Tensor, Tensor> fused_qk_rmsnorm_rope(const QkRope& a) {
  return op::call(ops::norm::qk_norm_rope_op, a);
}

}  // namespace flashinfer
