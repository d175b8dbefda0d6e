// SPDX-License-Identifier: Apache-2.0
// Index arrays of linear attention on the emulator with FLASHINFER_CUDA_CHECK_INDICES=1: slots that a pool does not
// have, lengths that decrease or do not end at the tokens. Each is the CPU's error, and no tensor of the call has
// changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "flashinfer/cases/parse.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

/// Argument `name` of a row of the op's cases with other values.
struct Bad {
  const char *op, *row, *name, *values, *message;
};
constexpr Bad kBad[] = {
    {"gated_delta_rule_decode_pretranspose", "pool", "initial_state_indices", "i32:[5,-1,6,2]",
     "initial_state_indices[2] is 6"},
    {"gated_delta_rule_decode_pretranspose", "pool", "output_state_indices", "i32:[5,7,3,-1]",
     "output_state_indices[1] is 7"},
    {"gated_delta_rule_mtp", "f32", "initial_state_indices", "i32:[2,3]", "initial_state_indices[1] is 3"},
    {"gated_delta_rule_mtp", "slots_of_tokens", "ssm_state_indices", "i32:2x3:range(4)",
     "ssm_state_indices[1, 2] is 9"},
    {"gated_delta_rule_replayssm_commit", "layers", "state_indices", "i32:[4,-1,1]", "state_indices[0] is 4"},
    {"gated_delta_rule_replayssm_commit", "layers", "accept_lens", "i32:[3,4,0]", "accept_lens[1] is 4"},
    {"gated_delta_rule_replayssm_commit", "track", "track_state_indices", "i32:[2,4]", "track_state_indices[1] is 4"},
    {"gdn_fused_decode_step", "pool", "state_indices", "i32:[3,-2,4]", "state_indices[2] is 4"},
    {"chunk_gated_delta_rule", "pool", "state_indices", "i64:[3,4]", "state_indices[1] is 4"},
    {"chunk_gated_delta_rule", "pool", "cu_seqlens", "i32:[0,81,80]", "cu_seqlens[2] is 80"},
    {"chunk_gated_delta_rule", "pool", "cu_seqlens", "i32:[0,65,79]", "79"},
    {"chunk_gated_delta_rule2", "bf16", "cu_seqlens", "i32:[0,71,70]", "cu_seqlens[2] is 70"},
    {"chunk_gated_delta_rule2", "bf16", "cu_seqlens", "i32:[0,33,69]", "69"},
    {"chunk_gated_delta_product", "one", "cu_seqlens", "i32:[0,71,70]", "cu_seqlens[2] is 70"},
    {"kda_recurrence", "decode", "read_indices", "i32:[5,-1,0]", "read_indices[0] is 5"},
    {"kda_recurrence", "decode", "cu_seqlens", "i32:[0,2,1,3]", "cu_seqlens[2] is 1"},
    {"kda_recurrence", "bounded", "write_indices", "i32:[3,-1]", "write_indices[0] is 3"},
    {"kda_recurrence", "draft", "after_indices", "i32:[3,-1,4,5,6,9]", "after_indices[5] is 9"},
    {"fused_kda_decode", "f32", "state_indices", "i32:[4,0,5,4]", "state_indices[2] is 5"},
    {"packed_fused_kda_decode", "draft", "state_indices", "i32:4x3:range(2)", "state_indices[3, 2] is 13"},
    {"packed_fused_kda_decode", "draft", "query_start_loc", "i32:[0,3,2,5,6]", "query_start_loc[2] is 2"},
    {"packed_fused_kda_decode", "draft", "query_start_loc", "i32:[0,3,3,5,9]", "query_start_loc"},
    {"packed_fused_kda_decode", "t1", "t1_state_indices", "i32:[3,0,4]", "t1_state_indices"},
    {"selective_state_update", "slots", "state_batch_indices", "i32:[4,-1,5]", "state_batch_indices[2] is 5"},
    {"selective_state_update", "dst", "dst_state_batch_indices", "i32:[2,-1,5]", "dst_state_batch_indices[2] is 5"},
    {"selective_state_update", "several_dst", "state_batch_indices", "i32:2x4:range(2)",
     "state_batch_indices[1, 3] is 9"},
    {"selective_state_update", "several_dst", "dst_state_batch_indices", "i32:2x3:range(4)",
     "dst_state_batch_indices[1, 2] is 9"},
    {"selective_state_update", "several_cached", "intermediate_state_indices", "i64:[4,0]",
     "intermediate_state_indices[0] is 4"},
    {"selective_state_update", "packed", "cu_seqlens", "i32:[0,1,0,36,41]", "cu_seqlens[2] is 0"},
    {"selective_state_update", "packed", "cu_seqlens", "i32:[0,1,1,30,40]", "cu_seqlens ends at 40"},
    {"checkpointing_ssu", "bf16", "state_batch_indices", "i32:[5,-1,1]", "state_batch_indices[0] is 5"},
    {"checkpointing_ssu", "bf16", "ring_start", "i32:[3,12,0,7,9]", "ring_start[1] is 12"},
    {"checkpointing_ssu", "bf16", "prev_num_accepted_tokens", "i32:[0,9,3,8,4]", "prev_num_accepted_tokens[1] is 9"},
    {"checkpointing_ssu", "packed", "cu_seqlens", "i32:[0,3,2,6]", "cu_seqlens[2] is 2"},
    {"replayssm_materialize_layer", "f32", "src_slots", "i64:[0,4]", "src_slots has 4"},
    {"replayssm_materialize_layer", "f32", "dst_slots", "i64:[4,2]", "dst_slots has 4"},
    {"ssd_chunk_scan", "packed", "cu_seqlens", "i32:[0,67,1,66,140]", "cu_seqlens[2] is 1"},
    {"ssd_chunk_scan", "packed", "cu_seqlens", "i32:[0,1,1,66,139]", "cu_seqlens ends at 139"},
    {"ssd_chunk_scan", "packed", "checkpoint_state_slots", "i32:[3,0,1,0]", "checkpoint_state_slots[0] is 3"},
    {"ssd_chunk_scan", "packed", "checkpoint_token_indices", "i32:[0,-1,65,141]", "checkpoint_token_indices[3] is 141"},
    {"causal_conv1d_fn", "packed", "cache_indices", "i32:[5,0,-1,1]", "cache_indices[0] is 5"},
    {"causal_conv1d_fn", "packed", "query_start_loc", "i32:[0,2,1,133,150]", "query_start_loc[2] is 1"},
    {"causal_conv1d_fn", "packed", "query_start_loc", "i32:[0,2,2,133,149]", "query_start_loc ends at 149"},
    {"causal_conv1d_update", "decode", "conv_state_indices", "i32:[6,-1,0,2]", "conv_state_indices[0] is 6"},
    {"causal_conv1d_update", "accepted", "num_accepted_tokens", "i32:[0,2,5]", "num_accepted_tokens[2] is 5"},
    {"causal_conv1d_update", "ring", "cache_seqlens", "i32:[0,-4,13]", "cache_seqlens[1] is -4"},
};

