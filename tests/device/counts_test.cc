// SPDX-License-Identifier: Apache-2.0
// The memory traffic of the kernels, beside the least that the call needs: a kernel whose layout gets worse fails here,
// without a GPU. `flashinfer bench --device emu --counts` prints the same for any call.
#include <gtest/gtest.h>

#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>

#include "flashinfer/bench/bench.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/op/registry.h"
#include "test_paths.h"

namespace flashinfer {
namespace {

/// `cached`: sectors beyond the call's own bytes that every block reads again and finds in L1 or L2 (weights, tables,
/// indices). `table`: text of the line in `file` whose requests are no full sectors because they read such a table;
/// empty: none may be.
struct Row {
  const char *name, *op, *args;
  uint64_t cached;
  const char *file = "", *table = "";
};
/// "cuda/rope.cuh:28 ", as counts name the line of flashinfer/ops/<file> that holds `text`; empty: none does.
std::string where(const std::string& file, const char* text) {
  std::ifstream in(FI_TEST_SOURCE_ROOT "/flashinfer/ops/" + file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number)
    if (line.find(text) != std::string::npos) return str(file.substr(file.rfind("/cuda/") + 1), ":", number, " ");
  return "";
}
const Row kRows[] = {
    {"norm", "rmsnorm", "input=bf16:64x4096 weight=bf16:4096", 64 * 4096 * 2 / 32},
    {"fused_add_norm", "fused_add_rmsnorm", "input=bf16:16x4096 residual=bf16:16x4096 weight=bf16:4096",
     16 * 4096 * 2 / 32},
    {"activation", "silu_and_mul", "input=bf16:16x3072", 0},
    {"rope", "apply_rope_pos_ids_inplace", "q=bf16:16x32x128 k=bf16:16x8x128 pos_ids=i32:16:range(0)", 4096 + 64,
     "rope/kernels/cuda/rope.cuh", "cos_sin(static_cast<double>(position) * p.frequency[i]"},
    {"append", "append_paged_kv_cache",
     "append_key=bf16:8x8x128 append_value=bf16:8x8x128 batch_indices=i32:[0,0,0,0,0,0,0,0] "
     "positions=i32:[0,1,2,3,4,5,6,7] "
     "paged_kv_cache=bf16:6x2x16x8x128 kv_indices=i32:[5,1,3,0,2] kv_indptr=i32:[0,5] kv_last_page_len=i32:[1]",
     160},
    // Quantisers: rows, codes and scale factors in full sectors. A global scale that is a tensor is a sector for each
    // warp.
    {"nvfp4", "nvfp4_quantize", "a=bf16:256x1024 a_global_sf=600.0", 0},
    {"mxfp8", "mxfp8_quantize", "input=bf16:128x1024", 0},
    {"mxfp8_dequantize", "mxfp8_dequantize_host", "input=e4m3:128x256 scale_tensor=u8:1024:const(127)", 0},
    {"group8", "per_token_group_quant_8bit", "x=bf16:64x1024 group_size=128", 0},
    {"nvfp4_rows", "nvfp4_kv_quantize", "input=bf16:64x1024 global_scale=f32:[0.01]", 128},
    {"nvfp4_into", "nvfp4_quantize_into", "input=bf16:256x8x128 global_scale=300 data=u8:256x8x64 scale=e4m3:256x64",
     0},
    // A whole cache, V's scales interleaved: each warp reads the scale of its tensor, which the first launch writes.
    {"nvfp4_cache", "nvfp4_quantize_paged_kv_cache",
     "k_cache=bf16:8x4x16x128 v_cache=bf16:8x4x16x128 k_global_sf=f32:[100] v_global_sf=f32:[3]", 256 + 4},
    // And a read more of K and V, for their largest magnitudes, in 8 parts each.
    {"nvfp4_cache_amax", "nvfp4_quantize_paged_kv_cache", "k_cache=bf16:8x4x16x128 v_cache=bf16:8x4x16x128",
     2 * 65536 * 2 / 32 + 256 + 2 * (8 + 1 + 1)},
    {"gguf_q8_0", "gguf_dequantize", "blocks=u8:16x3400:Q8_0 format='Q8_0' out_dtype=bfloat16", 0},
    {"gguf_q4_1", "gguf_dequantize", "blocks=u8:16x2560:Q4_1 format='Q4_1' out_dtype=bfloat16", 0},
    {"gguf_q4_k", "gguf_dequantize", "blocks=u8:4x4608:Q4_K format='Q4_K' out_dtype=bfloat16", 0},
    {"gguf_q6_k", "gguf_dequantize", "blocks=u8:4x6720:Q6_K format='Q6_K' out_dtype=bfloat16", 0},
    {"scale_tiles", "nvfp4_block_scale_interleave", "unswizzled_sf=u8:256x128:const(3)", 0},
    {"norm_fp8", "rmsnorm_quant", "out=e4m3:16x4096 input=bf16:16x4096 weight=bf16:4096 scale=1.0", 16 * 4096 * 2 / 32},
    {"concat_quant", "concat_mla_kv_quant_fp8", "kv_nope=bf16:8x16x256 k_pe=bf16:8x64", 8 * 15 * 4},  // k_pe, a head
    // Softmax: one read, rows in shared memory, of one block and of clusters of 2 and 8.
    {"softmax", "softmax", "logits=f32:4x8192", 0},
    {"softmax_2", "softmax", "logits=f32:4x16384", 0},
    {"softmax_8", "softmax", "logits=bf16:1x131072", 0},
    // Keys and values of selected blocks once; queries and results beside them, and what every warp reads: the list,
    // and where its row's keys begin. Scores: queries for each block of keys.
    {"msa_decode", "msa_sparse_decode_attention",
     "q=bf16:1x16x128 k=bf16:512x1x128 v=bf16:512x1x128 q2k_indices=i32:1x1x4:range(0) cu_seqlens_k=i32:[0,512]", 340},
    {"msa_score", "msa_proxy_score",
     "q=bf16:1x16x128 k=bf16:512x1x128 cu_seqlens_q=i32:[0,1] cu_seqlens_k=i32:[0,512] causal=False", 624},
    // The delta rule: states once each way, whatever the number of tokens. A warp loads for itself, of each token, 8 +
    // 8 sectors of q and k (16 + 16 of V-innermost states: element by element), 4 of v, 4 of gates, and stores its
    // results.
    {"gdn_mtp", "gated_delta_rule_mtp",
     "q=bf16:1x4x1x128 k=bf16:1x4x1x128 v=bf16:1x4x2x128 initial_state=bf16:2x2x128x128 initial_state_indices=i32:[1] "
     "A_log=f32:2 a=bf16:1x4x2 dt_bias=f32:2 b=bf16:1x4x2 disable_state_update=False",
     32 * (4 * 25 + 2) - 192},
    {"gdn_columns", "gated_delta_rule_decode",
     "q=bf16:1x1x1x128 k=bf16:1x1x1x128 v=bf16:1x1x2x128 state=f32:1x2x128x128 A_log=f32:2 a=bf16:1x1x2 dt_bias=f32:2 "
     "b=bf16:1x1x2",
     16 * 44 - 48},
    // Gates, convolution and step: two launches. The gates' sums are read by each warp of the step, the filter once a
    // row of the batch.
    {"gdn_fused", "gdn_fused_decode_step",
     "hidden_states=bf16:1x64 w_ba=bf16:64x16 mixed_qkv=bf16:1x1280 conv_weight=bf16:1280x4 conv_bias=None "
     "conv_state=bf16:2x1280x3^t A_log=f32:8 dt_bias=f32:8 scale=None ssm_state=f32:2x8x128x128 state_indices=i32:[1]",
     7677},
    {"kda", "kda_recurrence",
     "q=bf16:2x1x128 k=bf16:2x1x128 v=bf16:2x2x128 g=bf16:2x2x128 beta=bf16:2x2 cu_seqlens=i32:[0,1,2] "
     "state=bf16:2x2x128x128",
     64 * 30 + 160 - 128},
    // The same, frozen, with caches: states are read alone, corrections and inputs stored once.
    {"kda_caches", "kda_recurrence",
     "q=bf16:2x1x128 k=bf16:2x1x128 v=bf16:2x2x128 g=bf16:2x2x128 beta=bf16:2x2 cu_seqlens=i32:[0,1,2] "
     "state=bf16:2x2x128x128 disable_state_update=True correction_cache=f32:2x2x1x128 kg_cache=bf16:2x2x1x256",
     1952},
    // The fused steps: slots, convolution, recurrence, norm. Each of 128 warps of the recurrence (64 of drafts) reads 8
    // sectors of each of a token's q, k, g, and 16 + 4 of dt_bias and A_log. Of two drafts one state is read and two
    // are written, 4,096 sectors less than the least.
    {"kda_fused", "fused_kda_decode",
     "x=bf16:2x768 weight=f32:3x4x256 conv_state=bf16:3x768x3^t raw_gate=bf16:1x2x2x128 raw_beta=bf16:1x2x2 "
     "A_log=f32:2 "
     "dt_bias=f32:256 state_indices=i32:[1,2] state=f32:3x2x128x128 output_gate=bf16:2x2x128 norm_weight=f32:128",
     7799},
    {"kda_fused_drafts", "packed_fused_kda_decode",
     "x=bf16:2x768 weight=f32:3x4x256 conv_state=bf16:3x768x4^t raw_gate=bf16:1x2x2x128 raw_beta=bf16:1x2x2 "
     "A_log=f32:2 "
     "dt_bias=f32:256 state_indices=i32:1x2:range(1) state=f32:3x2x128x128 output_gate=bf16:2x2x128 "
     "norm_weight=f32:128 "
     "query_start_loc=i32:[0,2] num_accepted_tokens=i32:[1]",
     2901},
    {"selective_state_update", "selective_state_update",
     "state=bf16:2x2x64x128 x=bf16:2x2x64 dt=bf16:2x2x1 A=f32:2x1x1:uniform(-8,-0.1) B=bf16:2x1x128 C=bf16:2x1x128 "
     "D=bf16:2x1 dt_bias=f32:2x1 dt_softplus=True",
     32 * (8 + 8 + 12) - 64},
    // The commit of a replay cache: each of 64 warps reads two indices and, of each accepted token, 8 sectors of k, 4
    // of v, the decay and beta. A ring of draft tokens, two of which are replayed and their state stored: rows of all
    // four tokens for each of 32 warps, and those of the ring that the new ones go to.
    {"gdn_commit", "gated_delta_rule_replayssm_commit",
     "checkpoint_state=f32:1x2x2x128x128 rawv_cache=bf16:1x2x2x2x128 rawk_cache=bf16:1x2x1x2x128 "
     "g_cache=f32:1x2x2x2:uniform(-1,0) beta_cache=f32:1x2x2x2:uniform(0,1) state_indices=i32:[1] accept_lens=i32:[2]",
     64 * (2 + 2 * 14)},
    {"checkpointing_ssu", "checkpointing_ssu",
     "state=bf16:2x2x64x128 x_cache=bf16:2x2x4x64 B_cache=bf16:2x1x4x128 dt_cache=f32:2x2x4:uniform(0,1) "
     "ring_start=i32:[0,1] prev_num_accepted_tokens=i32:[2,2] x=bf16:2x2x2x64 dt=bf16:2x2x2x1 "
     "A=f32:2x1x1:uniform(-8,-0.1) B=bf16:2x2x1x128 C=bf16:2x2x1x128",
     2536},
    // The state after two rows of a ring: each of 16 warps reads 8 + 4 + 2 sectors of B, x, dt and A a row, and
    // indices.
    {"materialize", "replayssm_materialize_layer",
     "state=bf16:2x2x64x128 x_cache=bf16:2x2x4x64 B_cache=bf16:2x1x4x128 dt_cache=f32:2x2x4:uniform(0,1) "
     "A=f32:2:uniform(-4,-0.1) src_slots=i32:[0] dst_slots=i32:[1] ring_start=i32:[3] replay_prefix_len=i32:[2]",
     16 * (2 * 14 + 4)},
    // A thread reads its filter and bias, and three inputs before its 16 tokens.
    {"conv", "causal_conv1d_fn", "x=bf16:1x512x64^t weight=bf16:512x4 bias=bf16:512 activation='silu'",
     4 * (128 + 32) + 3 * 3 * 32},
    // Filter and bias are read once a row of the batch; inputs that become states, by the thread that stores them,
    // again.
    {"conv_update", "causal_conv1d_update",
     "x=bf16:4x512 conv_state=bf16:4x512x3^t weight=bf16:512x4 bias=bf16:512 activation='silu'",
     4 * (128 + 32) + 4 * (64 + 32)},
    // By chunks: states once each way, inputs once; indices of all blocks, and dt and beta, beyond that.
    {"kda_chunk", "kda_recurrence",
     "q=bf16:48x1x128 k=bf16:48x1x128 v=bf16:48x1x64 g=bf16:48x1x128:uniform(-2,0) beta=bf16:48x1:uniform(0,1) "
     "cu_seqlens=i32:[0,48] state=f32:1x1x64x128",
     48 + 11},
    {"gdn_chunk", "chunk_gated_delta_rule",
     "q=bf16:130x1x128 k=bf16:130x1x128 v=bf16:130x1x64 g=f32:130x1:uniform(0.9,1) beta=f32:130x1:uniform(0,1) "
     "cu_seqlens=i32:[0,130] initial_state=f32:1x1x64x128 output_final_state=True use_qk_l2norm_in_kernel=True",
     8},
    {"gdn_channels", "chunk_gated_delta_rule2",
     "q=bf16:48x1x128 k=bf16:48x1x128 v=bf16:48x1x64 g=f32:48x1x128:uniform(-2,0) beta=bf16:48x1x128 w=bf16:48x1x64 "
     "cu_seqlens=i32:[0,48] initial_state=f32:1x1x64x128 output_final_state=True use_qk_l2norm_in_kernel=True",
     2},
    {"ssd", "ssd_chunk_scan",
     "x=bf16:1x130x1x64 dt=f32:1x130x1 A=f32:1:uniform(-4,-0.05) B=bf16:1x130x1x128 C=bf16:1x130x1x128 D=f32:1 "
     "z=bf16:1x130x1x64 dt_softplus=True state_dtype=float32 initial_states=f32:1x1x64x128",
     8},
    // Latent attention: keys once for logits and values.
    {"mla", "BatchMLAPagedAttentionWrapper.run",
     "init.float_workspace_buffer=u8:0 plan.qo_indptr=i32:[0,1] plan.kv_indptr=i32:[0,16] plan.kv_indices=i32:16:perm "
     "plan.kv_len_arr=i32:[256] plan.num_heads=16 plan.head_dim_ckv=512 plan.head_dim_kpe=64 plan.page_size=16 "
     "plan.causal=True plan.sm_scale=0.07 plan.q_data_type=bfloat16 plan.kv_data_type=bfloat16 q_nope=bf16:1x16x512 "
     "q_pe=bf16:1x16x64 ckv_cache=bf16:16x16x512 kpe_cache=bf16:16x16x64",
     0},
    // Two chunks of 256 keys: their partial results are written and read once more, 32 rows of 128 floats each; the
    // queries of the second chunk; and what each of 16 x 4 warps reads of its tile and request, whatever the number of
    // keys: 8 sectors, and 4 for the merge.
    {"decode", "single_decode_with_kv_cache", "q=bf16:32x128 k=bf16:512x8x128 v=bf16:512x8x128",
     2 * 2 * 32 * 128 * 4 / 32 + 32 * 128 * 2 / 32 + 16 * 4 * 12},
    {"decode_e4m3", "single_decode_with_kv_cache", "q=bf16:32x128 k=e4m3:512x8x128 v=e4m3:512x8x128",
     2 * 2 * 32 * 128 * 4 / 32 + 32 * 128 * 2 / 32 + 16 * 4 * 8},
    // Two blocks share the columns of V: queries, keys and what a warp reads of its tile twice.
    {"decode_d512", "single_decode_with_kv_cache", "q=bf16:16x512 k=bf16:256x2x512 v=bf16:256x2x512",
     16 * 512 * 2 / 32 + 256 * 2 * 512 * 2 / 32},
    {"decode_nvfp4", "single_prefill_with_kv_cache",
     "q=bf16:1x32x128 k=u8:8x512x64 v=u8:8x512x64 "
     "kv_cache_sf=(e4m3:8x512x8:uniform(0.1,2),e4m3:8x512x8:uniform(0.1,2)) "
     "kv_layout='HND'",
     2 * 2 * 32 * 128 * 4 / 32 + 32 * 128 * 2 / 32 + 16 * 4 * 12},
};

class CountsTest : public testing::TestWithParam<Row> {};
TEST_P(CountsTest, FullSectorsLeastBytesNoConflicts) {
  const Row& row = GetParam();
  const bench::CountedRow r = bench::count(*op::find_op(row.op), {row.name, row.args});
  const std::string table = *row.table ? where(row.file, row.table) : "";
  ASSERT_EQ(table.empty(), *row.table == '\0') << row.file << " has no line with " << row.table;
  uint64_t sectors = 0;
  ASSERT_FALSE(r.launches.empty());
  for (const jit::EmulatedLaunch& l : r.launches)
    sectors += l.counts->global_load_sectors + l.counts->global_store_sectors;
  for (const jit::EmulatedLaunch& l : r.launches) {
    const emu::Counts& n = *l.counts;
    EXPECT_EQ(n.bank_conflicts(), 0u) << n.text();
    for (const emu::LineCount& c : n.lines) {  // a block's few words of description may straddle two
      if (c.shared || c.units * 100 < sectors || (!table.empty() && c.where.starts_with(table))) continue;
      EXPECT_EQ(c.units, c.least) << c.where << "\n" << n.text();
    }
  }
  const double moved = static_cast<double>(sectors - std::min(sectors, row.cached)) * 32;
  std::cout << std::left << std::setw(16) << row.name << std::right << " least " << r.least_bytes << " bytes, moved "
            << moved << " (" << moved / r.least_bytes << "), found in a cache " << row.cached * 32 << "\n";
  EXPECT_LE(moved, r.least_bytes * 1.02);
  EXPECT_GE(moved, r.least_bytes * 0.98) << "the least is wrong, or what is cached";
}
INSTANTIATE_TEST_SUITE_P(Kernels, CountsTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

/// A row of 656 bytes begins at half a sector every second time, and lies in 21 of them; of those the part behind the
/// codes shares one with the codes, which the cache has by then.
TEST(Counts, PackedRowsOfALatentCacheMoveOnce) {
  constexpr uint64_t kKeys = 256, kHeads = 16;
  const bench::CountedRow r = bench::count(
      *op::find_op("trtllm_batch_decode_with_kv_cache_mla"),
      {"packed",
       "workspace_buffer=u8:0 qk_nope_head_dim=128 kv_lora_rank=512 qk_rope_head_dim=64 block_tables=i32:1x1x256:perm "
       "seq_lens=i32:[256] max_seq_len=256 sparse_mla_top_k=256 query=bf16:1x1x16x576 "
       "kv_cache=u8:256x1x656:packed_mla(0.001,0.01) bmm1_scale=0.04"});
  ASSERT_EQ(r.launches.size(), 1u);
  const emu::Counts& n = *r.launches[0].counts;
  EXPECT_EQ(n.bank_conflicts(), 0u) << n.text();
  const uint64_t moved = n.global_load_sectors + n.global_store_sectors,
                 least = kKeys * 21 + kHeads * (576 + 512) * 2 / 32, shared = kKeys;
  std::cout << "least " << least * 32 << " bytes, moved " << moved * 32 << "\n";
  EXPECT_LE(moved - shared, least + least / 50);
  EXPECT_GE(moved - shared, least - least / 50);
}

/// Q is read once, K and V once by each tile of 128 query rows that sees them; the main loop has no bank conflict.
TEST(Counts, PrefillHasNoBankConflicts) {
  const bench::CountedRow r =
      bench::count(*op::find_op("single_prefill_with_kv_cache"),
                   {"causal", "q=bf16:256x4x128 k=bf16:256x1x128 v=bf16:256x1x128 causal=True"});
  ASSERT_EQ(r.launches.size(), 1u);
  const emu::Counts& n = *r.launches[0].counts;
  EXPECT_EQ(n.bank_conflicts(), 0u) << n.text();
  EXPECT_GT(n.mma, 0u);
  const uint64_t tiles = r.launches[0].launch.grid[0], q_and_out = 2 * 256 * 4 * 128 * 2;
  uint64_t keys = 0;  // K and V that the causal tiles see, in steps of 64 keys
  for (uint64_t t = 0; t < tiles; ++t) keys += round_up((t + 1) * 256 / tiles, 64);
  const uint64_t moved = (n.global_load_sectors + n.global_store_sectors) * 32, least = q_and_out + keys * 2 * 128 * 2;
  std::cout << "prefill: " << tiles << " tiles, moved " << moved << " of " << least << " bytes\n";
  EXPECT_LE(static_cast<double>(moved), static_cast<double>(least) * 1.02);
}

/// What is between the products of a mixture of experts: 32 tokens of 256 channels, 4 of 8 experts each, 256 channels
/// between the products. Rows of f32 are read once, results are written once; besides, each warp reads a few words
/// about its row (`cached` sectors).
TEST(Counts, BetweenTheProductsOfExpertsRowsMoveOnce) {
  const bench::CountedRow r =
      bench::count(*op::find_op("cutlass_fused_moe"),
                   {"experts",
                    "input=bf16:32x256 token_selected_experts=i32:32x4:randint(0,8) token_final_scales=f32:32x4 "
                    "fc1_expert_weights=bf16:8x512x256:normal(0,0.1) fc2_expert_weights=bf16:8x256x256:normal(0,0.1) "
                    "output_dtype=bfloat16 quant_scales=None"});
  constexpr uint64_t kRows = 32 * 4, kWarps = 256 / 32;
  const std::map<std::string, std::pair<uint64_t, uint64_t>> least = {
      // number and place of an expert, twice
      {"moe.moe_choices", {4 * kRows * 4 / 32, 0}},
      // product 1 in f32, both halves; bf16. An offset, an expert and an entry.
      {"moe.moe_activate", {kRows * (512 * 4 + 256 * 2) / 32, 3 * kRows * kWarps}},
      // product 2 in f32; bf16. A row, an expert and a weight.
      {"moe.moe_sum", {(kRows * 256 * 4 + 32 * 256 * 2) / 32, 3 * kRows * kWarps}},
  };
  size_t found = 0;
  for (const jit::EmulatedLaunch& l : r.launches) {
    EXPECT_EQ(l.counts->bank_conflicts(), 0u) << l.kernel << "\n" << l.counts->text();
    const auto row = least.find(l.kernel.substr(0, l.kernel.find('{')));
    if (row == least.end()) continue;
    const auto& [bytes, cached] = row->second;
    const uint64_t moved = l.counts->global_load_sectors + l.counts->global_store_sectors;
    std::cout << std::left << std::setw(16) << row->first << std::right << " least " << bytes * 32 << " bytes, moved "
              << (moved - cached) * 32 << ", found in a cache " << cached * 32 << "\n";
    EXPECT_EQ(moved, bytes + cached) << row->first << "\n" << l.counts->text();
    ++found;
  }
  EXPECT_EQ(found, least.size());
}

/// A chunk's products, its system and the state in two parts.
TEST(Counts, ChunksOfTheDeltaRuleHaveNoBankConflicts) {
  for (const char* width : {"64", "128"}) {
    const std::string k = str("bf16:70x1x", width);
    const std::string rule = str("q=", k, " k=", k,
                                 " v=bf16:70x1x64 cu_seqlens=i32:[0,70] beta=f32:70x1:uniform(0,1) "
                                 "use_qk_l2norm_in_kernel=True");
    const std::string channels = str("q=", k, " k=", k, " v=bf16:70x1x64 g=", k,
                                     ":uniform(-2,0) beta=bf16:70x1:uniform(0,1) cu_seqlens=i32:[0,70]");
    for (const auto& [op, args] :
         {std::pair("chunk_gated_delta_rule", &rule), std::pair("kda_recurrence", &channels)}) {
      const bench::CountedRow r = bench::count(*op::find_op(op), {"chunk", args->c_str()});
      ASSERT_FALSE(r.launches.empty());
      const emu::Counts& last = *r.launches.back().counts;
      EXPECT_EQ(last.bank_conflicts(), 0u) << last.text();
      EXPECT_GT(last.mma, 0u) << op;
    }
  }
}

}  // namespace
}  // namespace flashinfer
