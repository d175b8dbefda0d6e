// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/peers.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "flashinfer/comm/share.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::ops::comm {
namespace {
using flashinfer::comm::Signature;

struct CallText {
  CallKind kind;
  const char* op;
  const char* numbers[Signature::kNumbers - 1];  // names ending in "dtype" are element types
};
constexpr CallText kTexts[] = {
    {CallKind::kMoeDispatch,
     "moe_a2a_dispatch",
     {"runtime_max_tokens_per_rank", "top_k", "num_experts", "eplb_experts", "payloads", "types_of_payloads",
      "active_rank_mask"}},
    {CallKind::kMoeReuse, "moe_a2a_dispatch", {"active_rank_mask"}},
    {CallKind::kMoeCombine,
     "moe_a2a_combine",
     {"runtime_max_tokens_per_rank", "hidden", "dtype", "combine_payload_offset", "use_low_precision",
      "active_rank_mask"}},
    {CallKind::kDcpAlltoall, "decode_cp_a2a_alltoall", {"rows", "head_dim", "dtype", "softmax_stats"}},
    {CallKind::kDcpReduce, "decode_cp_a2a_lse_reduce", {"rows", "head_dim", "dtype", "base"}},
    {CallKind::kAllGather, "all_gather", {"rows", "columns", "dtype"}},
    {CallKind::kReduceScatter, "reduce_scatter", {"rows", "elements", "dtype", "fp32_acc"}},
    {CallKind::kMixedComm,
     "mixed_comm",
     {"op", "tp_size", "local_tp_size", "local_dp_size", "rows", "elements", "dtype"}},
    {CallKind::kUlyssesScatter, "ulysses_scatter_heads", {"batch", "sequence", "heads", "head_dim", "dtype"}},
    {CallKind::kUlyssesGather, "ulysses_gather_heads", {"batch", "sequence", "heads", "head_dim", "dtype"}},
    {CallKind::kQuantizedAllReduce, "quantized_all_reduce", {"elements", "scale_group"}},
};
}  // namespace

Signature signature(CallKind kind, std::initializer_list<int64_t> numbers) {
  Signature s;
  s.number[0] = static_cast<int64_t>(kind);
  std::copy(numbers.begin(), numbers.end(), s.number + 1);
  return s;
}

std::string describe_call(const Signature& s) {
  const auto& n = s.number;
  if (n[0] < static_cast<int64_t>(CallKind::kMoeDispatch))
    return str("allreduce_fusion(pattern=", n[0], ", input=[", n[1], ", ", n[2], "] ", name(static_cast<DType>(n[3])),
               n[4] ? ", one shot" : ", two shots", n[5] ? ", fp32_acc)" : ")");
  const auto* text = std::find_if(std::begin(kTexts), std::end(kTexts),
                                  [&](const CallText& t) { return static_cast<int64_t>(t.kind) == s.number[0]; });
  if (text == std::end(kTexts)) return str("call ", s.number[0]);
  std::string out = str(text->op, "(");
  for (int i = 0; i < Signature::kNumbers - 1 && text->numbers[i]; ++i) {
    const std::string_view label = text->numbers[i];
    out += str(i ? ", " : "", label, "=");
    out += label.ends_with("dtype") ? str(name(static_cast<DType>(s.number[i + 1]))) : str(s.number[i + 1]);
  }
  return out + ")";
}

Peers peers_of(const TensorView& workspace, int64_t rank, int64_t size, const char* rank_name, const char* size_name) {
  auto window = flashinfer::comm::window_at(workspace.data());
  auto gpu = window ? nullptr : gpu_share_at(workspace.data());
  FI_CHECK(
      window || gpu, ValueError, "workspace is ", to_string(workspace),
      ", but must be memory that ranks share, whole: a tensor of comm::share or share_on_gpu (Python: MnnvlMemory)");
  const auto& group = window ? window->group() : *gpu->group;
  FI_CHECK(size == group.size(), ValueError, size_name, " is ", size, ", but workspace is shared by ", group.size(),
           " ranks");
  FI_CHECK(rank == group.rank(), ValueError, rank_name, " is ", rank, ", but this process is rank ", group.rank(),
           " of workspace");
  return {std::move(window), std::move(gpu), group.rank(), group.size()};
}
std::string group_of(const TensorView& workspace) {
  if (!workspace.defined()) return "";
  if (const auto window = flashinfer::comm::window_at(workspace.data())) return window->group().name();
  const auto gpu = gpu_share_at(workspace.data());
  return gpu ? gpu->group->name() : "";
}
int64_t number_of_call(const TensorView& workspace) {
  if (!op::observed() || !workspace.defined()) return -1;
  if (const auto window = flashinfer::comm::window_at(workspace.data())) return static_cast<int64_t>(window->phase());
  const auto gpu = gpu_share_at(workspace.data());
  return gpu ? gpu->gpu->calls : -1;
}

void copy_bytes(const void* from, std::byte* to, int64_t bytes) {
  const int64_t tasks = ceil_div(bytes, kMaxTaskBytes);
  const auto task = [&](int64_t i) {
    const int64_t at = i * kMaxTaskBytes, n = std::min(kMaxTaskBytes, bytes - at);
    std::memcpy(to + at, static_cast<const std::byte*>(from) + at, static_cast<size_t>(n));
  };
  if (tasks == 1) return task(0);
  if (tasks > 1) parallel_for(tasks, task);
}

}  // namespace flashinfer::ops::comm
