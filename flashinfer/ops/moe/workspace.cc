// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/workspace.h"

#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/kernels/params.h"
#include "flashinfer/ops/moe/ops.h"

namespace flashinfer {
namespace {
using Size = CutlassFusedMoeWorkspaceSize;

void validate(const Size& a) {
  const auto positive = [](const char* name, int64_t v, int64_t least) {
    FI_CHECK(v >= least, ValueError, name, " is ", v, ", but must be at least ", least);
  };
  positive("max_num_tokens", a.max_num_tokens, 0);
  positive("hidden_size", a.hidden_size, 1);
  positive("intermediate_size", a.intermediate_size, 1);
  positive("num_experts_total", a.num_experts_total, 1);
  positive("top_k", a.top_k, 1);
  const auto rank = [](const char* size_name, int64_t size, const char* name, int64_t rank) {
    FI_CHECK(size >= 1 && rank >= 0 && rank < size, ValueError, name, " is ", rank, ", but must be in [0, ", size,
             ") (", size_name, ")");
  };
  rank("tp_size", a.tp_size, "tp_rank", a.tp_rank);
  rank("ep_size", a.ep_size, "ep_rank", a.ep_rank);
  FI_CHECK(a.num_experts_total % a.ep_size == 0, ValueError, "num_experts_total is ", a.num_experts_total,
           ", but must be a multiple of ep_size, ", a.ep_size);
  FI_CHECK(a.activation_type >= 0 && a.activation_type <= 12 && a.activation_type != 11, ValueError,
           "activation_type is ", a.activation_type, ", but must be an ActivationType");
  const auto missing = [](bool set, const char* name) {
    FI_CHECK(!set, NotImplementedError, name, " is True, but is not implemented");
  };
  missing(a.min_latency_mode, "min_latency_mode");
  missing(a.use_wfp4afp8_humming, "use_wfp4afp8_humming");
}
void compute(const Size& a) {
  const int64_t rows = a.max_num_tokens * a.top_k,
                width = a.intermediate_size * (has_gate(static_cast<MoeActivation>(a.activation_type)) ? 2 : 1);
  const int64_t item = size_of(a.x_dtype), scales = 4;  // scales: the widest, f32 for 128, take less than a byte for 16
  const int64_t products = rows * (width + a.hidden_size) * 4;
  const int64_t gathered = rows * a.hidden_size * item,
                packed = rows * std::max(a.hidden_size, a.intermediate_size) * 2;
  const int64_t quantised = (a.max_num_tokens + rows) * a.hidden_size + rows * a.intermediate_size,
                activated = rows * a.intermediate_size * 2;
  const int64_t indices = rows * 24 + a.num_experts_total / a.ep_size * 64;
  a.bytes->data_as<int64_t>()[0] =
      products + gathered + packed + quantised + quantised / 16 * scales + activated + indices;
}

constexpr op::Field fields[] = {
    op::attr<&Size::max_num_tokens>("max_num_tokens", op::required),
    op::attr<&Size::hidden_size>("hidden_size", op::required),
    op::attr<&Size::intermediate_size>("intermediate_size", op::required),
    op::attr<&Size::num_experts_total>("num_experts_total", op::required),
    op::attr<&Size::top_k>("top_k", op::required),
    op::attr<&Size::x_dtype>("x_dtype", op::required, op::keyword_only),
    op::attr<&Size::weight_dtype>("weight_dtype", op::required),
    op::attr<&Size::output_dtype>("output_dtype"),
    op::attr<&Size::activation_type>(
        "activation_type", op::literal("ActivationType.Swiglu"),
        op::enumeration("ActivationType: Gelu=0|Relu=1|Silu=2|Swiglu=3|Geglu=4|SwigluBias=5|Relu2=6|SwigluStep=7|"
                        "GegluTanh=8|Identity=9|Situ=10|InvalidType=11|ClampedRelu2=12")),
    op::attr<&Size::tp_size>("tp_size"),
    op::attr<&Size::tp_rank>("tp_rank"),
    op::attr<&Size::ep_size>("ep_size"),
    op::attr<&Size::ep_rank>("ep_rank"),
    op::attr<&Size::min_latency_mode>("min_latency_mode"),
    op::attr<&Size::use_deepseek_fp8_block_scale>("use_deepseek_fp8_block_scale"),
    op::attr<&Size::use_w4_group_scaling>("use_w4_group_scaling"),
    op::attr<&Size::use_mxfp8_act_scaling>("use_mxfp8_act_scaling"),
    op::attr<&Size::use_fused_finalize>("use_fused_finalize"),
    op::attr<&Size::use_packed_weights>("use_packed_weights"),
    op::attr<&Size::use_wfp4afp8_humming>("use_wfp4afp8_humming"),
    op::attr<&Size::device>("device"),
    op::attr<&Size::backend>("backend", op::backends("cutlass:cuda|cake:cuda")),
    op::result<&Size::bytes>("bytes", "1", DType::kI64, op::as_numbers),
};
constexpr op::Candidate candidates[] = {op::host<compute>(), op::reference<compute>()};
constexpr op::Case kCases[] = {
    {"bf16",
     "max_num_tokens=64 hidden_size=2048 intermediate_size=1024 num_experts_total=64 top_k=8 x_dtype=bfloat16 "
     "weight_dtype=bfloat16"},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::moe {
constinit const op::Op workspace_op = op::define<Size, validate>(
    "cutlass_fused_moe_workspace_size", "flashinfer.fused_moe",
    "Upper bound of the scratch bytes that cutlass_fused_moe allocates.", fields, candidates, cases);
}  // namespace ops::moe

int64_t cutlass_fused_moe_workspace_size(const Size& a) {
  const Tensor t = op::call(ops::moe::workspace_op, a);
  return t.data_as<int64_t>()[0];
}

}  // namespace flashinfer
