// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/sampling/cases.h"

namespace flashinfer::ops::sampling {
namespace {
constexpr op::Case kLogits[] = {
    {"batch", "logits=f32:5x49152:normal(0,3) seed=42 offset=0", "cpu", op::kAot | op::kBench},
    {"bf16_odd", "logits=bf16:5x8193:normal(0,2) seed=7 offset=12", "cpu", op::kAot},
    {"f16_even", "logits=f16:5x110 seed=7 offset=13", "cpu", op::kAot},
    {"offset_across_counters", "logits=f32:5x112 seed=7 offset=3"},
    {"one_long_row", "logits=f32:1x70000 seed=1 offset=4"},
    {"indices", "logits=f32:3x500 indices=i64:[2,2,0,1,2] seed=1 offset=4"},
    {"own_seeds", "logits=f32:3x500 seed=i64:[5,6,5] offset=i64:[0,0,8]"},
    {"generator", "logits=f32:4x111 generator=gen(99,3)"},
    {"masked", "logits=f32:2x500:const(-inf) seed=1 offset=0"},
    {"nan", "logits=f32:2x500:nan seed=1 offset=0"},
    {"equal", "logits=f32:9x64:const(0) seed=1 offset=0"},
    {"strided", "logits=f32:5x111^pad9 seed=1 offset=2"},
    {"one_token", "logits=f32:3x1 seed=1 offset=0"},
    {"no_rows", "logits=f32:0x111 seed=1 offset=2"},
};
constexpr op::Case kTopK[] = {
    {"batch", "probs=f32:9x20000:probs top_k=50 seed=42 offset=0"},
    {"bf16", "probs=bf16:5x500:probs top_k=20 seed=7 offset=12 return_valid=True"},
    {"per_row", "probs=f32:4x500:probs top_k=i32:[1,5,500,0] indices=i32:[3,2,1,0,0] seed=5 offset=0"},
    {"ties", "probs=f32:20x64:const(0.015625) top_k=3 seed=1 offset=0"},
    {"nan", "probs=f32:4x111:nan top_k=9 seed=1 offset=0 return_valid=True"},
    {"no_rows", "probs=f32:0x111 top_k=9 seed=1 offset=0"},
};
constexpr op::Case kTopP[] = {
    {"batch", "probs=f32:9x20000:probs top_p=0.9 seed=42 offset=0", "cpu", op::kBench},
    {"few", "probs=f32:9x20000:probs top_p=0.01 seed=42 offset=0"},
    {"f16", "probs=f16:5x111:probs top_p=0.5 seed=7 offset=12 return_valid=True"},
    {"per_row", "probs=f32:4x500:probs top_p=f32:[0.9,0.1,1,0] indices=i64:[3,2,1,0,0] seed=5 offset=0"},
    {"generator", "probs=f32:4x111:probs top_p=0.9 generator=gen(99,3)"},
    {"nothing_positive", "probs=f32:4x111:const(0) top_p=0.9 seed=1 offset=0 return_valid=True"},
    {"no_rows", "probs=f32:0x111 top_p=0.9 seed=1 offset=0"},
};
constexpr op::Case kMinP[] = {
    {"batch", "probs=f32:9x20000:probs min_p=0.1 seed=42 offset=0"},
    {"bf16", "probs=bf16:5x500:probs min_p=0.5 seed=7 offset=12 return_valid=True"},
    {"per_row", "probs=f32:4x500:probs min_p=f32:[0.9,0.1,1,0] indices=i64:[3,2,1,0,0] seed=5 offset=0"},
    {"ties", "probs=f32:20x64:const(0.015625) min_p=1.0 seed=1 offset=0"},
    {"negative_ignored", "probs=f32:6x200:normal(0,0.1) min_p=0.0 seed=1 offset=0"},
    {"nan", "probs=f32:4x111:nan min_p=0.5 seed=1 offset=0 return_valid=True"},
    {"no_rows", "probs=f32:0x111 min_p=0.5 seed=1 offset=0"},
};
constexpr op::Case kTopKTopPLogits[] = {
    {"batch", "logits=f32:9x49152:normal(0,3) top_k=50 top_p=0.9 seed=42 offset=0", "cpu", op::kBench},
    {"joint", "logits=f32:9x8193:normal(0,3) top_k=50 top_p=0.5 filter_apply_order='joint' seed=42 offset=0"},
    {"bf16", "logits=bf16:5x500 top_k=20 top_p=0.5 seed=7 offset=12"},
    {"f16", "logits=f16:5x111 top_k=0 top_p=0.8 seed=7 offset=12"},
    {"p_off", "logits=f32:5x500 top_k=7 top_p=1.0 seed=7 offset=12"},
    {"argmax", "logits=f32:5x500:randint(0,9) top_k=3 top_p=0.0 seed=7 offset=12"},
    {"per_row", "logits=f32:4x500 top_k=i32:[1,5,500,0] top_p=f32:[0.9,0.1,0.5,1] indices=i32:[3,2,1,0,0] seed=5 offset=0"},
    {"one_long_row", "logits=f32:1x70001 top_k=64 top_p=0.8 seed=42 offset=0"},
    {"masked", "logits=f32:2x500:const(-inf) top_k=9 top_p=0.8 seed=1 offset=0"},
    {"nan", "logits=f32:2x500:nan top_k=9 top_p=0.8 seed=1 offset=0"},
    {"generator", "logits=f32:4x111 top_k=9 top_p=0.9 generator=gen(99,3)"},
    {"no_rows", "logits=f32:0x111 top_k=9 top_p=0.9 seed=1 offset=0"},
};
constexpr op::Case kTopPRenorm[] = {
    {"batch", "probs=f32:4x49152:probs top_p=0.9", "cpu", op::kAot | op::kBench},
    {"half", "probs=f32:3x8193:probs top_p=0.5"},
    {"bf16", "probs=bf16:3x500:probs top_p=0.7", "cpu", op::kAot},
    {"f16", "probs=f16:3x111:probs top_p=f64:[0.2,1,0]", "cpu", op::kAot},
    {"ties", "probs=f32:3x64:const(0.015625) top_p=0.3"},
    {"ties_long", "probs=f32:2x4096:const(0.000244140625) top_p=0.3"},
    {"nothing_positive", "probs=f32:3x500:const(0) top_p=0.3"},
    {"nan", "probs=f32:3x500:nan top_p=0.3"},
    {"infinite", "probs=f32:3x500:const(inf) top_p=0.3"},
    {"negative_ignored", "probs=f32:3x2000:normal(0,0.01) top_p=0.3"},
    {"strided", "probs=f32:3x111:probs^pad9 top_p=0.4 renorm_probs=f32:3x111^pad5"},
    {"no_rows", "probs=f32:0x111 top_p=0.4"},
};
constexpr op::Case kTopKRenorm[] = {
    {"batch", "probs=f32:4x49152:probs top_k=50", "cpu", op::kBench},
    {"large_k", "probs=f32:3x20000:probs top_k=9000"},
    {"bf16", "probs=bf16:3x5000:probs top_k=7"},
    {"f16", "probs=f16:3x111:probs top_k=i64:[5,0,111]"},
    {"ties", "probs=f32:3x64:const(0.015625) top_k=3"},
    {"fewer_than_k", "probs=f32:3x500:const(0) top_k=3"},
    {"no_rows", "probs=f32:0x111 top_k=4"},
};
constexpr op::Case kTopKMask[] = {
    {"batch", "logits=f32:4x49152 top_k=50", "cpu", op::kBench},
    {"large_k", "logits=f32:3x20000 top_k=9000"},
    {"bf16", "logits=bf16:3x5000 top_k=7"},
    {"f16", "logits=f16:3x111 top_k=i64:[5,0,111]"},
    {"ties", "logits=f32:3x5000:randint(-3,4) top_k=33"},
    {"masked", "logits=f32:3x5000:const(-inf) top_k=33"},
    {"nan", "logits=f32:3x5000:nan top_k=33"},
    {"no_rows", "logits=f32:0x111 top_k=4"},
};
constexpr op::Case kChain[] = {
    {"batch", "draft_probs=f32:9x4x2000:probs draft_token_ids=i32:9x4:randint(0,2000) target_probs=f32:9x5x2000:probs "
              "seed=42 offset=0", "cpu", op::kAot},
    {"accepting", "draft_probs=f32:9x4x20:const(0.01) draft_token_ids=i64:9x4:randint(0,20) "
                  "target_probs=f32:9x5x20:probs seed=42 offset=0"},
    {"half", "draft_probs=f32:9x4x20:probs draft_token_ids=i64:9x4:randint(-1,21) target_probs=f32:9x5x20:probs "
             "seed=i64:[1,2,3,4,5,6,7,8,9] offset=i64:[0]"},
    {"bf16", "draft_probs=bf16:3x2x111:probs draft_token_ids=i32:3x2:randint(0,111) target_probs=bf16:3x3x111:probs "
             "seed=42 offset=0", "cpu", op::kAot},
    {"f16", "draft_probs=f16:3x2x111:probs draft_token_ids=i32:3x2:randint(0,111) target_probs=f16:3x3x111:probs "
            "seed=42 offset=0", "cpu", op::kAot},
    {"counters", "draft_probs=f32:3x2x30:const(0.03) draft_token_ids=i32:3x2:randint(0,30) target_probs=f32:3x3x30:probs "
                 "maybe_output_accepted_token_num=i32:[1,2,3] maybe_output_emitted_draft_token_num=i64:[7,8,9] "
                 "seed=42 offset=0"},
    {"equal", "draft_probs=f32:6x2x16:const(0.0625) draft_token_ids=i32:6x2:const(-1) "
              "target_probs=f32:6x3x16:const(0.0625) seed=42 offset=0"},
    {"no_draft", "draft_probs=f32:3x0x30 draft_token_ids=i32:3x0 target_probs=f32:3x1x30:probs seed=42 offset=0"},
    {"generator", "draft_probs=f32:3x1x30:probs draft_token_ids=i32:3x1 target_probs=f32:3x2x30:probs "
                  "generator=gen(9,3)"},
    {"no_rows", "draft_probs=f32:0x1x30 draft_token_ids=i32:0x1 target_probs=f32:0x2x30 seed=42 offset=0"},
};
}  // namespace
std::span<const op::Case> sampling_from_logits_cases() { return kLogits; }
std::span<const op::Case> top_k_sampling_cases() { return kTopK; }
std::span<const op::Case> top_p_sampling_cases() { return kTopP; }
std::span<const op::Case> min_p_sampling_cases() { return kMinP; }
std::span<const op::Case> top_k_top_p_logits_cases() { return kTopKTopPLogits; }
std::span<const op::Case> top_p_renorm_cases() { return kTopPRenorm; }
std::span<const op::Case> top_k_renorm_cases() { return kTopKRenorm; }
std::span<const op::Case> top_k_mask_cases() { return kTopKMask; }
std::span<const op::Case> chain_cases() { return kChain; }
}  // namespace flashinfer::ops::sampling