class LinearIndices : public testing::Test {
 protected:
  void SetUp() override { ::setenv("FLASHINFER_CUDA_CHECK_INDICES", "1", 1), env::reload(); }
  void TearDown() override { ::unsetenv("FLASHINFER_CUDA_CHECK_INDICES"), env::reload(); }
};

std::string with(std::string text, const Bad& bad) {
  const std::string name = std::string(bad.name) + "=";
  const size_t at = (" " + text).find(" " + name);
  EXPECT_NE(at, std::string::npos) << bad.op << " " << bad.row << " has no " << bad.name;
  if (at == std::string::npos) return text;
  const size_t end = text.find(' ', at);
  return text.replace(at, end == std::string::npos ? end : end - at, name + bad.values);
}
bool unchanged(const cases::GuardedTensor& t) {
  return std::equal(t.before.begin(), t.before.end(), t.allocation.data_as<uint8_t>());
}

TEST_F(LinearIndices, AreCheckedBeforeAnythingIsWritten) {
  for (const Bad& bad : kBad) {
    const op::Op* const op = op::find_op(bad.op);
    ASSERT_TRUE(op) << bad.op;
    const auto rows = op->cases();
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const op::Case& c) { return c.name == std::string(bad.row); });
    if (row == rows.end()) {
      ADD_FAILURE() << bad.op << " " << bad.row;
      continue;
    }
    cases::Built b = cases::build(*op, with(std::string(row->args), bad), {.device = {DeviceType::kEmu, 0}});
    try {
      op::run(*op, b.block.data());
      ADD_FAILURE() << bad.op << ": " << bad.name << "=" << bad.values << " was taken";
    } catch (const ValueError& e) {
      EXPECT_NE(std::string(e.what()).find(bad.message), std::string::npos)
          << bad.op << " " << bad.name << ": " << e.what();
    }
    for (const auto& t : b.tensors) EXPECT_TRUE(unchanged(*t)) << bad.op << " has changed " << t->argument;
  }
}

}  // namespace
}  // namespace flashinfer
