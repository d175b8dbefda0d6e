// SPDX-License-Identifier: Apache-2.0
// All-to-all of a mixture of experts whose experts are spread over ranks: dispatch sends each token's rows to the ranks
// of its experts, combine adds what those ranks computed. One-sided: a rank writes its rows to where the receiver reads
// them, so each row is moved once, and each call waits once.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/comm/share.h"
#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Payloads of a dispatch, experts of a token: at most these.
inline constexpr int kMoeA2aPayloads = 6, kMoeA2aTopK = 32;

/// Bytes of shared memory a rank for dispatches of `dispatch_bytes` and combines of `combine_bytes` a token.
/// ValueError: ep_size outside [1, 64], max_num_tokens outside [1, 2^25), negative sizes.
int64_t moe_a2a_get_workspace_size_per_rank(int64_t ep_size, int64_t max_num_tokens, int64_t dispatch_bytes,
                                            int64_t combine_bytes, int64_t eplb_stats_num_experts = 0);

struct MoeA2aInitialize {
  TensorView workspace;  // [ep_size, bytes] u8, of comm::share or share_on_gpu
  int64_t ep_rank = 0, ep_size = 1, max_num_tokens = 1, eplb_stats_num_experts = 0;
  std::string backend = "trtllm";
  std::optional<TensorView> metainfo{};
  std::string group{};
};
/// Prepares this rank's part of the workspace. Returns metainfo, int64 [6], which the other calls take: max_num_tokens,
/// eplb_stats_num_experts, and the offsets in bytes of the counts of received tokens, of the statistics, of this rank's
/// places and of the first payload. ValueError: sizes as above, a workspace too small.
Tensor moe_a2a_initialize(const MoeA2aInitialize& args);

struct MoeA2aDispatch {
  TensorView token_selected_experts;       // [tokens, top_k] int32; negative: none
  std::vector<TensorView> input_payloads;  // 1 to 6 of [tokens, columns], contiguous
  TensorView workspace, metainfo;
  int64_t runtime_max_tokens_per_rank = 0, ep_rank = 0, ep_size = 1, top_k = 1, num_experts = 1;
  std::optional<bool> enable_pdl{};              // CUDA only
  std::optional<TensorView> eplb_local_stats{};  // [eplb_stats_num_experts] int32
  bool enable_rank_mask = false;                 // whether there may be a mask
  std::optional<TensorView> active_rank_mask{};  // [1] uint64: bit r: rank r takes part
  std::string backend = "trtllm";
  // Views of the workspace that moe_a2a_dispatch makes: what is received.
  std::optional<TensorView> received_0{}, received_1{}, received_2{}, received_3{}, received_4{}, received_5{};
  std::optional<TensorView> eplb_gathered_stats{};
  // For recordings:
  std::string group{};
  int64_t call = -1, ranks = -1;  // the call's number, the same on all ranks; bits of those that take part
  std::optional<TensorView> workspace_state{};  // what earlier calls left in this rank's part of the workspace
};
struct MoeA2aReceived {
  std::vector<Tensor> payloads;  // [ep_size, runtime_max_tokens_per_rank, columns], in the workspace
  int64_t combine_payload_offset = 0;
  Tensor eplb_gathered_stats{};  // [ep_size, eplb_stats_num_experts] int32, in the workspace; undefined without stats
};
/// Sends each token once to every rank that has one of its experts: the first num_experts mod ep_size ranks have one
/// more than the others, in the order of the ids. Slice s of a received payload has the tokens of rank s in their
/// order; rows behind them keep what was there. What is received stays until the next combine or dispatch begins on any
/// rank. `memory` is the tensor of comm::share or share_on_gpu that `workspace` views; the results keep it alive. On a
/// GPU ids that are no expert's count as negative ones, and after a failure (docs/comm.md) the rows are undefined.
/// Every rank passes the same numbers, payload types and mask. ValueError: arguments that do not fit together or into
/// the workspace; RuntimeError: a rank that calls something else, died or does not arrive in time.
MoeA2aReceived moe_a2a_dispatch(MoeA2aDispatch args, const Tensor& memory);

