// SPDX-License-Identifier: Apache-2.0
// Many small shapes for the kernels that the case tables compile: every count of rows, lengths and heads that a tile, a warp or a piece
// of 16 bytes does not divide, element types, layouts, seeds. Each is compared with the reference, run twice in order and once under
// another schedule, with given outputs and with padded rows. Compiling is what an emulated suite costs; shapes cost milliseconds.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "flashinfer/cases/run.h"
#include "flashinfer/op/registry.h"
#include "tests/device/sanitized.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};

/// {a|b|c} takes each value; $n is the value that the n-th braces (from 1) have taken. The first value varies slowest.
struct Family {
  const char *op, *args;
};
const Family kFamilies[] = {
    {"rmsnorm", "input=bf16:{1|2|3|7|33}x{576|568|520} weight=bf16:$2"},
    {"rmsnorm", "input=f16:{1|5|9}x{111|97|127|113} weight=f16:$2 eps={1e-6|1e-3}"},
    {"rmsnorm", "input=bf16:{1|4|6}x{576|568}^pad{1|3|8} weight=bf16:$2"},
    {"gemma_rmsnorm", "input=f16:{1|2|3|7|33}x{500|484|492} weight=f16:$2"},
    {"fused_add_rmsnorm", "input=bf16:{1|2|3|7|33}x{576|568|520} residual=bf16:$1x$2 weight=bf16:$2"},
    {"fused_add_rmsnorm", "input=f32:{1|2|5|9}x{111|97|127|113} residual=f32:$1x$2 weight=f32:$2"},
    {"gemma_fused_add_rmsnorm", "input=f32:{1|2|3|7|11}x{500|484|492} residual=f32:$1x$2 weight=f32:$2"},
    {"layernorm", "input=f16:{1|2|3|7|33}x{111|97|103|127} gemma=f32:$2 beta=f32:$2"},
    {"{silu|gelu|gelu_tanh}_and_mul", "input=f16:{1|2|3|7|33}x{222|206|190|10}"},
    {"{silu|gelu|gelu_tanh}_and_mul", "input=bf16:{1|2|5|9}x{3072|1040|16|48|304}"},
    {"apply_rope_pos_ids", "q=bf16:{1|2|3|7}x{1|3|9}x64 k=bf16:$1x{1|3}x64 pos_ids=i32:$1:randint(0,9000)"},
    {"apply_rope_pos_ids_inplace", "q=bf16:{1|2|5|11}x{2|7}x64 k=bf16:$1x{1|2}x64 pos_ids=i64:$1:randint(0,9000)"},
    {"apply_rope_with_cos_sin_cache", "positions=i32:{1|2|5|9}:randint(0,99) query=bf16:$1x{64|192|576} key=bf16:$1x{64|128} head_size=64 "
                                      "cos_sin_cache=f32:100x64:uniform(-1,1)"},
    {"merge_state", "v_a=bf16:{1|2|5|9|33}x{1|3|9}x64 s_a=f32:$1x$2 v_b=bf16:$1x$2x64 s_b=f32:$1x$2:normal(0,{1|30})"},
    {"merge_state_in_place", "v=f16:{1|2|5|40}x{1|3}x64 s=f32:$1x$2 v_other=f16:$1x$2x64 s_other=f32:$1x$2 mask=bool:$1"},
    {"merge_states", "v=bf16:{1|3|5}x{1|2|3|7}x{1|4|9}x64 s=f32:$1x$2x$3"},
    {"softmax", "logits=f32:{1|2|3|9}x{1|2|31|500|511|513|2000} temperature={0.7|1.5}"},
    {"softmax", "logits=f16:{1|3}x{7|111|129|1000} temperature=f32:$1:uniform(0.5,2)"},
    {"softmax", "logits=f32:{1|3|5}x{100|111|640}^pad{1|4|9}"},
    {"sampling_from_probs", "probs=f32:{1|3|8}x{1|63|111|1024|1025|3000}:probs seed={1|5} offset={0|3}"},
    {"sampling_from_probs", "probs={bf16|f16}:{1|5}x{65|111|2047}:probs seed={2|9} offset=1 return_valid=True"},
    {"sampling_from_logits", "logits=f32:{1|3|8}x{1|62|111|1024|4099}:normal(0,{1|3}) seed={1|5} offset={0|3}"},
    {"sampling_from_logits", "logits={bf16|f16}:{2|5}x{64|111|2050} seed={1|7} offset=2"},
    {"top_k_sampling_from_probs", "probs=f32:{1|5}x{64|500|1025|2500}:probs top_k={1|2|40|400} seed={1|3} offset=0"},
    {"top_p_sampling_from_probs", "probs=f32:{1|5}x{64|500|1025|2500}:probs top_p={0.05|0.5|0.97} seed={1|3} offset=0"},
    {"min_p_sampling_from_probs", "probs=f32:{1|5}x{64|500|1025|2500}:probs min_p={0.01|0.2|1.0} seed={1|3} offset=0"},
    {"top_k_top_p_sampling_from_probs", "probs=f32:{1|4}x{64|500|1025|2500}:probs top_k={1|33|300} top_p={0.1|0.9} "
                                        "filter_apply_order='{top_k_first|joint}' seed={1|3} offset=2"},
    {"top_k_top_p_sampling_from_probs", "probs={bf16|f16}:{1|5}x{111|1500}:probs top_k={3|70} top_p={0.3|0.9} seed=4 offset=1"},
    {"top_k_top_p_sampling_from_logits", "logits=f32:{1|4}x{64|500|1025|2500} top_k={1|33|300} top_p={0.1|0.9} "
                                         "filter_apply_order='{top_k_first|joint}' seed={1|3} offset=2"},
    {"top_k_renorm_probs", "probs=f32:{1|4}x{64|500|1025|3000}:probs top_k={1|5|33|500}"},
    {"top_p_renorm_probs", "probs=f32:{1|3}x{64|500|1025}:probs top_p={0.1|0.6|0.99}"},
    {"top_k_mask_logits", "logits=bf16:{1|4}x{64|500|1025|3000} top_k={1|5|33|500}"},
    {"top_k_mask_logits", "logits=f32:{1|3}x{64|999|3000}:randint(-9,9) top_k={1|5|33}"},
    {"append_paged_kv_cache", "append_key=bf16:4x{1|3|5}x64 append_value=bf16:4x$1x64 batch_indices=i32:{[0,0,-1,2]|[2,0,-1,0]|[0,2,2,0]} "
                              "positions=i32:{[3,4,7,5]|[0,1,2,3]|[7,6,1,5]} paged_kv_cache=bf16:6x2x4x$1x64 kv_indices=i32:[5,1,3,0,2] "
                              "kv_indptr=i32:[0,3,3,5] kv_last_page_len=i32:[1,1,2]"},
    {"single_decode_with_kv_cache", "q=bf16:{1|3|9}x64 k=bf16:{1|2|17|63|64|65|130}x$1x64 v=bf16:$2x$1x64 return_lse=True"},
    {"single_decode_with_kv_cache", "q=bf16:{4|8|12}x64 k=bf16:{1|15|64|129|200}x{2|4}x64 v=bf16:$2x$3x64 window_left={-1|9}"},
    {"single_prefill_with_kv_cache", "q=bf16:{1|2|15|17|63|65|70}x{2|6}x64 k=bf16:{71|96|130}x2x64 v=bf16:$3x2x64 causal={True|False} return_lse=True"},
    {"single_prefill_with_kv_cache", "q=bf16:{3|31|33}x4x64 k=bf16:{33|64|81}x{1|2|4}x64 v=bf16:$2x$3x64 causal=True window_left={0|5|40}"},
    {"single_prefill_with_kv_cache", "q=bf16:{5|40}x4x64 k=bf16:2x{41|72}x64 v=bf16:2x$2x64 causal={True|False} kv_layout='HND' logits_soft_cap={2.0|20.0}"},
    {"BatchDecodeWithPagedKVCacheWrapper.run",
     "init.float_workspace_buffer=u8:0 plan.indptr=i32:{[0,3,3,4,6]|[0,1,2,3,6]|[0,2,4,6,6]} plan.indices=i32:{[5,1,3,6,0,2]|[0,0,0,0,0,0]} "
     "plan.q_data_type=bfloat16 plan.last_page_len=i32:{[16,1,1,7]|[1,16,9,5]} plan.num_qo_heads={2|6|8} plan.num_kv_heads=2 plan.head_dim=64 "
     "plan.page_size=16 q=bf16:4x$4x64 paged_kv_cache=bf16:7x2x16x2x64 return_lse=True"},
    {"BatchPrefillWithRaggedKVCacheWrapper.run",
     "init.float_workspace_buffer=u8:0 plan.qo_indptr=i32:{[0,20,23,24,54]|[0,1,2,3,54]|[0,0,17,49,54]} plan.kv_indptr=i32:{[0,48,48,49,72]|[0,1,17,64,72]} "
     "plan.q_data_type=bfloat16 plan.num_qo_heads={2|4|10} plan.num_kv_heads=2 plan.head_dim_qk=64 plan.causal={True|False} "
     "q=bf16:54x$3x64 k=bf16:72x2x64 v=bf16:72x2x64 return_lse=True"},
};

void expand(const std::string& text, std::vector<std::string> taken, std::vector<std::string>& out) {
  const size_t open = text.find('{');
  if (open != text.npos) {
    const size_t close = text.find('}', open);
    for (size_t at = open + 1; at <= close;) {
      const size_t end = std::min(text.find('|', at), close);
      taken.push_back(text.substr(at, end - at));
      expand(text.substr(0, open) + taken.back() + text.substr(close + 1), taken, out);
      taken.pop_back();
      at = end + 1;
    }
    return;
  }
  std::string row;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') row += text[i];
    else row += taken.at(static_cast<size_t>(text[++i] - '1'));
  }
  out.push_back(row);
}
std::vector<std::string> expanded(const char* text) {
  std::vector<std::string> out;
  expand(text, {}, out);
  return out;
}

int supported = 0;
double seconds = 0;
/// Under a sanitizer every fifth shape.
const size_t kStep = sanitized() ? 5 : 1;

class RaggedCases : public testing::TestWithParam<int> {};
TEST_P(RaggedCases, AgreeWithTheReferenceUnderTwoSchedules) {
  const Family& family = kFamilies[GetParam()];
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& name : expanded(family.op)) {
    const op::Op* op = op::find_op(name);
    ASSERT_NE(op, nullptr) << name;
    const std::vector<std::string> rows = expanded(family.args);
    for (size_t i = static_cast<size_t>(GetParam()) % kStep; i < rows.size(); i += kStep) {
      const std::string& args = rows[i];
      const cases::CaseResult r = cases::run_case(*op, {"ragged", args.c_str()}, {.device = kEmu, .seeds = 1});
      EXPECT_TRUE(r.passed) << r.failure << "\n  " << r.repro;
      EXPECT_EQ(r.unsupported, "") << r.repro;
      ++supported;
    }
  }
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
INSTANTIATE_TEST_SUITE_P(Families, RaggedCases, testing::Range(0, static_cast<int>(std::size(kFamilies))), [](const auto& info) {
  std::string name = str(kFamilies[info.param].op, "_", info.param);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(RaggedCasesCount, Expands) {
  EXPECT_EQ(expanded("a{1|2}b{x|y}$1"), (std::vector<std::string>{"a1bx1", "a1by1", "a2bx2", "a2by2"}));
  size_t rows = 0;
  for (const Family& f : kFamilies) rows += expanded(f.op).size() * expanded(f.args).size();
  EXPECT_GE(rows, 1600u);
}

class Printed : public testing::Environment {
 public:
  void TearDown() override {
    if (supported) std::cout << "ragged cases on the emulator: " << supported << " in " << seconds << " s\n";
  }
};
const auto* const environment = testing::AddGlobalTestEnvironment(new Printed);

}  // namespace
}  // namespace flashinfer