struct MoeA2aCombine {
  TensorView payload;  // [ep_size, runtime_max_tokens_per_rank, hidden] f16|bf16|f32, contiguous: what is sent back
  int64_t local_num_tokens = 0;
  TensorView workspace, metainfo;
  int64_t runtime_max_tokens_per_rank = 0, ep_rank = 0, ep_size = 1, top_k = 1, combine_payload_offset = 0;
  bool payload_in_workspace = false;          // payload is the workspace's memory at combine_payload_offset
  std::optional<DType> output_dtype{};        // absent: payload's. f16|bf16|f32; e4m3: MXFP8; u8: MXFP4 or NVFP4
  std::optional<TensorView> output_scales{};  // MXFP8, MXFP4: u8, a power of two for 32 elements; NVFP4: e4m3, for 16
  double output_scalar_scale = 1.0;           // of NVFP4: the global scale
  int64_t sf_layout = 2;                      // of output_scales: 0 128x4, 1 8x4, 2 linear
  std::optional<TensorView> output{};         // [local_num_tokens, hidden], u8: [.., hidden / 2]
  bool use_low_precision = false;             // bf16 rows are sent as e4m3, saturating
  std::optional<bool> enable_pdl{};           // CUDA only
  bool enable_rank_mask = false;
  std::optional<TensorView> active_rank_mask{};  // that of the dispatch
  std::string backend = "trtllm";
  std::string group{};
  int64_t call = -1, ranks = -1;  // as of MoeA2aDispatch
  std::optional<TensorView> workspace_state{};
};
/// output[t] = the sum of token t's rows from the ranks it was sent to, in the order of its experts, in f32, rounded
/// once (or quantised). A rank that the mask leaves out adds 0. Every rank gets the same bits whatever arrives first.
/// Errors as moe_a2a_dispatch; RuntimeError also without a dispatch before it.
Tensor moe_a2a_combine(const MoeA2aCombine& args);

struct MoeA2aSanitizeExpertIds {
  TensorView expert_ids;  // [ep_size, runtime_max_tokens_per_rank, top_k] int32: a received payload; written
  TensorView workspace, metainfo;
  int64_t ep_rank = 0, invalid_expert_id = 0;
  std::optional<bool> enable_pdl{};
  std::string backend = "trtllm";
  std::string group{};
  std::optional<TensorView> workspace_state{};  // as of MoeA2aDispatch
};
/// Rows of expert_ids that hold no token become invalid_expert_id. Of this rank alone.
void moe_a2a_sanitize_expert_ids(const MoeA2aSanitizeExpertIds& args);

struct MoeAlltoAllInit {
  int64_t max_num_tokens = 1, top_k = 1, num_experts = 1;
  int64_t hidden_size = 0;              // with 0, workspace_size_per_rank is needed
  int64_t workspace_size_per_rank = 0;  // 0: for hidden_size 16-bit elements, ids and weights
  Device device{};                      // of the tensors: the CPU, or this rank's GPU
};
/// The calls above over memory of their own. The constructor is collective. Each dispatch is followed by a combine.
class MoeAlltoAll {
 public:
  MoeAlltoAll(const std::shared_ptr<comm::Group>& group, const MoeAlltoAllInit& args);
  /// RuntimeError: twice without a combine.
  MoeA2aReceived dispatch(const TensorView& token_selected_experts, const std::vector<TensorView>& payloads,
                          int64_t runtime_max_tokens_per_rank);
  /// RuntimeError: without a dispatch.
  Tensor combine(const TensorView& payload, int64_t runtime_max_tokens_per_rank);
  /// Rows of a received payload of ids that hold no token become `invalid_expert_id`.
  void sanitize(const TensorView& expert_ids, int64_t invalid_expert_id);

 private:
  MoeAlltoAllInit init_;
  std::shared_ptr<comm::Group> group_;
  Tensor memory_, metainfo_;
  int64_t tokens_ = 0, offset_ = 0;
  bool dispatched_ = false;
};

}  // namespace flashinfer

#pragma GCC visibility pop
